"""Collections of documents."""

import datetime
import os
import random
import time
from typing import Any, Dict, Iterator, List

import pytest

import remora
from remora import field, path


@pytest.fixture
def con() -> Iterator[remora.Connection]:
    """A connection without transactions: test_document_transactions.py has those."""
    connection = remora.connect(":memory:", autocommit=True)
    yield connection
    connection.close()


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


def test_pages_fields_and_facets(con: remora.Connection) -> None:
    books = con.collection("books")
    ids = books.insert_many({"year": 1990 + n % 3, "tags": ["sea", n % 2], "items": [{"n": n, "m": 1}]} for n in range(7))
    for is_indexed in (False, True):
        if is_indexed:
            books.index("year")
            while not all(ready for _, ready in books.indexes()):
                time.sleep(0.01)
        seen: List[int] = []
        cursor = None
        while True:
            page = books.find(sort="-year", limit=2, after=cursor, fields=["items.n", path("none")], facets=["tags", "year"])
            assert page.total == 7 and page.facets["tags"] == [("sea", 7), (0, 4), (1, 3)]
            assert page.facets["year"] == [(1990, 3), (1991, 2), (1992, 2)]
            assert all(it == {"items": [{"n": ids.index(id)}]} for id, it in page)
            seen += page.ids
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == [ids[n] for n in (2, 5, 1, 4, 0, 3, 6)]
    with pytest.raises(remora.ProgrammingError, match="another order"):
        books.find(after=books.find(sort="year", limit=1).cursor)


def test_conditions_on_elements_and_dates(con: remora.Connection) -> None:
    orders = con.collection("orders")
    one = orders.insert({"items": [{"sku": "x", "qty": 5}, {"sku": "y", "qty": 1}], "at": "2024-05-01T12:00:00Z"})
    other = orders.insert({"items": [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 5}], "at": "2024-05-02"})
    for condition in (
        "items HAS (sku = 'x' AND qty > 3)",
        field("items").has((field("sku") == "x") & (field("qty") > 3)),
        field("items").has("sku = 'x' AND qty > 3"),
    ):
        assert orders.find(condition).ids == [one]
    assert orders.find(field("at") == datetime.datetime(2024, 5, 1, 12)).ids == [one]
    assert orders.find(field("at") >= datetime.date(2024, 5, 2)).ids == [other]
    assert orders.find("at < DATE '2024-05-02'").ids == [one]
    assert orders.find(field("at").matches("T12")).ids == [one]
    for wrong in ("items HAS sku = 1", "at = DATE '2023-02-29'"):
        with pytest.raises(remora.ProgrammingError):
            orders.find(wrong)
    with pytest.raises(remora.ProgrammingError):
        field("items").has(None)  # type: ignore[arg-type]


def test_changes_of_all_that_a_filter_finds(con: remora.Connection) -> None:
    notes = con.collection("notes")
    notes.insert_many({"n": n} for n in range(10))
    assert notes.merge_patch_where("n < 4", {"old": True}) == 4
    assert notes.delete_where(field("old") == True) == 4  # noqa: E712
    assert sorted(it["n"] for it in notes.values()) == [4, 5, 6, 7, 8, 9]
    with pytest.raises(remora.ProgrammingError):
        notes.delete_where(None)  # type: ignore[arg-type]
    assert len(notes) == 6


def test_a_collection_is_a_mapping(con: remora.Connection) -> None:
    notes = con.collection("notes")
    ids = notes.insert_many({"n": n} for n in range(600))
    assert list(notes) == list(notes.keys()) == ids and [it["n"] for it in notes.values()] == list(range(600))
    assert list(notes.items()) == [(id, {"n": n}) for n, id in enumerate(ids)]
    assert dict(notes.items()) == {id: notes[id] for id in notes}
    assert ids[5] in notes and ids[5] + 10**6 not in notes and "5" not in notes and 2**70 not in notes
    assert notes.get(5) is None and notes.get(5, 7) == 7 and notes.get(ids[0], 7) == {"n": 0}
    notes[5] = [1]
    assert notes[5] == [1] and next(iter(notes)) == 5
    del notes[5]
    for missing in (5, "x", 2**70):
        with pytest.raises(KeyError):
            notes[missing]  # type: ignore[index]
        with pytest.raises(KeyError):
            del notes[missing]  # type: ignore[arg-type]
    # What is deleted while it is iterated is not met again.
    for id in notes:
        del notes[id]
    assert len(notes) == 0 and list(notes.items()) == []


def test_collections_with_keys_of_the_callers(con: remora.Connection) -> None:
    books = con.keyed_collection("books")
    books["b"] = {"year": 1999}
    books.insert_as("a", {"year": 2000})
    books.upsert("ü", {"year": 2001})
    assert list(books) == ["a", "b", "ü"] and "b" in books and 5 not in books
    assert books.page(after="a", limit=1) == [("b", {"year": 1999})]
    assert books.find("year > 1999", sort="-year").ids == ["ü", "a"]
    first = books.find(limit=2)
    assert books.find(after=first.cursor).ids == ["ü"]
    assert books.merge_patch("a", {"year": None}) == {} and books.patch("a", [{"op": "add", "path": "/x", "value": 1}]) == {"x": 1}
    versioned = books.get_versioned("a")
    assert versioned is not None and books.replace_if("a", versioned[1], {}) != versioned[1]
    assert books.delete("a") and books.delete_where("year EXISTS") == 2
    assert (con.collections(), con.keyed_collections()) == ([], ["books"])
    for refused in (lambda: books.insert({}), lambda: books.insert_many([{}]), lambda: books.get(5),  # type: ignore[arg-type]
                    lambda: books.upsert("", {}), lambda: con.collection("books").get("a")):  # type: ignore[arg-type]
        with pytest.raises(remora.Error):
            refused()  # type: ignore[no-untyped-call]


def test_a_batch_is_done_whole_or_not_at_all(place: str) -> None:
    con = remora.connect(place, autocommit=True)
    con.execute("CREATE TABLE made (id INT PRIMARY KEY)")
    birds, notes, books = con.table("made"), con.collection("notes"), con.keyed_collection("books")
    kept, gone = notes.insert_many([{"n": 1}, {"n": 2}])
    books["a"] = {"year": 1999}
    versioned = books.get_versioned("a")
    assert versioned is not None
    with con.batch() as batch:
        made = batch.insert_document(notes, {"n": 3})
        batch.insert_document_as(notes, 5, {"n": 5})
        batch.upsert_document(books, "b", {"year": 2000})
        version = batch.replace_document_if(books, "a", versioned[1], {"year": 2001})
        batch.merge_patch_document(books, "a", {"x": None, "y": 1})
        batch.patch_document(notes, kept, [{"op": "add", "path": "/tags", "value": ["t"]}])
        batch.replace_document(notes, 5, {"n": 6})
        batch.delete_document(notes, gone)
        batch.delete_found_documents(books, "year = 2000")
        assert made not in notes and len(books) == 1 and version != versioned[1]
    assert dict(notes.items()) == {5: {"n": 6}, kept: {"n": 1, "tags": ["t"]}, made: {"n": 3}}
    assert dict(books.items()) == {"a": {"year": 2001, "y": 1}}
    with pytest.raises(remora.ProgrammingError, match="was committed"):
        batch.commit()
    # An exception, a change that is refused, one that cannot be done: nothing is.
    with pytest.raises(ZeroDivisionError), con.batch() as batch:
        batch.delete_document(notes, kept)
        raise ZeroDivisionError
    with pytest.raises(remora.ProgrammingError, match="was refused"), con.batch() as batch:
        batch.delete_document(notes, kept)
        with pytest.raises(remora.ProgrammingError, match="SQL"):
            batch.add(birds, {"id": 1})
    for change in (
        lambda it: it.insert_document_as(notes, 5, {}),
        lambda it: it.replace_document(books, "none", {}),
        lambda it: it.replace_document_if(books, "a", 1, {}),
    ):
        batch = con.batch()
        batch.delete_document(notes, kept)
        change(batch)
        with pytest.raises(remora.Error):
            batch.commit()
    for refused in (
        lambda: con.batch().insert_document(books, {}),  # type: ignore[arg-type]
        lambda: con.batch().upsert_document(notes, "x", {}),  # type: ignore[misc]
        lambda: con.batch().delete_found_documents(notes, None),  # type: ignore[arg-type]
        lambda: con.batch().upsert_document(remora.connect(":memory:").collection("notes"), 1, {}),
    ):
        with pytest.raises(remora.ProgrammingError):
            refused()
    assert len(notes) == 3
    batch = con.batch()
    con.close()
    with pytest.raises(remora.InterfaceError):
        batch.commit()


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
