"""Set the calls of a request out as tables: values that calls share are there once, and each row has only its own."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from backstay.approvals.layout import argument_lines, argument_parts
from backstay.approvals.undo_words import undo_words
from backstay.approvals.view import ArgumentView, CallView, Line, RequestView
from backstay.provenance.telling import told_together
from backstay.shown import CLIPPED, counted, one_line
from backstay.tools.recipients import is_recipient

FEWEST = 4
"""Fewer calls than these are easier to read one below the other."""
_MOST_COLUMNS = 4
_WIDEST = 80
"""How many characters of a value are in a cell; the row says the rest below."""
_LONGEST = 110
"""How many characters the line of a row has; a value that does not fit has lines of its own below it."""
_BETWEEN = "; "


class CallRow(NamedTuple):
    """Hold one call as a row."""

    call: CallView
    own: tuple[ArgumentView, ...]
    """The arguments that differ, those first that say to whom it goes; where they came from, if not alike in all."""
    cells: tuple[str, ...]
    whole: bool
    """Whether the cells say all that is its own."""
    warns: bool
    """Whether there is something about it that nobody may overlook."""
    undo_how: str
    """How it is undone, where that differs."""

    def lines(self) -> Iterator[Line]:
        """Yield all that is its own as lines: one with the short values, and those below it that do not fit."""
        head, between, below = f"[{self.call.number}]", " ", list[str]()
        for argument in self.own:
            said, *more = argument_lines(argument.name, argument.value)
            # A value with what stands between two of them could pass for another one.
            if more or ";" in said or len(head) + len(said) > _LONGEST:
                below += [said, *more]
            else:
                head, between = f"{head}{between}{said}", _BETWEEN
        yield Line("row", head)
        yield from (Line("argument", line) for line in below)
        yield from _origins(self.own)
        yield from self.call.facts(alike=True)
        if self.undo_how:
            yield self.call.undo_line(self.undo_how)


class CallTable(NamedTuple):
    """Hold calls of one tool that differ in some of their arguments only."""

    shared: tuple[ArgumentView, ...]
    """The arguments that are the same in all of them."""
    columns: tuple[str, ...]
    """The names of the arguments that differ, as many as have a column."""
    rows: tuple[CallRow, ...]
    told: tuple[ArgumentView, ...]
    """Of the arguments that differ, those that came from the same place in all of them."""
    undo_how: str
    """How all of them are undone."""
    undo_differs: bool

    @property
    def first(self) -> CallView:
        """Return the first call; its tool, and whether it can be undone, are those of all."""
        return self.rows[0].call

    def sources(self, *, minded: bool) -> str:
        """Return where the arguments of all of them came from: those that policy asks because of, or the others."""
        return _told((*self.shared, *self.told), minded=minded)

    def lines(self) -> Iterator[Line]:
        """Yield all of them as lines: what they share, and then what each has of its own."""
        first = self.first
        yield Line("call", f"{first.tool}  ({first.safety.value})  {counted(len(self.rows), 'call')}")
        if self.shared:
            yield Line("alike", "the same in all of them:")
        for argument in self.shared:
            yield from argument.lines()
        yield from _origins(self.told)
        if first.changes:
            yield Line("changes", f"changes: {first.changes}")
        if first.writes and not self.undo_differs:
            yield first.undo_line(self.undo_how)
        for row in self.rows:
            yield from row.lines()


def groups_of(view: RequestView) -> list[CallView | CallTable]:
    """Return the calls of a request, those that are alike as tables; steps of a plan, and few calls, stay single."""
    kinds: dict[tuple[object, ...], list[CallView]] = {}
    for call in view.calls:
        kinds.setdefault(_kind(call) if view.request.proposal is None else (call.number,), []).append(call)
    how = {call.index: call.undo_how or "" for call in view.request.calls}
    found: list[CallView | CallTable] = []
    for calls in kinds.values():
        found += [_table(calls, how)] if len(calls) >= FEWEST else calls
    place = {call.number: at for at, call in enumerate(view.calls)}
    return sorted(found, key=lambda each: place[each.first.number if isinstance(each, CallTable) else each.number])


def _kind(call: CallView) -> tuple[object, ...]:
    """Return what calls have in common that are in one table."""
    return call.tool, call.safety, call.undoable, call.changes, *sorted(argument.name for argument in call.arguments)


def _table(calls: Sequence[CallView], undo: Mapping[int, str]) -> CallTable:
    arguments = [{argument.name: argument for argument in call.arguments} for call in calls]
    names = sorted(arguments[0], key=lambda name: not is_recipient(name))
    same = {name for name in names if _is_shared([each[name] for each in arguments], calls)}
    alike = {name for name in names if len({each[name].told for each in arguments}) == 1}
    shared = tuple(argument for argument in calls[0].arguments if argument.name in same)
    templates = {undo[call.number] for call in calls}
    differs = len(templates) > 1
    how = "" if differs else undo_words(templates.pop(), {argument.name: argument.value for argument in shared})
    own = [name for name in names if name not in same]
    columns = tuple(own[:_MOST_COLUMNS])
    rows: list[CallRow] = []
    for call, each in zip(calls, arguments, strict=True):
        its = tuple(each[name] if name not in alike else ArgumentView(name, each[name].value) for name in own)
        rows.append(_row(call, its, columns, call.undo_how if differs else ""))
    told = tuple(arguments[0][name] for name in own if name in alike)
    return CallTable(shared, columns, tuple(rows), told, how, differs)


def _is_shared(arguments: Sequence[ArgumentView], calls: Sequence[CallView]) -> bool:
    """Return whether the values of an argument are the same, as far as people see them whole."""
    first, cut = arguments[0], any(call.unseen for call in calls)
    if cut and CLIPPED in json.dumps(first.value, ensure_ascii=False):
        # They may differ where they are cut.
        return False
    return all(_same(first, other) for other in arguments[1:])


def _same(argument: ArgumentView, other: ArgumentView) -> bool:
    # Python takes 1, 1.0 and true for the same.
    return type(argument.value) is type(other.value) and argument == other and _lines(argument) == _lines(other)


def _row(call: CallView, own: tuple[ArgumentView, ...], columns: Sequence[str], undo_how: str) -> CallRow:
    lines = {argument.name: _lines(argument) for argument in own if argument.name in columns}
    cells = tuple(_cell(lines[name]) for name in columns)
    fits = all([*filter(None, [cell])] == lines[name] for name, cell in zip(columns, cells, strict=True))
    minded = _told(own, minded=True)
    warns = bool(call.unseen or call.repeats or call.changed or minded)
    whole = fits and len(columns) == len(own) and not (call.diff or warns or _told(own, minded=False))
    return CallRow(call, own, cells, whole, warns, undo_how)


def _origins(arguments: Sequence[ArgumentView]) -> Iterator[Line]:
    """Yield where several arguments came from, in a line each for what policy minds and for the others."""
    if minded := _told(arguments, minded=True):
        yield Line("minded", minded)
    if others := _told(arguments, minded=False):
        yield Line("source", others)


def _told(arguments: Sequence[ArgumentView], *, minded: bool) -> str:
    return one_line(
        told_together({each.name: each.told.text for each in arguments if each.told.minded == minded}), 1000
    )


def _lines(argument: ArgumentView) -> list[str]:
    return argument_parts(argument.name, argument.value)[1]


def _cell(lines: Sequence[str]) -> str:
    first = lines[0] if lines else ""
    cut = first[:_WIDEST]
    return cut if len(lines) <= 1 and cut == first else cut + CLIPPED
