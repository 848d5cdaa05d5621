"""Errors of SQLAlchemy and of the driver as errors of the portal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from portal.errors import DatabaseUnavailable, InvalidToken, StorageFull, WritingUnavailable

# SQLSTATE classes and codes, PostgreSQL manual, appendix A.
_DISK_FULL = "53100"
_NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")
_NO_RESOURCES = "53"
_QUERY_CANCELED = "57014"
# A statement that writes, on a replica or a read-only server.
_READ_ONLY = "25006"
_CORRUPTED = "XX001"
_EMPTY_FILE = "read only 0 of"
_FOREIGN_KEY_VIOLATION = "23503"
# Columns that refer to `users`, as they appear in constraint names.
_USER_COLUMNS = ("_user_id", "_owner_id", "_uploaded_by", "_created_by", "_updated_by")
# Errors caused by concurrent transactions: a deadlock, a serialization failure, a lock timeout.
_ROLLED_BACK = "40"
_LOCK_NOT_AVAILABLE = "55P03"
# The server ended a session that was idle in a transaction, or a long transaction.
_TRANSACTION_ENDED = ("25P03", "25P04")
_CONNECTION_LOST = ("08", "57P")


@contextmanager
def portal_errors() -> Iterator[None]:
    """Translate errors of SQLAlchemy, and of the driver itself below `store.statements`."""
    try:
        yield
    except PoolTimeout as error:
        raise DatabaseUnavailable from error
    except (DBAPIError, psycopg.Error) as error:
        cause = _of_driver(error)
        state = getattr(cause, "sqlstate", None) or ""
        if state == _DISK_FULL or _is_out_of_room(cause):
            raise StorageFull from error
        if state == _FOREIGN_KEY_VIOLATION and _names_user(cause):
            # The account was deleted after the request was authenticated.
            raise InvalidToken from error
        if state == _CORRUPTED and _EMPTY_FILE in str(cause):
            # The keyword index of a promoted replica, which the next worker rebuilds.
            raise DatabaseUnavailable from error
        if state == _READ_ONLY:
            raise WritingUnavailable from error
        if _is_transient(state) or is_connection_lost(error):
            raise DatabaseUnavailable from error
        raise


def _names_user(cause: BaseException | None) -> bool:
    constraint = cause.diag.constraint_name if isinstance(cause, psycopg.Error) else None
    return bool(constraint) and str(constraint).endswith(_USER_COLUMNS)


def _is_transient(state: str) -> bool:
    """Return whether a retry may succeed, for example after a shortage of memory or connections."""
    return state in (_QUERY_CANCELED, _LOCK_NOT_AVAILABLE, *_TRANSACTION_ENDED) or state.startswith(
        (_ROLLED_BACK, _NO_RESOURCES)
    )


def is_lock_timeout(error: DatabaseUnavailable) -> bool:
    """Return whether a session failed because a lock was not granted within its `lock_timeout`."""
    cause = _of_driver(error.__cause__)
    return isinstance(cause, psycopg.Error) and cause.sqlstate == _LOCK_NOT_AVAILABLE


def _is_out_of_room(cause: BaseException | None) -> bool:
    """Return whether the server could not write a file."""
    # A disk quota, or a limit on the size of files, is an internal error to the server, and only
    # the operating system's message identifies it.
    message = cause.diag.message_primary if isinstance(cause, psycopg.Error) else None
    return bool(message) and str(message).endswith(_NO_ROOM)


def is_connection_lost(error: BaseException | None) -> bool:
    """Return whether the server is gone, as opposed to an error that it reported."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    cause = _of_driver(error)
    if isinstance(cause, psycopg.InternalError) and cause.sqlstate is None:
        # A pooler that loses its server after the answer to a COMMIT sends an error after it, which
        # the driver reports as one answer too many.
        return True
    if not isinstance(cause, psycopg.OperationalError):
        return False
    # The driver reports nothing else about a connection that breaks.
    return cause.sqlstate is None or cause.sqlstate.startswith(_CONNECTION_LOST)


def _of_driver(error: BaseException | None) -> BaseException | None:
    return error.orig if isinstance(error, DBAPIError) else error
