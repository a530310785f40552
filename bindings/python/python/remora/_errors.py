"""The exceptions of PEP 249, with MySQL's number of what went wrong."""

from __future__ import annotations

from typing import Optional


class Warning(Exception):  # noqa: A001 - the name is PEP 249's
    """Never raised: warnings are counted, and listed by SHOW WARNINGS."""


class Error(Exception):
    """What all that goes wrong in a database has in common."""

    #: MySQL's number, such as 1062 for a duplicate key, if a statement failed.
    errno: Optional[int]
    #: Whether the same call, or the same transaction, may succeed when it is made again.
    is_retryable: bool

    def __init__(self, message: str = "", errno: Optional[int] = None, is_retryable: bool = False) -> None:
        super().__init__(message)
        self.errno = errno
        self.is_retryable = is_retryable

    def __reduce__(self) -> tuple[type[Error], tuple[str, Optional[int], bool]]:
        return type(self), (str(self), self.errno, self.is_retryable)


class InterfaceError(Error):
    """The connection was closed, or is another process's."""


class DatabaseError(Error):
    """Something is wrong in the database, or with what it is asked."""


class DataError(DatabaseError):
    """A value is beyond what its column, or any, can hold."""


class OperationalError(DatabaseError):
    """Memory, time, the disk or another process does not allow it now."""


class ConflictError(OperationalError):
    """Somebody else changed it meanwhile: run the transaction again, read the document again."""


class IntegrityError(DatabaseError):
    """A key is there already, or a condition of the table does not hold."""


class InternalError(DatabaseError):
    """Stored bytes are not what was written, or a call broke off."""


class ProgrammingError(DatabaseError):
    """The call, the statement or a value of it is wrong."""


class NotSupportedError(DatabaseError):
    """There is no such thing here."""
