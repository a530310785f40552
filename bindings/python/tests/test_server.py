"""Connections to a running server: the same as to a directory."""

import datetime
import decimal
import os
import pathlib
import re
import subprocess
import threading
import time
from typing import Iterator

import pytest

import remora

BINARY = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "debug" / "remora"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not BINARY.exists():
        pytest.skip(f"there is no server at {BINARY}: cargo build --workspace")
    place = tmp_path_factory.mktemp("server")
    arguments = [BINARY, "serve", "--data", place / "data", "--http", "", "--line", "", "--sql", "127.0.0.1:0"]
    log = place / "log"
    with log.open("w") as written:
        server = subprocess.Popen([str(it) for it in arguments], stdout=written, stderr=written, cwd=place)
    try:
        yield f"mysql://root@127.0.0.1:{listening(server, log)}/"
    finally:
        server.terminate()
        server.wait(30)


def listening(server: "subprocess.Popen[bytes]", log: pathlib.Path) -> int:
    """The port that the server says it has."""
    until = time.monotonic() + 60
    while time.monotonic() < until and server.poll() is None:
        found = re.search(r"127\.0\.0\.1:([1-9][0-9]*)", log.read_text())
        if found:
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError(log.read_text())


@pytest.fixture
def con(url: str) -> Iterator[remora.Connection]:
    connection = remora.connect(url)
    connection.execute("DROP TABLE IF EXISTS t")
    connection.execute(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(20) UNIQUE, d DECIMAL(6, 2), b VARBINARY(9), "
        "day DATE, at DATETIME(3), j JSON, u BIGINT UNSIGNED)"
    )
    yield connection
    connection.close()


def test_values_and_descriptions_are_those_of_a_directory(con: remora.Connection) -> None:
    day, at = datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 2, 3, 4, 5, 678000)
    row = ("it's ? \\ %s", decimal.Decimal("1.50"), b"\x00'\xff", day, at, {"a": [1, None]}, 2**64 - 1)
    inserted = con.execute("INSERT INTO t (s, d, b, day, at, j, u) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    assert (inserted.rowcount, inserted.lastrowid) == (1, 1)
    text = "SELECT s, d, b, day, at, j, u, NULL /* ? */, '?' FROM t -- ?\n WHERE id = ?"
    here = remora.connect(":memory:")
    here.execute("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), d DECIMAL(6, 2), b VARBINARY(9), day DATE, "
                 "at DATETIME(3), j JSON, u BIGINT UNSIGNED)")
    here.execute("INSERT INTO t VALUES (1, ?, ?, ?, ?, ?, ?, ?)", row)
    for connection in (con, here):
        found = connection.execute(text, (1,))
        assert found.fetchall() == [(*row, None, "?")]
        assert found.description is not None
        assert [column[1] for column in found.description][:7] == [
            "text", "decimal", "bytes", "date", "datetime", "json", "uint",
        ]
        assert found.description[1][4:6] == (6, 2)
        named = connection.execute("SELECT :a, %(b)s, ':a', s FROM t WHERE s = :a", {"a": row[0], "b": 7})
        assert named.fetchone() == (row[0], 7, ":a", row[0]) and named.fetchone() is None
    assert con.execute("SELECT s, u FROM t").to_arrow().to_pylist() == [{"s": row[0], "u": 2**64 - 1}]
    assert list(con.execute("SELECT id FROM t").to_pandas()["id"]) == [1]
    assert con.execute("SELECT id FROM t").to_polars()["id"].to_list() == [1]
    assert con.tables() == ["t"]


def test_transactions_and_errors(con: remora.Connection, url: str) -> None:
    con.commit()
    con.execute("INSERT INTO t (s) VALUES ('a')")
    assert con.in_transaction and not con.autocommit
    con.rollback()
    assert con.execute("SELECT COUNT(*) FROM t").fetchone() == (0,)
    con.executemany("INSERT INTO t (s) VALUES (?)", [("a",), ("b",)])
    with pytest.raises(remora.IntegrityError) as raised:
        con.executemany("INSERT INTO t (s) VALUES (?)", [("c",), ("a",)])
    assert raised.value.errno == 1062
    con.commit()
    other = remora.connect(url, autocommit=True)
    assert other.execute("SELECT s FROM t ORDER BY s").fetchall() == [("a",), ("b",)]
    with pytest.raises(remora.IntegrityError):
        other.executemany("INSERT INTO t (s) VALUES (?)", [("c",), ("a",)])
    assert other.execute("SELECT COUNT(*) FROM t").fetchone() == (2,) and not other.in_transaction
    for text, values, kind in (
        ("SELEC 1", None, remora.ProgrammingError),
        ("SELECT * FROM gone", None, remora.ProgrammingError),
        ("INSERT INTO t (s) VALUES (?)", ("x" * 30,), remora.DataError),
        ("SELECT ?", (1, 2), remora.ProgrammingError),
        ("SELECT :a", {"b": 1}, remora.ProgrammingError),
        ("SELECT ?", "x", remora.ProgrammingError),
    ):
        with pytest.raises(kind):
            other.execute(text, values)
    for refused in (lambda: other.collection("c"), lambda: other.table("t"), lambda: other.batch(), lambda: other.path):
        with pytest.raises(remora.NotSupportedError):
            refused()
    timer = threading.Timer(0.3, other.interrupt)
    timer.start()
    begin = time.monotonic()
    try:
        other.execute("SELECT SLEEP(20)")
    except remora.OperationalError as error:
        assert error.errno == 1317
    assert time.monotonic() - begin < 15
    timer.join()
    other.close()
    other.close()
    with pytest.raises(remora.InterfaceError):
        other.execute("SELECT 1")


def test_what_cannot_be_connected_to() -> None:
    with pytest.raises(remora.OperationalError):
        remora.connect("mysql://root@127.0.0.1:1/?connect_timeout=2")
    for wrong in ("mysql://h:port/", "mysql://h/?nothing=1", "mysql://h/?connect_timeout=x"):
        with pytest.raises(remora.ProgrammingError):
            remora.connect(wrong)
    with pytest.raises(remora.ProgrammingError, match="settings of the server"):
        remora.connect("mysql://h/", durability="none")
