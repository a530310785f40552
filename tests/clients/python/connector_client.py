"""mysql-connector-python: text and prepared statements, several statements in one text."""

import datetime
import decimal
import sys

import mysql.connector

settings = {"host": "127.0.0.1", "port": int(sys.argv[1]), "user": "root", "use_pure": True}
connection = mysql.connector.connect(**settings)
cursor = connection.cursor()
cursor.execute("CREATE DATABASE connector_test")
cursor.execute("USE connector_test")
cursor.execute(
    "CREATE TABLE readings (id BIGINT UNSIGNED PRIMARY KEY, at DATETIME(6), level DECIMAL(12,4),"
    " label VARCHAR(20), raw BLOB, flag TINYINT(1))"
)
prepared = connection.cursor(prepared=True)
insert = "INSERT INTO readings VALUES (?, ?, ?, ?, ?, ?)"
moment = datetime.datetime(2025, 12, 31, 23, 59, 59, 123456)
for number in range(20):
    level = decimal.Decimal(number) / 8
    prepared.execute(insert, (number, moment, level, f"n{number}", bytes([number]), number % 2))
connection.commit()
prepared.execute("SELECT at, level, label, raw, flag FROM readings WHERE id = ?", (9,))
assert prepared.fetchone() == (moment, decimal.Decimal("1.1250"), "n9", b"\x09", 1)
prepared.execute("SELECT label FROM readings WHERE id IN (?, ?) ORDER BY id DESC", (3, 5))
assert prepared.fetchall() == [("n5",), ("n3",)]
prepared.execute("SELECT ?, ? IS NULL", ("text", None))
assert prepared.fetchone() == ("text", 1)
cursor.execute("SELECT id, NULL FROM readings WHERE label = %(label)s", {"label": "n7"})
assert cursor.fetchall() == [(7, None)]
cursor.execute("SELECT 1/3, 10 DIV 3, CAST('2020-01-02' AS DATE)")
assert cursor.fetchone() == (decimal.Decimal("0.3333"), 3, datetime.date(2020, 1, 2))
named = connection.cursor(dictionary=True)
named.execute("SHOW INDEX FROM readings")
assert named.fetchall()[0]["Key_name"] == "PRIMARY"
named.execute("SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_NAME = 'readings'")
assert named.fetchone()["TABLE_ROWS"] == 20
try:
    cursor.execute("SELEC 1")
    raise AssertionError("no statement")
except mysql.connector.errors.ProgrammingError as error:
    assert error.errno == 1064 and error.sqlstate == "42000", error
connection.reset_session()
cursor = connection.cursor()
cursor.execute("DROP DATABASE connector_test")
connection.close()
print("ok")
