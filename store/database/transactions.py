"""Let the parts of a store say what they do within a transaction, and open one for it unless the caller has.

`await store.runs.closed(...)` opens a transaction of its own. `store.runs.closed.within(transaction, ...)` takes part
in the one that `await store.write(work)` has opened, in which everything is committed or nothing.
"""

from collections.abc import Callable
from functools import update_wrapper
from inspect import signature
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeAlias, TypeVar, overload

from sqlalchemy import Connection

from store.database.database import Answer, Database
from store.database.waiting import write

Transaction: TypeAlias = Connection
"""What the work of `store.write` gets, also where nothing else is known of databases."""

Asked = ParamSpec("Asked")


class StorePart(Protocol):
    """A part of a store, whose operations run in its database."""

    database: Database


Owner = TypeVar("Owner", bound=StorePart)
AnyOperation = TypeVar("AnyOperation", bound="Operation[Any, ..., Any]")


class Operation(Generic[Owner, Asked, Answer]):
    """An operation of a part of the store; read from the class, it is called with the part first."""

    def __init__(self, work: Callable[Concatenate[Owner, Connection, Asked], Answer], *, writes: bool) -> None:
        """Take what is done within a transaction."""
        self.work = work
        self.writes = writes
        self.needed: dict[str, int] = {}
        """Names and places of the arguments without which there is nothing to do."""
        self.otherwise: Callable[[], Any] = lambda: None
        self.afterwards: Callable[[Any, Any], None] = lambda _owner, _answer: None
        update_wrapper(self, work)

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Owner, kind: type) -> "Bound[Owner, Asked, Answer]": ...
    def __get__(self, owner: Owner | None, kind: type) -> "Self | Bound[Owner, Asked, Answer]":
        """Return the operation as one part of a store has it."""
        return self if owner is None else Bound(self, owner)

    async def __call__(self, owner: Owner, *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        """Do it in a transaction of its own."""
        given = [(*args[place : place + 1], kwargs.get(name)) for name, place in self.needed.items()]
        if self.needed and not any(map(any, given)):
            return self.otherwise()
        # A command that only says what it would do waits for no writer.
        writes = self.writes and not kwargs.get("dry_run")
        database = owner.database

        def work(connection: Connection) -> Answer:
            return self.work(owner, connection, *args, **kwargs)

        answer = await (write(database, work) if writes else database.read(work))
        self.afterwards(owner, answer)
        return answer


class Bound(Generic[Owner, Asked, Answer]):
    """An operation of one part of a store."""

    def __init__(self, operation: Operation[Owner, Asked, Answer], owner: Owner) -> None:
        """Use `Operation` instead."""
        self._operation = operation
        self._owner = owner

    async def __call__(self, *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        """Do it in a transaction of its own."""
        return await self._operation(self._owner, *args, **kwargs)

    def within(self, transaction: Transaction, *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        """Do it in a transaction that is open."""
        return self._operation.work(self._owner, transaction, *args, **kwargs)


def reading(
    work: Callable[Concatenate[Owner, Connection, Asked], Answer],
) -> Operation[Owner, Asked, Answer]:
    """Make an operation of work that only reads."""
    return Operation(work, writes=False)


def writing(
    work: Callable[Concatenate[Owner, Connection, Asked], Answer],
) -> Operation[Owner, Asked, Answer]:
    """Make an operation of work that writes; told `dry_run`, it must only read."""
    return Operation(work, writes=True)


def only_with(*names: str, otherwise: Callable[[], Any] = lambda: None) -> Callable[[AnyOperation], AnyOperation]:
    """Open no transaction where all of these arguments are empty; the answer is that of `otherwise` then."""

    def limited(operation: AnyOperation) -> AnyOperation:
        places = [*signature(operation.work).parameters][2:]
        operation.needed = {name: places.index(name) for name in names}
        operation.otherwise = otherwise
        return operation

    return limited


def afterwards(
    done: Callable[[Owner, object], None],
) -> Callable[[Operation[Owner, Asked, Answer]], Operation[Owner, Asked, Answer]]:
    """Call `done` with the answer once the transaction of an operation is committed, if it had one of its own."""

    def followed(operation: Operation[Owner, Asked, Answer]) -> Operation[Owner, Asked, Answer]:
        operation.afterwards = done
        return operation

    return followed
