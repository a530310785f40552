"""Connections and cursors of PEP 249, and the doors to tables and collections."""

from __future__ import annotations

import atexit
import datetime
import os
import re
import weakref
from typing import Any, Iterable, Iterator, List, Mapping, NoReturn, Optional, Sequence, Union

from . import _errors
from ._errors import InterfaceError, NotSupportedError, ProgrammingError
from ._remora import Answer, Batch, Collection, Found, Table
from ._remora import Connection as Session
from ._server import ServerAnswer, ServerSession, is_server
from ._types import Description

Parameters = Union[Sequence[Any], Mapping[str, Any]]
Row = tuple[Any, ...]

#: Connections that are closed when the program ends, so that the next opening is quick.
_open: weakref.WeakSet[Connection] = weakref.WeakSet()


def connect(
    database: Union[str, os.PathLike[str]] = ":memory:",
    *,
    autocommit: bool = False,
    durability: Union[str, datetime.timedelta] = "always",
    max_query_memory_bytes: Optional[int] = None,
    row_cache_bytes: Optional[int] = None,
) -> Connection:
    """Opens a database in this process: a directory, which is made if it is not there, or ``":memory:"``. Or connects to
    a running server, Remora's or a MySQL: ``"mysql://USER:PASSWORD@HOST:PORT/DATABASE"``, which needs PyMySQL.

    All connections of a process to one directory share it; another process cannot open it meanwhile. Without
    ``autocommit`` a transaction is open from the first statement on, as PEP 249 has it. ``durability`` is how soon a
    write is safe from a loss of power: ``"always"`` before it is acknowledged, a ``timedelta`` that long after,
    ``"none"`` when the system pleases; of a crash of the process it is safe always.
    """
    place = os.fspath(database)
    if not isinstance(place, str):
        raise ProgrammingError("a path is a str or an os.PathLike of one")
    if is_server(place):
        if durability != "always" or max_query_memory_bytes is not None or row_cache_bytes is not None:
            raise ProgrammingError("durability and limits are settings of the server that the URL names")
        connection = Connection(ServerSession(place, autocommit))
        _open.add(connection)
        return connection
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", place):
        scheme = place.split(":", 1)[0]
        raise NotSupportedError(
            f"remora.connect opens a directory, or a server by mysql://USER:PASSWORD@HOST:PORT/DATABASE, and no {scheme}://"
        )
    if durability == "always":
        sync_s: Optional[float] = 0.0
    elif durability == "none":
        sync_s = None
    elif isinstance(durability, datetime.timedelta) and durability > datetime.timedelta(0):
        sync_s = durability.total_seconds()
    else:
        raise ProgrammingError('durability is "always", "none" or a positive timedelta')
    path = None if place == ":memory:" else place
    session = Session(path, autocommit, sync_s, max_query_memory_bytes, row_cache_bytes)
    connection = Connection(session)
    _open.add(connection)
    return connection


@atexit.register
def _close_all() -> None:
    for connection in list(_open):
        try:
            connection.close()
        except _errors.Error:
            # Nobody is left to be told; no row is lost.
            pass


class Connection:
    """An open database: made by :func:`connect`. Threads may share it; statements run one at a time."""

    Warning = _errors.Warning
    Error = _errors.Error
    InterfaceError = _errors.InterfaceError
    DatabaseError = _errors.DatabaseError
    DataError = _errors.DataError
    OperationalError = _errors.OperationalError
    IntegrityError = _errors.IntegrityError
    InternalError = _errors.InternalError
    ProgrammingError = _errors.ProgrammingError
    NotSupportedError = _errors.NotSupportedError

    def __init__(self, session: Union[Session, ServerSession]) -> None:
        self._session = session
        self._closed = False

    def cursor(self) -> Cursor:
        """A cursor, which holds what one statement answered."""
        return Cursor(self)

    def execute(self, operation: str, parameters: Optional[Parameters] = None) -> Cursor:
        """Runs a statement with a cursor of its own."""
        return Cursor(self).execute(operation, parameters)

    def executemany(self, operation: str, parameters: Iterable[Parameters]) -> Cursor:
        """Runs a statement with each of these parameters, all or nothing, with a cursor of its own."""
        return Cursor(self).executemany(operation, parameters)

    def commit(self) -> None:
        """Makes what the open transaction did durable and visible, if one is open."""
        self._session.run("COMMIT")

    def rollback(self) -> None:
        """Undoes what the open transaction did."""
        self._session.run("ROLLBACK")

    def close(self) -> None:
        """Rolls back what is open. The database is closed with its last connection. Twice is once."""
        self._session.close()
        self._closed = True

    def interrupt(self) -> None:
        """Ends the statement that runs, from another thread: it raises OperationalError 1317."""
        self._session.interrupt()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._session.in_transaction()

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own. Setting it commits what is open."""
        return self._session.autocommit()

    @autocommit.setter
    def autocommit(self, on: bool) -> None:
        self._session.run(f"SET autocommit = {int(bool(on))}")

    @property
    def path(self) -> str:
        """The directory of the database."""
        return os.fspath(self._session.path())

    def table(self, name: str) -> Table:
        """A table that is there: of SQL's database ``remora``, or ``DATABASE.TABLE``."""
        return self._session.table(name)

    def search(self, table: str, text: Optional[str] = None, filter: Any = None, **options: Any) -> Found:
        """Searches a table: see :meth:`Table.search`."""
        return self._session.table(table).search(text, filter, **options)

    def collection(self, name: str) -> Collection[int]:
        """The collection of documents of this name, which is made if there is none."""
        return self._session.collection(name)

    def keyed_collection(self, name: str) -> Collection[str]:
        """The collection of this name whose ids are texts of yours, which is made if there is none."""
        return self._session.keyed_collection(name)

    def batch(self) -> Batch:
        """A batch: changes of several tables and collections, which ``commit`` or the end of a ``with`` block does in one
        durable step, all or none. It is not part of the connection's transaction."""
        return self._session.batch()

    def tables(self) -> List[str]:
        """The names of all tables and collections."""
        return self._session.tables()

    def collections(self) -> List[str]:
        """The names of the collections with numbers as ids."""
        return self._session.collections()

    def keyed_collections(self) -> List[str]:
        """The names of the collections with texts as ids."""
        return self._session.keyed_collections()

    def drop(self, name: str) -> None:
        """Drops a collection, or a table that SQL did not make."""
        self._session.drop(name)

    def rename_collection(self, name: str, to: str) -> None:
        """Gives a collection another name."""
        self._session.rename_collection(name, to)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """Commits what was done, or rolls it back if an exception left the block. The connection stays open."""
        if kind is None:
            self.commit()
            return
        try:
            self.rollback()
        except _errors.Error:
            # What left the block is told, not what followed of it.
            pass


class Cursor:
    """What one statement answered: rows that are fetched, or how many it changed."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: How many rows ``fetchmany`` fetches unless it is said.
        self.arraysize = 1
        self._answer: Union[Answer, ServerAnswer, None] = None
        self._changed = -1
        self._last_id = 0
        self._closed = False

    def execute(self, operation: str, parameters: Optional[Parameters] = None) -> Cursor:
        """Runs a statement, with a sequence of values for its ``?`` or a mapping for ``:name`` or ``%(name)s``."""
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self._answer = None
        self._changed = -1
        self._answer = self.connection._session.run(operation, parameters)
        return self

    def executemany(self, operation: str, parameters: Iterable[Parameters]) -> Cursor:
        """Runs a statement with each of these parameters in one step: all or nothing."""
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self._answer = None
        self._changed = -1
        self._changed, self._last_id = self.connection._session.run_many(operation, parameters)
        return self

    @property
    def description(self) -> Optional[tuple[Description, ...]]:
        """The columns: name, type code, None, None, precision, scale, True. None without rows."""
        self._check()
        return None if self._answer is None else self._answer.description()

    @property
    def rowcount(self) -> int:
        """How many rows the statement has or changed; -1 before it."""
        return self._changed if self._answer is None else self._answer.row_count

    @property
    def rownumber(self) -> Optional[int]:
        """How many rows were fetched; None without rows."""
        answer = self._answer
        return answer.fetched if answer is not None and answer.has_rows else None

    @property
    def lastrowid(self) -> Optional[int]:
        """The first AUTO_INCREMENT value that the statement gave; None if it gave none."""
        return (self._last_id if self._answer is None else self._answer.last_insert_id) or None

    @property
    def warning_count(self) -> int:
        """How many warnings the statement had; SHOW WARNINGS lists them."""
        return 0 if self._answer is None else self._answer.warnings

    def fetchone(self) -> Optional[Row]:
        """The next row; None behind the last."""
        return self._rows().fetch_one()

    def fetchmany(self, size: Optional[int] = None) -> List[Row]:
        """The next rows, up to so many."""
        return self._rows().fetch(self.arraysize if size is None else size)

    def fetchall(self) -> List[Row]:
        """The rows that are left."""
        return self._rows().fetch()

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self._rows().fetch_one()
        if row is None:
            raise StopIteration
        return row

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All rows of the statement by the Arrow PyCapsule interface, fetched ones too."""
        return self._rows().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """All rows of the statement as a ``pyarrow.Table``."""
        return self._rows().to_arrow()

    def to_pandas(self) -> Any:
        """All rows of the statement as a ``pandas.DataFrame``."""
        return self._rows().to_pandas()

    def to_polars(self) -> Any:
        """All rows of the statement as a ``polars.DataFrame``."""
        return self._rows().to_polars()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing: values say themselves what they are."""

    def setoutputsize(self, size: int, column: Optional[int] = None) -> None:
        """Nothing: values have any size."""

    def close(self) -> None:
        """Lets the rows go."""
        self._answer = None
        self._closed = True

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.close()

    def _rows(self) -> Union[Answer, ServerAnswer]:
        self._check()
        answer = self._answer
        if answer is None or not answer.has_rows:
            self._refuse()
        return answer

    def _check(self) -> None:
        if self.connection._closed:
            raise InterfaceError("the connection is closed")

    def _refuse(self) -> NoReturn:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        raise ProgrammingError("there are no rows: no statement that has any was executed")
