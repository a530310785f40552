"""Documents in the transaction of a connection."""

from typing import Any, Iterator, List

import pytest

import remora
from remora import field


@pytest.fixture
def other(place: str) -> Iterator[remora.Connection]:
    connection = remora.connect(place, autocommit=True)
    connection.execute("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT)")
    connection.execute("INSERT INTO accounts VALUES (7, 100)")
    yield connection
    connection.close()


@pytest.fixture
def one(place: str, other: remora.Connection) -> Iterator[remora.Connection]:
    connection = remora.connect(place)
    yield connection
    connection.close()


def test_documents_and_rows_are_one_transaction(one: remora.Connection, other: remora.Connection) -> None:
    orders, seen = one.collection("orders"), other.collection("orders")
    for end in (one.rollback, one.commit):
        assert not one.in_transaction
        order = orders.insert({"account": 7, "price": 30})
        assert one.in_transaction
        one.execute("UPDATE accounts SET balance = balance - 30 WHERE id = 7")
        assert orders.merge_patch(order, {"paid": True}) == {"account": 7, "price": 30, "paid": True}
        assert one.execute("SELECT SUM(doc->'$.price') FROM orders").fetchone() == (30.0,)
        assert orders.get(order) == {"account": 7, "price": 30, "paid": True} and len(orders) == 1
        assert len(seen) == 0 and order not in seen
        assert other.execute("SELECT balance FROM accounts").fetchone() == (100,)
        end()
    assert seen.get(order) == {"account": 7, "price": 30, "paid": True}
    assert other.execute("SELECT balance FROM accounts").fetchone() == (70,)
    # An exception that leaves a block leaves nothing.
    with pytest.raises(KeyError):
        with one:
            orders.insert({"price": 1})
            raise KeyError
    with one:
        orders.upsert(1, {"price": 1})
    assert len(seen) == len(orders) == 2 and seen[1] == {"price": 1}


def test_every_call_is_part_of_the_transaction(one: remora.Connection, other: remora.Connection) -> None:
    notes, seen = one.collection("notes"), other.collection("notes")
    seen.insert_many({"n": n} for n in range(3))
    first = next(iter(seen))
    before = seen.items()
    kept = list(before)
    many = notes.insert_many({"n": n} for n in range(10, 12))
    notes.insert_as(5, {"n": 5})
    with pytest.raises(remora.IntegrityError):
        notes.insert_as(5, {})
    notes[6] = {"n": 6}
    notes.replace(6, {"n": 7})
    with pytest.raises(remora.ProgrammingError):
        notes.replace(8, {})
    assert notes.patch(6, [{"op": "replace", "path": "/n", "value": 8}]) == {"n": 8}
    versioned = notes.get_versioned(6)
    assert versioned is not None
    notes.replace_if(6, versioned[1], {"n": 9})
    with pytest.raises(remora.ConflictError):
        notes.replace_if(6, versioned[1], {"n": 9})
    del notes[many[0]]
    assert notes.delete(first) and not notes.delete(first)
    assert 5 in notes and first not in notes
    expected: List[Any] = [(5, {"n": 5}), (6, {"n": 9}), *kept[1:], (many[1], {"n": 11})]
    assert list(notes.items()) == expected and notes.page(limit=100) == expected
    assert list(notes) == [id for id, _ in expected] == list(notes.keys())
    assert notes.page(after=6, limit=1) == expected[2:3]
    assert list(notes.find()) == expected and notes.count() == len(notes) == 5
    found = notes.find(field("n") > 4, sort="-n", limit=2, facets="n")
    assert found.total == 3 and found.documents == [{"n": 11}, {"n": 9}]
    assert found.facets["n"] == [(5, 1), (9, 1), (11, 1)]
    assert notes.merge_patch_where("n > 5", {"big": True}) == 2
    assert notes.delete_where("n = 5") == 1
    assert [doc for doc in notes.values() if "big" in doc] == [{"n": 9, "big": True}, {"n": 11, "big": True}]
    # A change of several documents is undone whole, and the transaction goes on.
    with pytest.raises(remora.Error):
        notes.merge_patch_where("n > 5", {"n": "x" * (17 << 20)})
    assert notes.count("n > 5") == 2
    assert list(seen.items()) == kept
    one.commit()
    assert list(seen.items()) == list(notes.items()) and len(seen) == 4
    books, theirs = one.keyed_collection("books"), other.keyed_collection("books")
    books["a"] = {"n": 1}
    books.insert_as("b", {"n": 2})
    assert list(books) == ["a", "b"] and list(theirs) == []
    one.rollback()
    assert list(books) == []


def test_a_transaction_reads_one_moment_and_conflicts(one: remora.Connection, other: remora.Connection) -> None:
    notes, theirs = one.collection("notes"), other.collection("notes")
    theirs[1] = {"n": 1}
    assert notes.get(1) == {"n": 1} and one.in_transaction
    theirs[1] = {"n": 2}
    assert notes.get(1) == {"n": 1} and list(notes.values()) == [{"n": 1}]
    notes[1] = {"n": 3}
    with pytest.raises(remora.ConflictError):
        one.commit()
    assert notes.get(1) == {"n": 2}
    one.rollback()
    # What defines commits, as in SQL.
    one.execute("INSERT INTO accounts VALUES (8, 1)")
    made = one.collection("made")
    assert not one.in_transaction and other.execute("SELECT COUNT(*) FROM accounts").fetchone() == (2,)
    made.insert({"n": 1})
    one.collection("made")
    assert one.in_transaction and len(made) == 1
    one.rollback()
    assert len(made) == 0
    made.insert({"n": 2})
    made.index_unique("n")
    assert not one.in_transaction and len(other.collection("made")) == 1
    # A value at a unique path is compared at the commit.
    other.collection("made").insert({"n": 1})
    made.insert({"n": 1})
    with pytest.raises((remora.IntegrityError, remora.ConflictError)):
        one.commit()
    one.rollback()
    assert len(made) == 2


def test_begin_and_savepoints(other: remora.Connection) -> None:
    notes = other.collection("notes")
    notes[1] = {"n": 1}
    other.execute("BEGIN")
    notes[2] = {"n": 2}
    other.execute("SAVEPOINT s")
    notes[3] = {"n": 3}
    other.execute("ROLLBACK TO s")
    assert list(notes) == [1, 2]
    other.execute("ROLLBACK")
    assert list(notes) == [1] and not other.in_transaction
    other.autocommit = False
    notes[2] = {"n": 2}
    other.autocommit = True
    assert list(notes) == [1, 2] and not other.in_transaction
    notes[3] = {"n": 3}
    other.rollback()
    assert list(notes) == [1, 2, 3]
