"""PyMySQL: types, parameters, transactions, many rows, errors."""

import datetime
import decimal
import sys

import pymysql
import pymysql.cursors

connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root")
cursor = connection.cursor()
cursor.execute("CREATE DATABASE pymysql_test")
connection.select_db("pymysql_test")
cursor.execute(
    """CREATE TABLE items (
         id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
         name VARCHAR(40) NOT NULL,
         price DECIMAL(10,2),
         made DATE,
         at DATETIME(3),
         took TIME,
         raw VARBINARY(20),
         ratio DOUBLE,
         note TEXT,
         UNIQUE KEY by_name (name),
         FULLTEXT KEY words (note)
       ) COMMENT='things'"""
)
row = (
    "brass lamp",
    decimal.Decimal("12.50"),
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 250000),
    datetime.timedelta(hours=1, minutes=2, seconds=3),
    b"\x00\xff'\\",
    0.5,
    "a lamp's \\ light \N{SNOWMAN} \N{GRINNING FACE}",
)
insert = (
    "INSERT INTO items (name, price, made, at, took, raw, ratio, note)"
    " VALUES (%s, %s, %s, %s, %s, _binary %s, %s, %s)"
)
assert cursor.execute(insert, row) == 1
assert cursor.lastrowid == 1
cursor.execute("SELECT name, price, made, at, took, raw, ratio, note FROM items WHERE id = %s", (1,))
assert cursor.fetchone() == row, row
connection.rollback()
cursor.execute("SELECT COUNT(*) FROM items")
assert cursor.fetchone() == (0,)
many = [(f"item {number}", number, *row[2:]) for number in range(500)]
assert cursor.executemany(insert, many) == 500
connection.commit()
cursor.execute("SELECT SUM(price), COUNT(*) FROM items WHERE name LIKE 'item%'")
assert cursor.fetchone() == (decimal.Decimal("124750.00"), 500)
try:
    cursor.execute(insert, ("item 1", *row[1:]))
    raise AssertionError("a name twice")
except pymysql.err.IntegrityError as error:
    assert error.args[0] == 1062, error
try:
    cursor.execute("SELECT * FROM missing")
    raise AssertionError("a table that is not there")
except pymysql.err.ProgrammingError as error:
    assert error.args[0] == 1146, error
cursor.execute("SELECT name FROM items WHERE MATCH(note) AGAINST('lamp') AND id < %s", (10_000,))
assert len(cursor.fetchall()) == 500
names = pymysql.cursors.DictCursor(connection)
names.execute("SHOW FULL COLUMNS FROM items LIKE 'name'")
shown = names.fetchall()
assert shown[0]["Type"] == "varchar(40)" and shown[0]["Key"] == "UNI", shown
names.execute("SHOW TABLE STATUS WHERE Name = 'items'")
assert names.fetchone()["Comment"] == "things"
stream = pymysql.cursors.SSCursor(connection)
stream.execute("SELECT id FROM items ORDER BY id")
assert len(list(stream.fetchall_unbuffered())) == 500
cursor.execute("DROP DATABASE pymysql_test")
connection.close()
print("ok")
