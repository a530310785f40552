"""What tests begin with: a connection to memory, and a directory for a database."""

import pathlib
from typing import Iterator

import pytest

import remora


@pytest.fixture
def con() -> Iterator[remora.Connection]:
    connection = remora.connect(":memory:")
    yield connection
    connection.close()


@pytest.fixture
def place(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "database")
