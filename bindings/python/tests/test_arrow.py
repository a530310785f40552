"""Rows by the Arrow PyCapsule interface, as pyarrow, pandas and polars take them."""

import datetime
import decimal
import gc
import subprocess
import sys

import pytest

import remora

pa = pytest.importorskip("pyarrow")
ROWS = 20_000


@pytest.fixture
def filled(con: remora.Connection) -> remora.Connection:
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, price DECIMAL(10, 2), name TEXT, data BLOB, d DATE, t TIME, "
                "dt DATETIME(6), n BIGINT UNSIGNED, x DOUBLE, doc JSON)")
    con.executemany("INSERT INTO t VALUES (?,?,?,?,?,?,?,?,?,?)", [row(n) for n in range(ROWS)])
    return con


def row(n: int) -> "tuple[object, ...]":
    if n % 7 == 3:
        return (n,) + (None,) * 9
    day = datetime.datetime(2024, 1, 1, microsecond=n) + datetime.timedelta(hours=n)
    return (
        n, decimal.Decimal(n).scaleb(-2), f"bird {n} 日本", bytes([n % 256]), day.date(),
        datetime.timedelta(seconds=n - 100), day, 2**63 + n, n / 8, {"n": n},
    )


def test_pyarrow(filled: remora.Connection) -> None:
    cursor = filled.execute("SELECT * FROM t ORDER BY id")
    table = pa.table(cursor)
    assert table.schema.types == [
        pa.int64(), pa.decimal128(10, 2), pa.string(), pa.binary(), pa.date32(), pa.duration("us"),
        pa.timestamp("us"), pa.uint64(), pa.float64(), pa.string(),
    ]
    table.validate(full=True)
    # Python's own values are the oracle; JSON is text in Arrow.
    plain = cursor.fetchall()
    assert plain == [row(n) for n in range(ROWS)]
    expected = [values[:-1] for values in plain]
    columns = [column.to_pylist() for column in table.columns]
    assert list(zip(*columns[:-1])) == expected
    assert columns[-1][:2] == ['{"n": 0}', '{"n": 1}']
    # It may be asked again, and outlives what it came from.
    again = cursor.to_arrow()
    cursor.close()
    filled.close()
    gc.collect()
    assert again.equals(table)


def test_a_stream_that_nobody_takes_is_released(filled: remora.Connection) -> None:
    cursor = filled.execute("SELECT * FROM t")
    for _ in range(3):
        capsule = cursor.__arrow_c_stream__()
        assert "arrow_array_stream" in repr(capsule)
        del capsule
        reader = pa.RecordBatchReader.from_stream(cursor)
        assert next(reader).num_rows > 0
        del reader
        gc.collect()


def test_no_rows_have_columns(con: remora.Connection) -> None:
    table = con.execute("SELECT 1 AS a, 'x' AS b WHERE FALSE").to_arrow()
    assert (table.num_rows, table.column_names) == (0, ["a", "b"])
    with pytest.raises(remora.ProgrammingError, match="no rows"):
        con.execute("DO 1").to_arrow()


def test_what_arrow_cannot_say_is_told(con: remora.Connection) -> None:
    con.execute("SET sql_mode = ''")
    cursor = con.execute("SELECT CAST('2024-00-00' AS DATE) AS d")
    with pytest.raises(remora.ProgrammingError, match="CAST"):
        cursor.to_arrow()


def test_a_search_is_a_table_too(con: remora.Connection) -> None:
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, body TEXT, year INT, FULLTEXT (body))")
    con.table("t").add({"id": n, "body": f"reef {n}", "year": 1990 + n} for n in range(50))
    found = con.search("t", "reef", order_by="_key", limit=10)
    assert found.to_arrow().to_pylist() == found.rows
    empty = con.search("t", "nothing").to_arrow()
    assert (empty.num_rows, empty.column_names) == (0, ["id", "body", "year"])


def test_pandas(filled: remora.Connection) -> None:
    pd = pytest.importorskip("pandas")
    frame = filled.execute("SELECT id, name, x, dt FROM t WHERE n IS NOT NULL ORDER BY id").to_pandas()
    ids = [n for n in range(ROWS) if n % 7 != 3]
    assert frame["id"].tolist() == ids
    assert frame["x"].sum() == sum(n / 8 for n in ids)
    assert frame["dt"].max() == pd.Timestamp(row(ids[-1])[6])
    # By the DB-API too.
    read = pd.read_sql("SELECT id FROM t WHERE id < 3 ORDER BY id", filled)
    assert read["id"].tolist() == [0, 1, 2]


def test_polars(filled: remora.Connection) -> None:
    pl = pytest.importorskip("polars")
    cursor = filled.execute("SELECT id, name, x FROM t ORDER BY id")
    frame = pl.DataFrame(cursor)
    assert frame.shape == (ROWS, 3)
    assert frame.equals(cursor.to_polars())
    assert frame["name"].to_list() == [row(n)[2] for n in range(ROWS)]


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    program = "import remora, sys; remora.connect().execute('SELECT 1').fetchall(); " \
              "print([name for name in ('pyarrow', 'pandas', 'polars', 'numpy') if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, timeout=60)
    assert ran.stdout == "[]\n", ran.stdout + ran.stderr


def test_numpys_values_are_taken(con: remora.Connection) -> None:
    np = pytest.importorskip("numpy")
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, x DOUBLE, v VECTOR(2))")
    con.execute("INSERT INTO t VALUES (?, ?, ?)", (np.int32(7), np.float64(0.5), np.array([1, 2], dtype=np.float32)))
    assert con.execute("SELECT * FROM t").fetchall() == [(7, 0.5, [1.0, 2.0])]
