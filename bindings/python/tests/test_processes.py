"""Other processes: forked children, second openers, Ctrl+C, and the end of a program."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
from typing import Any, Callable

import pytest

import remora

LONG = "SELECT COUNT(*) FROM numbers a, numbers b, numbers c WHERE a.n + b.n * c.n = -1"


def in_child(work: Callable[[], Any]) -> str:
    """Forks; what the child's work answers or raises."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = repr(work())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            told = f"{type(error).__name__}: {error}"
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0
    return told


def python(program: str, *args: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *args], text=True, capture_output=True, timeout=60, **options
    )


def test_a_forked_child_is_refused_and_its_parent_is_not_harmed(place: str) -> None:
    con = remora.connect(place)
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, body TEXT, FULLTEXT (body))")
    con.execute("INSERT INTO t VALUES (1, 'reef')")
    con.commit()
    table, notes = con.table("t"), con.collection("notes")
    notes.insert({"n": 1})
    calls: "list[Callable[[], Any]]" = [
        lambda: con.execute("SELECT * FROM t"),
        lambda: con.execute("INSERT INTO t VALUES (2, 'child')"),
        lambda: con.executemany("INSERT INTO t VALUES (?, 'child')", [(3,)]),
        con.commit,
        con.tables,
        lambda: con.in_transaction,
        lambda: table.search("reef"),
        lambda: table.add({"id": 4, "body": "child"}),
        lambda: notes.insert({"n": 2}),
        lambda: con.collection("other"),
        lambda: remora.connect(place),
        lambda: remora.connect(":memory:"),
    ]
    for call in calls:
        assert in_child(call).startswith("InterfaceError: this process was forked"), call

    def end() -> None:
        nonlocal con, table, notes
        con.close()
        del con, table, notes

    # It closes nothing of its parent's.
    assert in_child(end) == "None"
    con.execute("INSERT INTO t VALUES (5, 'parent')")
    con.commit()
    con.close()
    again = remora.connect(place)
    assert again.execute("SELECT * FROM t").fetchall() == [(1, "reef"), (5, "parent")]
    assert len(again.collection("notes")) == 1
    again.close()


def test_a_child_that_ends_as_programs_end_leaves_its_parents_memory() -> None:
    ran = python("""
        import os, remora, sys
        con = remora.connect()
        con.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        con.execute("INSERT INTO t VALUES (1)")
        con.commit()
        path = con.path
        if os.fork() == 0:
            sys.exit(0)
        assert os.wait()[1] == 0
        assert os.path.isdir(path)
        con.execute("INSERT INTO t VALUES (2)")
        con.commit()
        print(con.execute("SELECT * FROM t").fetchall(), path)
    """)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("[(1,), (2,)]"), ran.stdout
    # The parent has removed it.
    assert not os.path.exists(ran.stdout.split()[-1])


def test_a_child_of_a_process_that_opened_nothing_works() -> None:
    ran = python("""
        import os, remora
        child = os.fork()
        if child == 0:
            con = remora.connect()
            con.execute("CREATE TABLE t (id INT PRIMARY KEY, body TEXT, FULLTEXT (body))")
            con.executemany("INSERT INTO t VALUES (?, 'reef')", [(n,) for n in range(100)])
            con.commit()
            found = con.execute("SELECT COUNT(*) FROM t a JOIN t b ON a.body = b.body").fetchone()
            con.close()
            os._exit(0 if found == (10000,) else 1)
        assert os.waitpid(child, 0)[1] == 0
    """)
    assert ran.returncode == 0, ran.stderr


def test_a_second_opener_is_told(place: str) -> None:
    con = remora.connect(place)
    other = "import remora, sys; remora.connect(sys.argv[1])"
    ran = python(other, place)
    assert ran.returncode == 1
    assert "OperationalError" in ran.stderr and "open" in ran.stderr, ran.stderr
    con.close()
    assert python(other, place).returncode == 0
    again = remora.connect(place)
    again.close()


def test_connections_of_a_process_share_what_is_open(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = remora.connect(place)
    monkeypatch.chdir(pathlib.Path(place).parent)
    other = remora.connect(pathlib.Path("database"))
    one.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    one.close()
    assert other.tables() == ["t"]
    with pytest.raises(remora.ProgrammingError, match="other options"):
        remora.connect(place, durability="none")
    other.close()
    for _ in range(20):
        again = remora.connect(place, durability="none")
        assert again.tables() == ["t"]
        again.close()


def test_what_is_no_directory_is_refused(tmp_path: pathlib.Path) -> None:
    for dsn in ("postgres://app@127.0.0.1/shop", "sqlite:///x", "http://host"):
        with pytest.raises(remora.NotSupportedError, match="mysql://"):
            remora.connect(dsn)
    (tmp_path / "file").write_text("something else")
    with pytest.raises(remora.Error):
        remora.connect(tmp_path / "file")
    for durability in ("sometimes", 5, None):
        with pytest.raises(remora.ProgrammingError, match="durability"):
            remora.connect(durability=durability)  # type: ignore[arg-type]


INTERRUPTED = """
    import os, remora, signal, sys, threading, time
    con = remora.connect()
    con.execute("CREATE TABLE numbers (n INT PRIMARY KEY)")
    con.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(3000)])
    con.commit()
    con.execute("INSERT INTO numbers VALUES (-7)")
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        WORK
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - begin < 20)
    print(con.execute("SELECT COUNT(*), MIN(n) FROM numbers").fetchone())
"""


@pytest.mark.parametrize(
    "work",
    [
        f'con.execute("{LONG}")',
        'con.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(3000, 2000000)])',
        'con.executemany("UPDATE numbers SET n = n + 0 WHERE n >= ?", [(0,)] * 100000)',
    ],
)
def test_ctrl_c_ends_a_statement(work: str) -> None:
    ran = python(INTERRUPTED.replace("WORK", work))
    assert ran.returncode == 0, ran.stderr
    # What the statement did is undone; the transaction goes on.
    assert ran.stdout == "interrupted True\n(3001, -7)\n", ran.stdout + ran.stderr


def test_the_handler_of_a_signal_may_not_use_the_busy_connection() -> None:
    ran = python("""
        import os, remora, signal, threading
        con = remora.connect()
        con.execute("CREATE TABLE numbers (n INT PRIMARY KEY)")
        con.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(3000)])
        def handle(number, frame):
            con.execute("SELECT 1")
        signal.signal(signal.SIGUSR1, handle)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        try:
            con.execute("SELECT COUNT(*) FROM numbers a, numbers b, numbers c WHERE a.n + b.n * c.n = -1")
        except remora.ProgrammingError as error:
            print(error)
    """)
    assert "runs another statement in this thread" in ran.stdout, ran.stdout + ran.stderr


def test_a_killed_process_loses_nothing_that_was_committed(place: str) -> None:
    program = """
        import os, remora, signal, sys
        con = remora.connect(sys.argv[1])
        con.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        con.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(100)])
        con.commit()
        con.execute("INSERT INTO t VALUES (1000)")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    assert python(program, place).returncode == -signal.SIGKILL
    con = remora.connect(place)
    assert con.execute("SELECT COUNT(*), MAX(id) FROM t").fetchone() == (100, 99)
    con.close()


def test_nothing_is_left_of_memory() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ran = python("import remora; con = remora.connect(); print(con.path)", env={**os.environ, "TMPDIR": folder})
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.startswith(folder) and os.listdir(folder) == []
