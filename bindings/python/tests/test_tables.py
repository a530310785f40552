"""Tables: rows and searches."""

import datetime
import decimal
import os
import random
from typing import Any, Dict, List

import pytest

import remora
from remora import field

WORDS = ["reef", "heron", "kite", "coral", "river", "lake", "日本", "東京"]


def articles(con: remora.Connection, count: int, draw: random.Random) -> List[Dict[str, Any]]:
    con.execute("CREATE TABLE articles (id INT PRIMARY KEY, body TEXT, year INT, country VARCHAR(20), FULLTEXT (body))")
    rows = [
        {
            "id": n,
            "body": " ".join(draw.choices(WORDS, k=5)),
            "year": draw.randrange(1990, 2000),
            "country": draw.choice(["fr", "jp", None]),
        }
        for n in range(count)
    ]
    assert con.table("articles").add(rows) == count
    return rows


def test_searches_are_what_reading_every_row_answers(con: remora.Connection) -> None:
    seed = int(os.environ.get("REMORA_SEED", random.randrange(2**32)))
    print(f"REMORA_SEED={seed}")
    draw = random.Random(seed)
    rows = articles(con, 500, draw)
    table = con.table("articles")
    for _ in range(60):
        text, year = draw.choice(WORDS)[: draw.randrange(1, 5)], draw.randrange(1990, 2000)
        filters: List[Any] = [
            (f"year >= {year}", lambda row: row["year"] >= year),
            (field("year") < year, lambda row: row["year"] < year),
            ((field("country") == "fr") | ~(field("year") != year),
             lambda row: row["country"] == "fr" or row["year"] == year),
            (field("year").is_in([year, 1990]) & field("country").exists(),
             lambda row: row["year"] in (year, 1990) and row["country"] is not None),
            (field("country") == None, lambda row: row["country"] is None),  # noqa: E711
            (field("year").between(year, 1998), lambda row: year <= row["year"] <= 1998),
            (field("country").begins_with("j"), lambda row: row["country"] == "jp"),
        ]
        condition, holds = draw.choice(filters)
        expected = [row for row in rows if text in row["body"] and holds(row)]
        found = table.search(text, condition, limit=1000, order_by="_key")
        assert found.rows == expected
        assert found.total == table.count(text, condition) == len(expected)
        assert list(found) == expected and len(found) == len(expected)
        by_year = table.search(text, condition, limit=10, offset=3, order_by=["-year", "id"])
        assert by_year.rows == sorted(expected, key=lambda row: (-row["year"], row["id"]))[3:13]


def test_pages_facets_snippets_and_scores(con: remora.Connection) -> None:
    articles(con, 300, random.Random(7))
    seen, after = [], None
    while True:
        found = con.search("articles", "reef", limit=7, after=after, columns=["id"])
        if not found.rows:
            break
        seen += [row["id"] for row in found]
        after = found.cursor
    assert seen == [row["id"] for row in con.search("articles", "reef", limit=1000)]
    assert seen == sorted(seen, reverse=True) and len(seen) > 100
    found = con.search("articles", "reef", facets=["year", "country"], highlight=("<b>", "</b>"))
    assert sum(count for _, count in found.facets["year"]) == found.total
    assert set(found.facets) == {"year", "country"}
    assert all(snippet and "<b>reef</b>" in snippet for snippet in found.snippets)
    assert found.scores == [None] * len(found)
    scores = con.search("articles", "reef", order_by="_score").scores
    assert scores == sorted(scores, key=lambda score: score or 0.0, reverse=True) and scores[0]
    assert found[0] == found.rows[0] and found[:2] == found.rows[:2] and found[-1] == found.rows[-1]


def test_rows_by_key(con: remora.Connection) -> None:
    con.execute("CREATE TABLE pairs (a INT, b VARCHAR(10), n DECIMAL(5, 1), PRIMARY KEY (a, b))")
    pairs = con.table("pairs")
    assert pairs.add({"a": 1, "b": "x", "n": decimal.Decimal("2.5")}) == 1
    assert pairs.get((1, "x")) == {"a": 1, "b": "x", "n": decimal.Decimal("2.5")}
    assert pairs.get((1, "y")) is None
    assert pairs.upsert([{"a": 1, "b": "x", "n": 3}, {"a": 2, "b": "y"}]) == 2
    assert len(pairs) == 2 and pairs.get((2, "y")) == {"a": 2, "b": "y", "n": None}
    with pytest.raises(remora.ProgrammingError, match="key"):
        pairs.get(1)
    # SQL keeps what it declares.
    with pytest.raises(remora.ProgrammingError, match="SQL"):
        pairs.delete((1, "x"))


def test_add_is_all_or_nothing(con: remora.Connection) -> None:
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, body TEXT, FULLTEXT (body))")
    table = con.table("t")
    with pytest.raises(remora.IntegrityError):
        table.add([{"id": 1}, {"id": 2}, {"id": 1}])
    with pytest.raises(remora.ProgrammingError):
        table.add([{"id": 1}, {"id": 2, "nothing": 3}])
    assert len(table) == 0
    wrong: List[Any] = [5, [5], [{1: 2}], "text"]
    for rows in wrong:
        with pytest.raises((remora.ProgrammingError, TypeError)):
            table.add(rows)
    assert table.add([]) == 0


def test_names_are_quoted(con: remora.Connection) -> None:
    con.execute("CREATE DATABASE `a``b`")
    con.execute("CREATE TABLE `a``b`.`odd ``name` (id INT PRIMARY KEY, `c ``d` TEXT, FULLTEXT (`c ``d`))")
    name = "a`b.odd `name"
    assert con.tables() == [name]
    assert con.table(name).add({"id": 1, "c `d": "reef"}) == 1
    assert con.search(name, "reef").rows == [{"id": 1, "c `d": "reef"}]


def test_a_collection_is_a_table_whose_rows_are_written_without_sql(con: remora.Connection) -> None:
    # It has a definition of its own and no SQL's, as those of `remora import` do.
    con.collection("notes")
    table = con.table("notes")
    assert table.add([{"id": 1, "doc": {"a": [1]}}, {"id": 2, "doc": [1, 2]}]) == 2
    assert table.upsert({"id": 2, "doc": "text"}) == 1
    assert table.get(1) == {"id": 1, "doc": {"a": [1]}} and table.get(2) == {"id": 2, "doc": "text"}
    assert table.delete(1) and not table.delete(1)
    with pytest.raises(remora.IntegrityError):
        table.add({"id": 2, "doc": {}})


def test_what_is_not_there_is_told(con: remora.Connection) -> None:
    with pytest.raises(remora.ProgrammingError, match="nowhere"):
        con.table("nowhere")
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, body TEXT, d DATE, FULLTEXT (body))")
    table = con.table("t")
    for filter in ("id >", "nothing = 1", field("nothing") == 1, 5):
        with pytest.raises(remora.ProgrammingError):
            table.search("x", filter)
    for order in ("nothing", ["id", 5]):
        with pytest.raises(remora.ProgrammingError):
            table.search("x", order_by=order)
    with pytest.raises(TypeError, match="no truth"):
        _ = (field("id") == 1) and (field("id") == 2)
    table.add({"id": 1, "body": "x", "d": datetime.date(2024, 2, 29)})
    assert table.search(filter=field("d") == datetime.date(2024, 2, 29)).total == 1
    con.execute("DROP TABLE t")
    with pytest.raises(remora.ProgrammingError):
        table.search("x")
