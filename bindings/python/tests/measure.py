"""How long a look-up by key takes from Python: `python tests/measure.py`, with a wheel of a release build."""

import timeit

import remora

ROWS = 100_000
con = remora.connect(":memory:")
con.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60))")
con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(n, n, "c" * 100, "p" * 50) for n in range(ROWS)])
con.commit()
notes = con.collection("notes")
ids = notes.insert_many({"n": n, "name": f"note {n}"} for n in range(1000))
cursor = con.cursor()


def told(what: str, call: str) -> None:
    timer = timeit.Timer(call, globals=globals())
    count, _ = timer.autorange()
    best = min(timer.repeat(5, count)) / count
    print(f"{what}: {best * 1e6:.1f} us")


KEY = 77_777
for on in (False, True):
    con.autocommit = on
    mode = "autocommit" if on else "in a transaction"
    told(f"execute and fetchone by key, {mode}", "cursor.execute('SELECT k FROM t WHERE id = ?', (KEY,)).fetchone()")
    told(f"the same of all columns, {mode}", "cursor.execute('SELECT * FROM t WHERE id = ?', (KEY,)).fetchone()")
told("document by id", "notes.get(ids[500])")
told("1,000 rows", "cursor.execute('SELECT id, k, c FROM t WHERE id < 1000').fetchall()")
told("1,000 rows as Arrow", "cursor.execute('SELECT id, k, c FROM t WHERE id < 1000').__arrow_c_stream__()")
