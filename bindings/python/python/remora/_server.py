"""Sessions of a running server, Remora's or a MySQL, over MySQL's protocol: PyMySQL carries the bytes."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import json
import os
import re
import struct
import threading
from typing import Any, Callable, Iterable, List, Mapping, NoReturn, Optional, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from . import _errors
from ._errors import InterfaceError, NotSupportedError, OperationalError, ProgrammingError
from ._remora import CONFLICT, DATA, INTEGRITY, NOT_SUPPORTED
from ._types import Description, Json

#: The driver, with which a server is connected to.
DRIVER = "pymysql"
#: What a URL may say behind its ``?``: a setting and what reads it.
SETTINGS: Mapping[str, Callable[[str], Any]] = {
    **{name: int for name in ("connect_timeout", "read_timeout", "write_timeout")},
    "ssl_ca": str,
}

#: MySQL's numbers of types of columns, and their names in ``Cursor.description``.
KINDS = {
    **{number: "int" for number in (1, 2, 3, 8, 9, 13)},
    **{0: "decimal", 246: "decimal", 4: "float", 5: "double", 7: "timestamp", 10: "date", 11: "time", 12: "datetime"},
    **{14: "date", 16: "bytes", 242: "vector", 245: "json", 255: "bytes"},
}
UNSIGNED = 32
BINARY_CHARSET = 63
JSON_TYPE = 245
IN_TRANSACTION = 1

#: A quoted text, a name, a comment; a named parameter; ``?``; ``::``, ``:=`` and words, which are no parameters.
TOKENS = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|/\*.*?\*/|--[ \t\n][^\n]*|#[^\n]*|::|:=|"
    r"%\((?P<format>[^()\n]+)\)s|:(?P<name>[A-Za-z_]\w*)|\w+|(?P<place>\?)|.",
    re.DOTALL | re.ASCII,
)

Given = TypeVar("Given")


class ServerAnswer:
    """What a statement answered: as the answers of the engine in this process."""

    def __init__(self, cursor: Any) -> None:
        self._description = None if cursor.description is None else _columns(cursor)
        self._rows: List[tuple[Any, ...]] = [] if self._description is None else list(cursor.fetchall())
        self.has_rows = self._description is not None
        self.row_count: int = len(self._rows) if self.has_rows else max(cursor.rowcount, 0)
        self.last_insert_id: int = cursor.lastrowid or 0
        self.warnings: int = getattr(cursor, "warning_count", 0)
        self.fetched = 0

    def description(self) -> Optional[tuple[Description, ...]]:
        return self._description

    def fetch_one(self) -> Optional[tuple[Any, ...]]:
        rows = self.fetch(1)
        return rows[0] if rows else None

    def fetch(self, count: Optional[int] = None) -> List[tuple[Any, ...]]:
        end = None if count is None else self.fetched + max(count, 0)
        rows = self._rows[self.fetched : end]
        self.fetched += len(rows)
        return rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        arrow = importlib.import_module("pyarrow")
        described = self._description or ()
        types = {
            **{"int": arrow.int64(), "uint": arrow.uint64(), "float": arrow.float32(), "double": arrow.float64()},
            **{"text": arrow.string(), "json": arrow.string(), "bytes": arrow.binary(), "date": arrow.date32()},
            **{name: arrow.timestamp("us") for name in ("datetime", "timestamp")},
        }
        columns: List[Any] = []
        for place, column in enumerate(described):
            values = [row[place] for row in self._rows]
            if column[1] == "json":
                values = [None if value is None else json.dumps(value) for value in values]
            columns.append(arrow.array(values, types.get(column[1])))
        return arrow.table(columns, names=[column[0] for column in described])

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        return importlib.import_module("polars").from_arrow(self.to_arrow())


class ServerSession:
    """A session of a server, for one statement at a time of whichever thread."""

    def __init__(self, url: str, autocommit: bool) -> None:
        try:
            self._driver = importlib.import_module(DRIVER)
        except ImportError as error:
            raise NotSupportedError(
                "a server is connected to with PyMySQL, which is not installed: pip install remora[server]"
            ) from error
        self._settings = {**_settings(url), "autocommit": autocommit, "conv": self._conversions()}
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection = self._call(lambda: self._driver.connect(**self._settings))

    def run(self, text: str, parameters: Any = None) -> ServerAnswer:
        with self._lock:
            return self._run(_names_of(parameters), text, parameters)

    def run_many(self, text: str, parameters: Iterable[Any]) -> tuple[int, int]:
        given = list(parameters)
        changed = last = 0
        with self._lock:
            names = _names_of(given[0] if given else None)
            is_own = self.autocommit() and not self.in_transaction()
            self._run(False, "BEGIN" if is_own else "SAVEPOINT remora_executemany", None)
            try:
                for values in given:
                    answer = self._run(names, text, values)
                    changed += answer.row_count
                    last = answer.last_insert_id or last
            except BaseException:
                # After a conflict the server has rolled back everything, the savepoint too.
                if self._connection.open:
                    with contextlib.suppress(Exception):
                        self._run(False, "ROLLBACK" if is_own else "ROLLBACK TO SAVEPOINT remora_executemany", None)
                raise
            self._run(False, "COMMIT" if is_own else "RELEASE SAVEPOINT remora_executemany", None)
        return changed, last

    def in_transaction(self) -> bool:
        self._check()
        return bool(self._connection.server_status & IN_TRANSACTION)

    def autocommit(self) -> bool:
        self._check()
        return bool(self._connection.get_autocommit())

    def interrupt(self) -> None:
        self._check()
        # The lock is that of the statement, so this has a connection of its own.
        other = self._call(lambda: self._driver.connect(**self._settings))
        try:
            self._call(lambda: other.cursor().execute(f"KILL QUERY {self._connection.thread_id()}"))
        finally:
            other.close()

    def close(self) -> None:
        if self._process == os.getpid():
            with self._lock:
                if self._connection.open:
                    self._call(self._connection.close)

    def path(self) -> str:
        self._refuse("a directory")

    def table(self, name: str) -> NoReturn:
        self._refuse("Table")

    def collection(self, name: str) -> NoReturn:
        self._refuse("Collection")

    def keyed_collection(self, name: str) -> NoReturn:
        self._refuse("Collection")

    def batch(self) -> NoReturn:
        self._refuse("Batch")

    def tables(self) -> List[str]:
        return [str(row[0]) for row in self.run("SHOW TABLES").fetch()]

    def collections(self) -> NoReturn:
        self._refuse("Collection")

    def keyed_collections(self) -> NoReturn:
        self._refuse("Collection")

    def drop(self, name: str) -> None:
        self._refuse("drop")

    def rename_collection(self, from_: str, to: str) -> None:
        self._refuse("Collection")

    def _refuse(self, what: str) -> NoReturn:
        raise NotSupportedError(f"a connection to a server has only statements, and no {what}")

    def _run(self, names: bool, text: str, parameters: Any) -> ServerAnswer:
        self._check()
        if parameters is not None:
            text = self._bound(names, text, parameters)
        cursor = self._connection.cursor()
        try:
            self._call(lambda: cursor.execute(text))
            return ServerAnswer(cursor)
        finally:
            cursor.close()

    def _bound(self, names: bool, text: str, parameters: Any) -> str:
        """The statement with its values in it."""
        if not names and (isinstance(parameters, (str, bytes, bytearray)) or _names_of(parameters)):
            raise ProgrammingError(
                "the parameters are a sequence, as (value,) is, or, for all executions, a mapping of names"
            )
        places = None if names else list(parameters)
        used = 0

        def put(found: re.Match[str]) -> str:
            nonlocal used
            if places is None:
                name = found["format"] or found["name"]
                if name is None:
                    return found[0]
                if name not in parameters:
                    raise ProgrammingError(f"parameter {name!r} has no value")
                return self._literal(parameters[name])
            if found["place"] is None:
                return found[0]
            used += 1
            return self._literal(places[used - 1]) if used <= len(places) else found[0]

        bound = TOKENS.sub(put, text)
        if places is not None and used != len(places):
            raise ProgrammingError(f"the statement has {used} ?, but {len(places)} values are given")
        return bound

    def _literal(self, value: Any) -> str:
        if isinstance(value, dict):
            value = json.dumps(value)
        elif isinstance(value, Json):
            value = json.dumps(value.value)
        elif isinstance(value, (list, tuple)):
            # A vector, as the engine in this process stores it.
            value = struct.pack(f"<{len(value)}f", *value)
        elif isinstance(value, memoryview):
            value = bytes(value)
        elif hasattr(value, "item") and not isinstance(value, (str, bytes, bytearray)):
            value = value.item()
        if isinstance(value, (datetime.datetime, datetime.time)) and value.tzinfo is not None:
            raise ProgrammingError("a time with a zone has no counterpart in MySQL: convert it to the session's zone")
        return str(self._call(lambda: self._connection.escape(value, self._connection.encoders)))

    def _conversions(self) -> dict[Any, Any]:
        converters = importlib.import_module(f"{DRIVER}.converters")
        return {**converters.conversions, JSON_TYPE: json.loads}

    def _check(self) -> None:
        if self._process != os.getpid():
            raise InterfaceError("this process was forked from the one that has the connection: connect anew")
        if not self._connection.open:
            raise InterfaceError("the connection is closed")

    def _call(self, work: Callable[[], Given]) -> Given:
        try:
            return work()
        except self._driver.err.Error as error:
            raise _raised(error) from error
        except (OSError, UnicodeError) as error:
            raise OperationalError(str(error)) from error


def is_server(place: str) -> bool:
    """Whether a text is the URL of a server."""
    return place.startswith("mysql://")


def _settings(url: str) -> dict[str, Any]:
    """What the driver is told of a URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError as error:
        raise ProgrammingError(f"the URL is wrong: {error}") from error
    settings: dict[str, Any] = {
        "host": parts.hostname or "127.0.0.1",
        "port": port,
        "user": unquote(parts.username or "root"),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path[1:]) or None,
        "charset": "utf8mb4",
    }
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        reads = SETTINGS.get(name)
        if reads is None:
            raise ProgrammingError(f"the URL has the setting {name!r}, which is none of {', '.join(SETTINGS)}")
        try:
            settings[name] = reads(value)
        except ValueError as error:
            raise ProgrammingError(f"the setting {name!r} of the URL is {value!r}: {error}") from error
    return settings


def _names_of(parameters: Any) -> bool:
    """Whether parameters have names."""
    return isinstance(parameters, Mapping)


def _columns(cursor: Any) -> tuple[Description, ...]:
    """The columns, with the names of types that the engine in this process gives."""
    columns: List[Description] = []
    for field in cursor._result.fields:
        kind = KINDS.get(field.type_code)
        if kind is None:
            kind = "bytes" if field.charsetnr == BINARY_CHARSET else "text"
        elif kind == "int" and field.flags & UNSIGNED:
            kind = "uint"
        precision = scale = None
        if kind == "decimal":
            scale = field.scale
            # The length has room for the point and the sign.
            precision = field.length - (scale > 0) - (not field.flags & UNSIGNED)
        columns.append((field.name, kind, None, None, precision, scale, True))
    return tuple(columns)


def _raised(error: Any) -> _errors.Error:
    """The driver's error as one of ours."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    message = str(error.args[1] if number is not None and len(error.args) > 1 else error)
    if not number:
        kind = getattr(_errors, type(error).__name__, _errors.DatabaseError)
        return kind(message or "the connection is closed")
    for kind, numbers in (
        (_errors.IntegrityError, INTEGRITY),
        (_errors.DataError, DATA),
        (NotSupportedError, NOT_SUPPORTED),
        (_errors.ConflictError, CONFLICT),
    ):
        if number in numbers:
            return kind(message, number, number in CONFLICT)
    kind = getattr(_errors, type(error).__name__, _errors.DatabaseError)
    return kind(message, number)
