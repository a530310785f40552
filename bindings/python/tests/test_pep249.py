"""PEP 249: the public suite (dbapi-compliance), and what it leaves to each driver."""

import pickle
from typing import Any

import dbapi20
import pytest

import remora


class TestSuite(dbapi20.DatabaseAPI20Test):
    driver: Any = remora

    @pytest.fixture(autouse=True)
    def _database(self, place: str) -> None:
        self.connect_args = (place,)

    def test_callproc(self) -> None:
        # It is optional, and there are no procedures.
        assert not hasattr(remora.Cursor, "callproc")

    def test_nextset(self) -> None:
        # It is optional, and a statement has one set of rows.
        assert not hasattr(remora.Cursor, "nextset")

    def test_non_idempotent_close(self) -> None:
        # The suite leaves it open whether a second close is an error: as with sqlite3 it is none.
        connection = self._connect()
        connection.close()
        connection.close()

    def test_setoutputsize(self) -> None:
        # Values of any size are whole.
        connection = self._connect()
        cursor = connection.cursor()
        cursor.setoutputsize(1)
        cursor.execute("SELECT REPEAT('x', 100000)")
        assert cursor.fetchall() == [("x" * 100_000,)]
        connection.close()


def test_the_tree_of_exceptions() -> None:
    tree = {
        remora.InterfaceError: remora.Error,
        remora.DatabaseError: remora.Error,
        remora.DataError: remora.DatabaseError,
        remora.OperationalError: remora.DatabaseError,
        remora.ConflictError: remora.OperationalError,
        remora.IntegrityError: remora.DatabaseError,
        remora.InternalError: remora.DatabaseError,
        remora.ProgrammingError: remora.DatabaseError,
        remora.NotSupportedError: remora.DatabaseError,
    }
    for kind, base in tree.items():
        assert kind.__bases__ == (base,)
    copied = pickle.loads(pickle.dumps(remora.IntegrityError("twice", 1062, False)))
    assert (type(copied), str(copied), copied.errno) == (remora.IntegrityError, "twice", 1062)


@pytest.mark.parametrize(
    ("statement", "kind", "errno"),
    [
        ("SELEC 1", remora.ProgrammingError, 1064),
        ("SELECT * FROM nowhere", remora.ProgrammingError, 1146),
        ("SELECT wrong FROM t", remora.ProgrammingError, 1054),
        ("CREATE TABLE t (id INT)", remora.ProgrammingError, 1050),
        ("INSERT INTO t VALUES (1, 1)", remora.IntegrityError, 1062),
        ("INSERT INTO t VALUES (NULL, 1)", remora.IntegrityError, 1048),
        ("INSERT INTO t VALUES (2, 300)", remora.DataError, 1264),
        ("INSERT INTO t VALUES (2, 'many')", remora.DataError, 1366),
    ],
)
def test_each_error_is_of_its_kind(con: remora.Connection, statement: str, kind: Any, errno: int) -> None:
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, n TINYINT)")
    con.execute("INSERT INTO t VALUES (1, 1)")
    with pytest.raises(remora.Error) as caught:
        con.execute(statement)
    assert (type(caught.value), caught.value.errno) == (kind, errno)


def test_transactions_begin_by_themselves(place: str) -> None:
    one, other = remora.connect(place), remora.connect(place)
    one.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    assert not one.autocommit and not one.in_transaction
    one.execute("INSERT INTO t VALUES (1)")
    assert one.in_transaction
    assert other.execute("SELECT COUNT(*) FROM t").fetchone() == (0,)
    one.commit()
    # What was read belongs to a transaction too, which sees one moment.
    assert other.execute("SELECT COUNT(*) FROM t").fetchone() == (0,)
    other.rollback()
    assert other.execute("SELECT COUNT(*) FROM t").fetchone() == (1,)
    one.execute("DELETE FROM t")
    one.close()
    other.rollback()
    assert other.execute("SELECT COUNT(*) FROM t").fetchone() == (1,)
    other.close()


def test_autocommit(place: str) -> None:
    one, other = remora.connect(place, autocommit=True), remora.connect(place, autocommit=True)
    one.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    one.execute("INSERT INTO t VALUES (1)")
    assert other.execute("SELECT COUNT(*) FROM t").fetchone() == (1,)
    assert one.autocommit and not one.in_transaction
    one.autocommit = False
    one.execute("INSERT INTO t VALUES (2)")
    assert other.execute("SELECT COUNT(*) FROM t").fetchone() == (1,)
    one.autocommit = True
    assert other.execute("SELECT COUNT(*) FROM t").fetchone() == (2,)
    one.close()
    other.close()


def test_a_block_commits_or_rolls_back(place: str) -> None:
    con = remora.connect(place)
    with con:
        con.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        con.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(ZeroDivisionError), con:
        con.execute("INSERT INTO t VALUES (2)")
        _ = 1 / 0
    assert con.execute("SELECT id FROM t").fetchall() == [(1,)]
    con.close()
    # It is on the disk.
    again = remora.connect(place)
    assert again.execute("SELECT id FROM t").fetchall() == [(1,)]
    again.close()


def test_the_slower_of_two_is_told(place: str) -> None:
    one, other = remora.connect(place), remora.connect(place)
    one.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    one.execute("INSERT INTO t VALUES (1, 0)")
    one.commit()
    for con in (one, other):
        con.execute("SELECT n FROM t").fetchall()
    one.execute("UPDATE t SET n = 1")
    one.commit()
    with pytest.raises(remora.ConflictError) as caught:
        other.execute("UPDATE t SET n = n + 10")
        other.commit()
    assert caught.value.is_retryable
    other.rollback()
    with other:
        other.execute("UPDATE t SET n = n + 10")
    assert other.execute("SELECT n FROM t").fetchone() == (11,)
    one.close()
    other.close()


@pytest.mark.parametrize("autocommit", [False, True])
def test_executemany_is_one_step(place: str, autocommit: bool) -> None:
    con = remora.connect(place, autocommit=autocommit)
    cursor = con.cursor()
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)")
    cursor.executemany("INSERT INTO t VALUES (?, ?)", ((n, n * n) for n in range(1000)))
    assert cursor.rowcount == 1000
    assert cursor.description is None
    with pytest.raises(remora.IntegrityError):
        cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1000, 1), (1001, 1), (7, 1)])
    # What went before in the transaction stays.
    assert con.execute("SELECT COUNT(*), MAX(n) FROM t").fetchone() == (1000, 999 * 999)
    cursor.executemany("UPDATE t SET n = 0 WHERE id >= :least", [{"least": 998}, {"least": 999}])
    assert cursor.rowcount == 2
    cursor.executemany("DELETE FROM t WHERE id = ?", [])
    assert cursor.rowcount == 0
    con.close()


def test_lastrowid_and_description(con: remora.Connection) -> None:
    cursor = con.cursor()
    assert (cursor.rowcount, cursor.lastrowid, cursor.description) == (-1, None, None)
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, price DECIMAL(10, 2), name TEXT, "
                   "b BLOB, d DATETIME, j JSON)")
    assert cursor.lastrowid is None
    cursor.execute("INSERT INTO t (price) VALUES (1), (2)")
    assert (cursor.lastrowid, cursor.rowcount) == (1, 2)
    cursor.executemany("INSERT INTO t (price) VALUES (?)", [(3,), (4,)])
    assert cursor.lastrowid == 4
    cursor.execute("SELECT * FROM t")
    assert (cursor.rowcount, cursor.lastrowid) == (4, None)
    description = cursor.description
    assert description is not None
    kinds = [remora.NUMBER, remora.NUMBER, remora.STRING, remora.BINARY, remora.DATETIME, remora.STRING]
    assert [column[1] for column in description] == kinds
    assert [column[1] == remora.ROWID for column in description] == [False] * 6
    assert description[1] == ("price", "decimal", None, None, 10, 2, True)


def test_a_cursor_goes_on_and_ends(con: remora.Connection) -> None:
    cursor = con.execute("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3")
    assert cursor.rownumber == 0
    assert next(cursor) == (1,)
    assert list(cursor) == [(2,), (3,)]
    assert cursor.rownumber == 3 and cursor.fetchone() is None
    # A statement that fails leaves no rows of the one before.
    cursor.execute("SELECT 1")
    with pytest.raises(remora.ProgrammingError):
        cursor.execute("SELEC 1")
    with pytest.raises(remora.ProgrammingError, match="no rows"):
        cursor.fetchone()
    with cursor:
        cursor.execute("SELECT 1")
    for call in (cursor.fetchone, cursor.fetchall, lambda: cursor.execute("SELECT 1")):
        with pytest.raises(remora.InterfaceError, match="cursor is closed"):
            call()


def test_parameters_by_name_and_by_place(con: remora.Connection) -> None:
    one = con.execute("SELECT ?, ?, '?', `?` FROM (SELECT 1 AS `?`) AS x", (1, "two")).fetchone()
    assert one == (1, "two", "?", 1)
    named = {"a": 1, "b_2": "two", "with space": 3}
    text = """SELECT :a, :b_2, %(a)s, %(with space)s, ':a', "x:a", 'it''s :a', '\\':a', 7 % 4, 'é:a'
              -- :comment %(comment)s
              /* :other */"""
    row = con.execute(text, named).fetchone()
    assert row == (1, "two", 1, 3, ":a", "x:a", "it's :a", "':a", 3, "é:a")
    with pytest.raises(remora.ProgrammingError, match="'nothing' has no value|\"nothing\" has no value"):
        con.execute("SELECT :nothing", named)
    for wrong in ("text", b"bytes", 5):
        with pytest.raises(remora.ProgrammingError, match="sequence"):
            con.execute("SELECT ?", wrong)  # type: ignore[arg-type]
    for values in ((1, 2), (1, 2, 3)):
        with pytest.raises(remora.ProgrammingError):
            con.execute("SELECT ?", values)
    with pytest.raises(remora.ProgrammingError, match="sequence"):
        con.executemany("SELECT ?", [(1,), {"a": 1}])


def test_what_is_closed_says_so(place: str) -> None:
    con = remora.connect(place)
    con.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    cursor, table, notes = con.cursor(), con.table("t"), con.collection("notes")
    read = con.execute("SELECT 1 UNION SELECT 2")
    assert read.fetchone() == (1,)
    con.close()
    calls = [
        con.commit, con.rollback, con.tables, con.interrupt, table.count, notes.count,
        lambda: cursor.execute("SELECT 1"), lambda: con.table("t"), lambda: con.collection("notes"),
        lambda: con.in_transaction, lambda: con.path,
        read.fetchone, read.fetchmany, read.fetchall, lambda: next(read), lambda: read.description,
    ]
    for call in calls:
        with pytest.raises(remora.InterfaceError, match="connection is closed"):
            call()
