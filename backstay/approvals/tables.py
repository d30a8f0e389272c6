"""Lay equal calls of a request out as a table: values that they share are there once, and each row has only its own."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from backstay.approvals.layout import argument_parts
from backstay.approvals.view import ArgumentView, CallView, RequestView
from backstay.shown import CLIPPED

FEWEST = 4
"""Fewer calls than these are easier to read one below the other."""
_MOST_COLUMNS = 4
_WIDEST = 80
"""How many characters of a value are in a cell; the row says the rest below."""


class CallRow(NamedTuple):
    """Hold one call as a row."""

    call: CallView
    cells: tuple[str, ...]
    whole: bool
    """Whether the cells say all that is its own."""
    warns: bool
    """Whether there is something about it that nobody may overlook."""


class CallTable(NamedTuple):
    """Hold calls of one tool that differ in some of their arguments only."""

    shared: tuple[ArgumentView, ...]
    """The arguments that are the same in all of them."""
    columns: tuple[str, ...]
    """The names of the arguments that differ."""
    rows: tuple[CallRow, ...]
    sources: str
    """Where the arguments came from, if that is the same for all of them."""

    @property
    def first(self) -> CallView:
        """Return the first call; its tool, and how it is undone, are those of all."""
        return self.rows[0].call


def table_of(view: RequestView) -> CallTable | None:
    """Return the calls of a request as a table, or None where they are few or unlike each other, or steps of a plan."""
    calls = view.calls
    if view.request.proposal is not None or len(calls) < FEWEST or len({_kind(call) for call in calls}) > 1:
        return None
    shared = tuple(_shared(calls))
    same = {argument.name for argument in shared}
    differing = [argument.name for argument in calls[0].arguments if argument.name not in same]
    told = {call.sources(minded=False) for call in calls}
    sources = next(iter(told)) if len(told) == 1 else ""
    columns = tuple(differing[:_MOST_COLUMNS])
    rows = (_row(call, columns, whole=len(told) == 1 and len(columns) == len(differing)) for call in calls)
    return CallTable(shared, columns, tuple(rows), sources)


def _kind(call: CallView) -> tuple[object, ...]:
    """Return what calls have in common that are in one table."""
    names = tuple(argument.name for argument in call.arguments)
    return call.tool, call.safety, call.undoable, call.undo_how, call.changes, names


def _shared(calls: Sequence[CallView]) -> Iterator[ArgumentView]:
    first, *others = calls
    for at, argument in enumerate(first.arguments):
        if all(_same(argument, other.arguments[at]) for other in others):
            yield argument


def _same(argument: ArgumentView, other: ArgumentView) -> bool:
    # Python takes 1, 1.0 and true for the same.
    return type(argument.value) is type(other.value) and argument == other and _lines(argument) == _lines(other)


def _row(call: CallView, columns: Sequence[str], *, whole: bool) -> CallRow:
    lines = {argument.name: _lines(argument) for argument in call.arguments if argument.name in columns}
    cells = tuple(_cell(lines[name]) for name in columns)
    fits = all([*filter(None, [cell])] == lines[name] for name, cell in zip(columns, cells, strict=True))
    warns = bool(call.unseen or call.repeats or call.changed or call.sources(minded=True))
    return CallRow(call, cells, whole and fits and not call.diff and not warns, warns)


def _lines(argument: ArgumentView) -> list[str]:
    return argument_parts(argument.name, argument.value)[1]


def _cell(lines: Sequence[str]) -> str:
    first = lines[0] if lines else ""
    cut = first[:_WIDEST]
    return cut if len(lines) <= 1 and cut == first else cut + CLIPPED
