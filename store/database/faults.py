"""Convert errors of the database and its disk to StoreUnavailable."""

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from backstay.errors import StoreUnavailable
from store.faults import message_of, unavailable

_DEADLOCK = "40P01"
"""What Postgres answers to the last of those who wait for each other."""


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
        if getattr(_root(error), "sqlstate", None) == _DEADLOCK:
            raise Collision(f"store: {message_of(_root(error))}; try again") from error
        raise unavailable(_root(error)) from error


def _root(error: Exception) -> BaseException:
    """Return the driver's own error, because SQLAlchemy's repeats the statement."""
    return error.orig or error if isinstance(error, DBAPIError) else error
