"""Values: what goes in comes out."""

import array
import datetime
import decimal
import math
import random
import os
from typing import Any

import pytest

import remora

D = decimal.Decimal
EVERY = """CREATE TABLE every (id INT PRIMARY KEY, tiny TINYINT, big BIGINT, huge BIGINT UNSIGNED, price DECIMAL(20, 4),
    wide DECIMAL(60, 2), single FLOAT, twice DOUBLE, name VARCHAR(50), body TEXT, data BLOB, d DATE, t TIME(6),
    dt DATETIME(6), ts TIMESTAMP(6), doc JSON, v VECTOR(3), y YEAR, level ENUM('low', 'high'))"""


def test_every_type_comes_back(con: remora.Connection) -> None:
    con.execute(EVERY)
    moment = datetime.datetime(2024, 2, 29, 12, 34, 56, 123456)
    document = {"a": [1, 2.5, None, True, "x", {"b": []}], "naïve 日本": -(2**63), "u": 2**64 - 1}
    row: tuple[Any, ...] = (
        1, -128, -(2**63), 2**64 - 1, D("-12345.6789"), D("123456789012345678901234567890.55"), 1.5, -0.1,
        "naïve 日本 🐦", "long", b"\x00\xff\n", moment.date(), datetime.timedelta(hours=-30, microseconds=1),
        moment, moment, document, [0.5, -1.0, 2.0], 2024, "high",
    )
    con.execute(f"INSERT INTO every VALUES ({','.join('?' * len(row))})", row)
    found = con.execute("SELECT * FROM every").fetchone()
    assert found == row
    assert found is not None
    assert [type(value) for value in found] == [type(value) for value in row]
    con.execute(f"INSERT INTO every VALUES (2{', NULL' * (len(row) - 1)})")
    assert con.execute("SELECT * FROM every WHERE id = 2").fetchone() == (2,) + (None,) * (len(row) - 1)


def test_python_has_more_types_than_sql(con: remora.Connection) -> None:
    def echo(value: Any) -> Any:
        row = con.execute("SELECT ?", (value,)).fetchone()
        assert row is not None
        return row[0]

    assert echo(True) == 1 and echo(False) == 0
    assert echo(10**40) == D(10**40)
    assert echo(bytearray(b"ab")) == echo(memoryview(b"ab")) == b"ab"
    assert echo(datetime.time(1, 2, 3, 4)) == datetime.timedelta(hours=1, minutes=2, seconds=3, microseconds=4)
    assert echo(D("1E+3")) == 1000 and echo(D("1E-3")) == D("0.001")
    assert echo(array.array("f", [1, 2])) == b"\x00\x00\x80?\x00\x00\x00@"

    class Text(str):
        pass

    assert echo(Text("x")) == "x"


def test_what_has_no_value_is_refused(con: remora.Connection) -> None:
    utc = datetime.timezone.utc
    for value, kind in [
        (object(), remora.ProgrammingError),
        ({1, 2}, remora.ProgrammingError),
        (1j, remora.ProgrammingError),
        (["x"], remora.ProgrammingError),
        ({1: 2}, remora.ProgrammingError),
        ({"a": datetime.date(2024, 1, 1)}, remora.ProgrammingError),
        (datetime.datetime(2024, 1, 1, tzinfo=utc), remora.ProgrammingError),
        (datetime.time(1, tzinfo=utc), remora.ProgrammingError),
        (math.nan, remora.DataError),
        (math.inf, remora.DataError),
        ([1e300], remora.DataError),
        ({"a": math.nan}, remora.DataError),
        ({"a": 2**64}, remora.DataError),
        (10**65, remora.DataError),
        (D("NaN"), remora.DataError),
        (D("Infinity"), remora.DataError),
        (D("1E-39"), remora.DataError),
        (D("1E+65"), remora.DataError),
        ("\ud800", remora.DataError),
        ({"a": "\ud800"}, remora.DataError),
        ({"\ud800": 1}, remora.DataError),
    ]:
        with pytest.raises(remora.Error) as caught:
            con.execute("SELECT ?", (value,))
        assert isinstance(caught.value, kind), value
    deep: Any = 1
    for _ in range(200_000):
        deep = [deep]
    with pytest.raises(remora.DataError, match="deeper than 100"):
        con.execute("SELECT ?", (remora.Json(deep),))


def test_what_no_document_has_is_named_with_its_place(con: remora.Connection) -> None:
    for value, words in [
        ({"a": {"b": [1, math.nan]}}, r"a\.b\[1\]: JSON has no number nan"),
        ([{"n": 2**64}], r"\[0\]\.n: an integer"),
        ({"a": [{1: 2}]}, r"a\[0\]: the keys of a document are texts"),
        ({"a": {"t": "\ud800"}}, r"a\.t: a text has half of a surrogate pair"),
        ({"a": {"\ud800": 1}}, r"a: a text has half of a surrogate pair"),
        ({"a": [{1, 2}]}, r"a\[0\]: a document takes no set"),
        (math.inf, r"^JSON has no number inf"),
    ]:
        with pytest.raises(remora.Error, match=words):
            con.execute("SELECT ?", (remora.Json(value),))
    with pytest.raises(remora.DataError, match=r"^x: JSON has no number nan"):
        con.collection("notes").insert({"x": math.nan})
    with pytest.raises(remora.DataError, match="surrogate"):
        con.collection("notes").count("\ud800")


def test_dates_that_no_calendar_has_are_texts(con: remora.Connection) -> None:
    con.execute("SET sql_mode = ''")
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, d DATE, dt DATETIME)")
    con.execute("INSERT INTO t VALUES (1, '0000-00-00', '2024-00-00 01:02:03')")
    assert con.execute("SELECT d, dt FROM t").fetchone() == ("0000-00-00", "2024-00-00 01:02:03")


def test_json_that_is_no_dict(con: remora.Connection) -> None:
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, doc JSON)")
    for number, value in enumerate([[1, 2, 3], "text", 5, 2.5, True, None, [[], {}]]):
        con.execute("INSERT INTO t VALUES (?, ?)", (number, remora.Json(value)))
        assert con.execute("SELECT doc FROM t WHERE id = ?", (number,)).fetchone() == (value,)
    # A list is a vector, whose bytes are no JSON.
    with pytest.raises(remora.Error):
        con.execute("INSERT INTO t VALUES (100, ?)", ([1, 2, 3],))


def test_random_values_come_back(con: remora.Connection) -> None:
    seed = int(os.environ.get("REMORA_SEED", random.randrange(2**32)))
    print(f"REMORA_SEED={seed}")
    draw = random.Random(seed)
    con.execute(EVERY)
    rows = []
    for number in range(300):
        def maybe(value: Any) -> Any:
            return None if draw.random() < 0.1 else value

        day = datetime.datetime(1970, 1, 2) + datetime.timedelta(seconds=draw.randrange(2**31 - 86400 * 2))
        moment = day.replace(microsecond=draw.randrange(1_000_000))
        text = "".join(chr(draw.choice([draw.randrange(32, 127), draw.randrange(0x4E00, 0x9FFF)])) for _ in range(20))
        rows.append((
            number, maybe(draw.randrange(-128, 128)), maybe(draw.randrange(-(2**63), 2**63)),
            maybe(draw.randrange(2**64)), maybe(D(draw.randrange(-(10**20) + 1, 10**20)).scaleb(-4)),
            maybe(D(draw.randrange(10**27)).scaleb(-2)), maybe(draw.randrange(-1000, 1000) / 8),
            maybe(draw.gauss(0, 1e10)), maybe(text), maybe(text * 100), maybe(draw.randbytes(draw.randrange(50))),
            maybe(moment.date()),
            maybe(datetime.timedelta(microseconds=draw.randrange(-3_020_399_000_000, 3_020_399_000_000))),
            maybe(moment), maybe(moment), maybe({text: [draw.random(), draw.randrange(-(2**63), 2**64)]}),
            maybe([draw.randrange(100) / 4 for _ in range(3)]), maybe(draw.randrange(1901, 2156)),
            maybe(draw.choice(["low", "high"])),
        ))
    con.executemany(f"INSERT INTO every VALUES ({','.join('?' * 19)})", rows)
    assert con.execute("SELECT * FROM every ORDER BY id").fetchall() == rows


def test_constructors() -> None:
    assert remora.Date(2024, 2, 29) == datetime.date(2024, 2, 29)
    assert remora.Time(1, 2, 3) == datetime.time(1, 2, 3)
    assert remora.Timestamp(2024, 2, 29, 1, 2, 3) == datetime.datetime(2024, 2, 29, 1, 2, 3)
    assert remora.Binary(b"x") == b"x"
    now = datetime.datetime.now().replace(microsecond=0)
    assert remora.TimestampFromTicks(now.timestamp()) == now
    assert remora.DateFromTicks(now.timestamp()) == now.date()
    assert remora.TimeFromTicks(now.timestamp()) == now.time()
