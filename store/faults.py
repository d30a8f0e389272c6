"""Turn what a disk raises into what the rest of backstay understands; no database is needed for that."""

from collections.abc import Generator
from contextlib import contextmanager

from backstay.errors import StoreUnavailable
from backstay.shown import message_line

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


@contextmanager
def disk_faults() -> Generator[None]:
    """Raise StoreUnavailable, in one line and with a fix, for every failure of the disk."""
    try:
        yield
    except OSError as error:
        raise unavailable(error) from error


def unavailable(cause: BaseException) -> StoreUnavailable:
    """Say in one line what failed, in its own words, and what mends it."""
    said = message_of(cause)
    fix = next((fix for sign, fix in _FIXES if sign in said.lower()), "check that the database is reachable")
    return StoreUnavailable(f"store: {said}; {fix}")


def message_of(cause: BaseException) -> str:
    """Return what an error says, as one line."""
    return message_line(str(cause), 300) or type(cause).__name__
