"""Remora inside a Python program: SQL, full-text search and JSON documents over one durable store.

>>> import remora
>>> con = remora.connect(":memory:")
>>> _ = con.execute("CREATE TABLE birds (id INT PRIMARY KEY, name TEXT, FULLTEXT (name))")
>>> con.table("birds").add([{"id": 1, "name": "Reef heron"}])
1
>>> con.search("birds", "reef").rows
[{'id': 1, 'name': 'Reef heron'}]
"""

from ._dbapi import Connection, Cursor, connect
from ._errors import (
    ConflictError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from ._remora import Batch, Collection, Documents, Field, Filter, Found, Table, field, path
from ._types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Json,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

#: PEP 249.
apilevel = "2.0"
#: Threads may share the module and connections.
threadsafety = 2
#: ``?``; a mapping of names is taken for ``:name`` and ``%(name)s`` too.
paramstyle = "qmark"

__version__ = "0.1.0"

__all__ = [
    "BINARY", "Batch", "Binary", "Collection", "ConflictError", "Connection", "Cursor", "DATETIME", "DataError",
    "DatabaseError", "Date", "DateFromTicks", "Documents", "Error", "Field", "Filter", "Found", "IntegrityError",
    "InterfaceError", "InternalError", "Json", "NUMBER", "NotSupportedError", "OperationalError",
    "ProgrammingError", "ROWID", "STRING", "Table", "Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks",
    "Warning", "apilevel", "connect", "field", "paramstyle", "path", "threadsafety",
]
