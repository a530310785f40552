"""Threads: connections of their own, one that is shared, and the interpreter's lock."""

import threading
import time
from typing import Any, Callable, List

import pytest

import remora

LONG = "SELECT COUNT(*) FROM {0} a, {0} b, {0} c WHERE a.n + b.n * c.n = -1"


def run(works: List[Callable[[], Any]]) -> None:
    failed: List[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def numbers(con: remora.Connection, count: int = 3000) -> None:
    con.execute("CREATE TABLE numbers (n INT PRIMARY KEY)")
    con.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(count)])
    con.commit()


def test_two_threads_write_with_connections_of_their_own(place: str) -> None:
    first = remora.connect(place, autocommit=True, durability="none")
    first.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, writer INT, n INT)")

    def write(writer: int) -> None:
        con = remora.connect(place, autocommit=True, durability="none")
        for n in range(200):
            con.execute("INSERT INTO t (writer, n) VALUES (?, ?)", (writer, n))
            row = con.execute("SELECT COUNT(*) FROM t WHERE writer = ?", (writer,)).fetchone()
            assert row == (n + 1,)
        con.close()

    run([lambda writer=writer: write(writer) for writer in range(2)])  # type: ignore[misc]
    assert first.execute("SELECT writer, COUNT(*), SUM(n) FROM t GROUP BY writer ORDER BY writer").fetchall() == [
        (0, 200, 19900), (1, 200, 19900),
    ]
    first.close()


def test_threads_share_a_connection(con: remora.Connection) -> None:
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")

    def write(writer: int) -> None:
        for n in range(200):
            key = writer * 1000 + n
            con.execute("INSERT INTO t VALUES (?, ?)", (key, n))
            assert con.execute("SELECT n FROM t WHERE id = ?", (key,)).fetchall() == [(n,)]

    run([lambda writer=writer: write(writer) for writer in range(4)])  # type: ignore[misc]
    assert con.execute("SELECT COUNT(*) FROM t").fetchone() == (800,)


def test_the_interpreter_goes_on_while_a_statement_runs(con: remora.Connection) -> None:
    numbers(con)
    ended = threading.Event()

    def ask() -> None:
        with pytest.raises(remora.OperationalError) as caught:
            con.execute(LONG.format("numbers"))
        assert caught.value.errno == 1317
        ended.set()

    thread = threading.Thread(target=ask)
    thread.start()
    # If the statement held the lock, this would not be reached before its end.
    steps, begin = 0, time.monotonic()
    while time.monotonic() - begin < 0.5:
        steps += 1
        time.sleep(0.001)
    assert not ended.is_set() and steps > 50
    # It may be between being asked and running.
    while not ended.wait(0.05):
        con.interrupt()
    thread.join()
    assert con.execute("SELECT COUNT(*) FROM numbers").fetchone() == (3000,)


def test_documents_and_searches_of_threads(con: remora.Connection) -> None:
    notes = con.collection("notes")
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, body TEXT, FULLTEXT (body))")
    table = con.table("t")

    def write(writer: int) -> None:
        for n in range(50):
            notes.insert({"writer": writer, "n": n})
            table.add({"id": writer * 100 + n, "body": f"reef {writer}"})
            assert notes.count(remora.field("writer") == writer) == n + 1
            assert table.search(f"reef {writer}", limit=1).total == n + 1

    run([lambda writer=writer: write(writer) for writer in range(3)])  # type: ignore[misc]
    assert len(notes) == len(table) == 150
