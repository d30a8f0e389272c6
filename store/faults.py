"""Turn what a database or a disk raises into what the rest of backstay understands."""

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from backstay.errors import StoreUnavailable

_FIXES = (
    ("locked", "another process holds it; find out which one keeps a transaction open"),
    ("full", "free some disk space"),
    ("readonly", "give this user the right to write the file and its directory"),
    ("read-only", "give this user the right to write the file and its directory"),
    ("unable to open", "check that the directory exists and may be written"),
    ("not a database", "the file is not a SQLite database; restore it or name another"),
    ("malformed", "the file is damaged; restore it from a backup"),
    ("no such table", "the file was replaced under a running worker; restart the worker"),
)


class Collision(StoreUnavailable):
    """Another worker wrote the same row at the same moment."""


@contextmanager
def faults() -> Generator[None]:
    """Raise StoreUnavailable, in one line and with a fix, for every failure of the database or its disk."""
    try:
        yield
    except IntegrityError as error:
        raise Collision(f"store: {_cause(error)}; try again") from error
    except (SQLAlchemyError, OSError) as error:
        cause = _cause(error)
        fix = next((fix for sign, fix in _FIXES if sign in cause.lower()), "check that the database is reachable")
        raise StoreUnavailable(f"store: {cause}; {fix}") from error


def _cause(error: Exception) -> str:
    """Say only the driver's own words: those of SQLAlchemy repeat the statement."""
    root = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(root).split())[:300] or type(root).__name__
