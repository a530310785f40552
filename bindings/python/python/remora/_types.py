"""The types of PEP 249: what makes values, and what columns hold."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass
from typing import Any, FrozenSet, Union

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The date at so many seconds since 1970, by the clock of this machine."""
    return datetime.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The time of day at so many seconds since 1970, by the clock of this machine."""
    return datetime.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The date and time at so many seconds since 1970, by the clock of this machine."""
    return datetime.datetime(*time.localtime(ticks)[:6])


@dataclass(frozen=True)
class Json:
    """A value for a column of JSON that is no dict, which needs none: a list, a text, a number."""

    value: Any


class ColumnKind:
    """Columns of one kind: equal to the type code of each of them in ``Cursor.description``."""

    def __init__(self, name: str, *codes: str) -> None:
        self._name = name
        self.codes: FrozenSet[str] = frozenset(codes)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ColumnKind):
            return self.codes == other.codes and self._name == other._name
        return other in self.codes

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self._name, self.codes))

    def __repr__(self) -> str:
        return f"remora.{self._name}"


STRING = ColumnKind("STRING", "text", "json")
BINARY = ColumnKind("BINARY", "bytes", "vector")
NUMBER = ColumnKind("NUMBER", "int", "uint", "float", "double", "decimal", "bool")
DATETIME = ColumnKind("DATETIME", "date", "time", "datetime", "timestamp")
#: No column is of it: rows are known by their keys.
ROWID = ColumnKind("ROWID")

#: A column of ``Cursor.description``.
Description = tuple[str, str, None, None, Union[int, None], Union[int, None], bool]
