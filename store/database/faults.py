"""Convert errors of the database and its disk to StoreUnavailable."""

import errno
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from ssl import SSLCertVerificationError, SSLError

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from backstay.errors import StoreUnavailable, StoreUnusable
from store.faults import message_of, unavailable

_TRY_AGAIN = frozenset({"40001", "40P01"})
"""The answer of Postgres to a transaction that does not fit to another, and to the last in a ring of waiting ones."""
_NOT_LET_IN = ("28", "3D000", "42501")
"""How what Postgres answers begins where it does not know the user, the password or the database, or forbids it."""
_UNUSABLE = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
"""What SQLite answers where a file must be replaced, or opened to this user."""
_OF_FILES = frozenset({"X509", "PEM"})
"""The parts of OpenSSL that read certificates and keys."""
_PRIMARY = 0xFF
"""The bits of an answer of SQLite that tell its kind."""


class Collision(StoreUnavailable):
    """Another worker wrote the same row at the same moment."""


@contextmanager
def faults() -> Generator[None]:
    """Raise StoreUnavailable, with a one-line message and a fix, for every failure of the database or its disk."""
    try:
        yield
    except IntegrityError as error:
        raise Collision(f"store: {message_of(_root(error))}; try again") from error
    except (SQLAlchemyError, OSError) as error:
        if getattr(_root(error), "sqlstate", None) in _TRY_AGAIN:
            raise Collision(f"store: {message_of(_root(error))}; try again") from error
        raise unavailable(_root(error)) from error


@contextmanager
def opening_faults() -> Generator[None]:
    """Raise StoreUnusable, with the same line, where a store cannot be used until an operator does something.

    Only for its opening: one that worked before may well work again.
    """
    try:
        yield
    except StoreUnavailable as error:
        if error.__cause__ is None or not _needs_operator(_root(error.__cause__)):
            raise
        raise StoreUnusable(str(error)) from error


def _needs_operator(cause: BaseException) -> bool:
    if isinstance(cause, SSLError):
        # Its number is that of OpenSSL, which gives a reason where the connection is at fault and not a file.
        of_file = type(cause) is SSLError and (cause.library in _OF_FILES or not cause.reason)
        return of_file or isinstance(cause, SSLCertVerificationError)
    if isinstance(cause, OSError):
        return cause.errno in {errno.EACCES, errno.EPERM, errno.EROFS}
    known = getattr(cause, "sqlite_errorcode", 0) & _PRIMARY in _UNUSABLE
    # The driver raises a ValueError for an address that it cannot use, and SQLAlchemy an error of its own from it.
    return (
        known or isinstance(cause.__cause__, ValueError) or str(getattr(cause, "sqlstate", "")).startswith(_NOT_LET_IN)
    )


def _root(error: BaseException) -> BaseException:
    """Return the driver's own error, because SQLAlchemy's repeats the statement."""
    return error.orig or error if isinstance(error, DBAPIError) else error
