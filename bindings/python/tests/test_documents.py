"""Collections of documents."""

import os
import random
import time
from typing import Any, Dict, List

import pytest

import remora
from remora import field, path


def test_the_life_of_a_document(con: remora.Connection) -> None:
    notes = con.collection("notes")
    document = {"author": {"name": "Ann"}, "stars": 4, "tags": ["ui"], "é": None}
    one = notes.insert(document)
    assert notes.get(one) == document and notes.get(one + 1) is None
    others = notes.insert_many({"n": n} for n in range(3))
    assert others == sorted(others) and others[0] > one and len(notes) == 4
    notes.replace(one, {"stars": 1})
    assert notes.merge_patch(one, {"stars": 5, "x": {"y": 1}}) == {"stars": 5, "x": {"y": 1}}
    patched = notes.patch(one, [{"op": "test", "path": "/stars", "value": 5}, {"op": "remove", "path": "/x"}])
    assert patched == notes.get(one) == {"stars": 5}
    with pytest.raises(remora.ConflictError, match="test"):
        notes.patch(one, [{"op": "test", "path": "/stars", "value": 6}])
    versioned = notes.get_versioned(one)
    assert versioned is not None
    found, version = versioned
    new = notes.replace_if(one, version, {**found, "n": 1})
    assert new != version and notes.get(one) == {"stars": 5, "n": 1}
    with pytest.raises(remora.ConflictError, match="changed"):
        notes.replace_if(one, version, {})
    notes.insert_as(7, {"n": 7})
    with pytest.raises(remora.IntegrityError):
        notes.insert_as(7, {})
    notes.upsert(7, {"n": 8})
    assert notes.page(limit=2) == [(7, {"n": 8}), (one, {"stars": 5, "n": 1})]
    assert notes.page(after=one, limit=1) == [(others[0], {"n": 0})]
    assert notes.delete(7) and not notes.delete(7)
    with pytest.raises(remora.ProgrammingError, match="no document 7"):
        notes.replace(7, {})
    # SQL sees it as a table.
    assert con.execute("SELECT doc->>'$.n' FROM notes WHERE id = ?", (others[2],)).fetchone() == ("2",)


def test_finds_are_what_reading_every_document_answers(con: remora.Connection) -> None:
    seed = int(os.environ.get("REMORA_SEED", random.randrange(2**32)))
    print(f"REMORA_SEED={seed}")
    draw = random.Random(seed)
    books = con.collection("books")
    documents: List[Dict[str, Any]] = [
        {"year": draw.randrange(1990, 2000), "tags": draw.sample(["sea", "sky", "ice"], draw.randrange(3)),
         "author": {"name": draw.choice(["Ann", "Bo"])}}
        for _ in range(300)
    ]
    ids = books.insert_many(documents)
    pairs = list(zip(ids, documents))
    for is_indexed in (False, True):
        if is_indexed:
            assert books.index("year") and books.index(path("author", "name")) and not books.index("year")
            assert books.index("author.name", "year") and books.index_text("author.name", "tags")
            while not all(ready for _, ready in books.indexes()):
                time.sleep(0.01)
            named = ["year", "author.name", "author.name, year", "texts of author.name, tags"]
            assert books.indexes() == [(name, True) for name in named]
            assert books.explain("year > 1995") == (["year"], True)
            assert books.explain("author.name = 'Ann' AND year > 1995") == (["author.name, year"], True)
            assert books.explain("(tags, author.name) MATCHES 'a'") == (["texts of author.name, tags"], True)
        for _ in range(40):
            year = draw.randrange(1990, 2000)
            condition, holds = draw.choice([
                (f"year = {year} AND tags = 'sea'", lambda it: it["year"] == year and "sea" in it["tags"]),
                ((field("author.name") == "Ann") & (field("year") > year),
                 lambda it: it["author"]["name"] == "Ann" and it["year"] > year),
                ("(author.name, tags) MATCHES 'A'",
                 lambda it: "a" in it["author"]["name"].lower() or "sea" in it["tags"]),
                (None, lambda it: True),
            ])
            expected = [(id, it) for id, it in pairs if holds(it)]
            found = books.find(condition)
            assert list(found) == expected and found.total == books.count(condition) == len(expected)
            assert found.ids == [id for id, _ in expected] and found.documents == [it for _, it in expected]
            best = books.find(condition, sort=["-year", "author.name"], limit=5, offset=2)
            order = sorted(expected, key=lambda pair: (-pair[1]["year"], pair[1]["author"]["name"], pair[0]))
            assert list(best) == order[2:7] and best.total == len(expected)
    assert books.drop_index("year") and not books.drop_index("year")


def test_paths_are_given_in_several_ways(con: remora.Connection) -> None:
    books = con.collection("books")
    assert books.index(path="a") and not books.index("a") and not books.index(["a"]) and not books.index(path("a"))
    assert books.index(["author.name", "year"]) and not books.index("author.name", "year")
    assert not books.index((path("author", "name"), "year")) and not books.index(path=["author.name", "year"])
    assert books.index_text(["title", "body"]) and not books.index_text("body", "title")
    named = ["a", "author.name, year", "texts of title, body"]
    assert [name for name, _ in books.indexes()] == named
    with pytest.raises(remora.ProgrammingError, match="path="):
        books.index("b", path="c")
    for none in ([], [["a"]], 5):
        with pytest.raises(remora.ProgrammingError, match="path"):
            books.index(none)  # type: ignore[arg-type]
    with pytest.raises(remora.ProgrammingError, match="path"):
        books.index()
    assert [name for name, _ in books.indexes()] == named
    assert books.drop_index(path="a") and books.drop_index(["author.name", "year"])
    assert books.drop_index_text(("body", "title")) and books.indexes() == []


def test_unique_paths(con: remora.Connection) -> None:
    users = con.collection("users")
    assert users.index_unique("email") and not users.index_unique("email")
    users.insert({"email": "ann"})
    with pytest.raises(remora.IntegrityError, match="email"):
        users.insert({"email": "ann"})
    assert len(users) == 1
    assert users.index_unique("team", "number") and not users.index_unique(["team", "number"])
    users.insert({"team": "red", "number": 7})
    users.insert({"team": "red"})
    with pytest.raises(remora.IntegrityError, match="team, number"):
        users.insert({"team": "red", "number": 7})


def test_names_of_collections(con: remora.Connection) -> None:
    con.collection("a").insert({})
    con.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    assert (con.tables(), con.collections()) == (["a", "t"], ["a"])
    con.rename_collection("a", "b")
    old = con.collection("b")
    assert con.collections() == ["b"] and old.count() == 1 and old.name == "b"
    with pytest.raises(remora.IntegrityError):
        con.collection("t")
    con.drop("b")
    with pytest.raises(remora.ProgrammingError, match="dropped"):
        old.count()
    with pytest.raises(remora.ProgrammingError, match="SQL"):
        con.drop("t")


def test_what_is_no_document_is_refused(con: remora.Connection) -> None:
    notes = con.collection("notes")
    cycle: List[Any] = []
    cycle.append(cycle)
    for document, kind in [
        ({1: 2}, remora.ProgrammingError), ({"a": {1, 2}}, remora.ProgrammingError),
        ({"a": b"x"}, remora.ProgrammingError), ({"a": 2**64}, remora.DataError),
        ({"a": float("nan")}, remora.DataError), (cycle, remora.DataError),
        ("x" * (17 << 20), remora.ProgrammingError),
    ]:
        with pytest.raises(kind):
            notes.insert(document)
    for documents in (5, [{}, object()]):
        with pytest.raises((remora.ProgrammingError, TypeError)):
            notes.insert_many(documents)  # type: ignore[arg-type]
    assert len(notes) == 0
    # It need not be an object.
    assert notes.get(notes.insert([1, (2, 3)])) == [1, [2, 3]]
