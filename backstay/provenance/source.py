"""Where a value came from, as plain data that travels with a call."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from backstay.canonical import pointer_to
from backstay.frozen import Frozen, Message
from backstay.shown import one_line
from backstay.stored_texts import is_stored_text

Kind = Literal["task", "person", "operator", "tool", "program", "model", "step"]
Content = Literal["own", "others"]
Parts = tuple[tuple[str, ...], ...]
"""What a value was put together from, in order: for each part the codes of all places where it stood."""

MODEL = "model"
TASK_OF_OTHERS = "!task"
"""The code of what others wrote of a task: its input, or its text."""
BY_MODEL: Parts = ((MODEL,),)
_OTHERS, _PROGRAM = "!", ">"
_REF_DIGITS = 40
MOST_LEAVES = 16
"""Of how many arguments the sources are told; a rule that looks at another one counts as not knowing."""

MOST_SHOWN = 5
"""How many places a request names for one argument."""


class Source(Frozen):
    """Name one place where text stood."""

    kind: Kind
    tool: str | None = None
    """`provider.tool`: which tool answered it, or which tool a program had read."""
    ref: str | None = None
    """The stored result that holds it."""
    content: Content | None = None
    """Whose words a tool's answer holds; None where nobody but the kind itself speaks."""
    part: bool = Field(default=False, exclude_if=lambda part: not part)
    """Whether only a part of the value was there."""
    by: str | None = Field(default=None, exclude_if=lambda by: by is None)
    """Which person gave the value in the request itself."""
    why: str | None = Field(default=None, exclude_if=lambda why: why is None)
    """Why nobody vouches for the value although an own record holds it."""
    step: int | None = Field(default=None, exclude_if=lambda step: step is None)
    """Of kind `step`: which step of the plan gives the value once it has run."""

    @property
    def code(self) -> str:
        """Return the short form that history holds: `task`, `crm.find`, `!mail.read` or `>!mail.read`, then the ref."""
        mark = _OTHERS if self.content == "others" else ""
        name = self.tool or ""
        if self.kind == "program":
            name = f"{_PROGRAM}{mark}{name}"
        else:
            name = f"{mark}{name if self.kind == 'tool' else self.kind}"
        return f"{name} {self.ref}" if self.ref else name


def source_of(code: str) -> Source:
    """Return the source that a code stands for."""
    name, space, ref = code.rpartition(" ")
    if not space or len(ref) != _REF_DIGITS:
        name, ref = code, ""
    program = name.startswith(_PROGRAM)
    name = name[len(_PROGRAM) :] if program else name
    others = name.startswith(_OTHERS)
    name = name[len(_OTHERS) :] if others else name
    content: Content | None = "others" if others else None
    if program:
        return Source(kind="program", tool=name or None, ref=ref or None, content=content or "own")
    match name:
        case "task" | "person" | "operator" | "model":
            return Source(kind=name, content=content)
        case _:
            return Source(kind="tool", tool=name, ref=ref or None, content=content or "own")


def doubted(code: str) -> str:
    """Return the code of a source whose answer vouches for nothing, although its tool's answers do."""
    source = source_of(code)
    return source.model_copy(update={"content": "others"}).code if source.kind in {"tool", "program"} else code


def is_others(code: str) -> bool:
    """Return whether strangers may have written what was there."""
    return code.startswith((_OTHERS, _PROGRAM + _OTHERS))


def is_computed(code: str) -> bool:
    """Return whether a program computed it; the codes of one value then name all that the program had read."""
    return code.startswith(_PROGRAM)


def vouched(codes: Sequence[str]) -> bool:
    """Return whether the task, a person, the operator or an own record vouches for what was in these places."""
    if any(code != MODEL and not is_others(code) and not is_computed(code) for code in codes):
        return True
    computed = [code for code in codes if is_computed(code)]
    return bool(computed) and not any(map(is_others, computed))


class ArgumentSources(Message):
    """Hold where the arguments of one call came from, in short codes."""

    by: dict[str, Parts] = Field(default_factory=dict)
    """By JSON pointer; a source that holds for everything below a pointer is there once."""
    foreign: tuple[str, ...] = ()
    """Pointers of addresses, accounts, paths, URLs and commands that come from what others wrote only."""
    reaching: tuple[str, ...] = ()
    """Pointers of what would leave with a read that reaches out, and is not from task, person or operator."""
    more: int = 0
    """Of how many further arguments nothing is told."""
    whole: tuple[str, ...] = ()
    """Pointers of what people are told of that stood somewhere as a whole."""
    partly: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """By pointer: the places of the parts that people are told of, where the whole value stood nowhere."""
    refers: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """By pointer: the steps of the plan whose answers a value refers to, as long as these are not known."""
    doubts: dict[str, str] = Field(default_factory=dict)
    """By pointer: why own records do not vouch for an address that they hold, in words."""
    given: dict[str, str] = Field(default_factory=dict)
    """By pointer: which person gave the value in a request."""

    def under(self, pointer: str) -> list[Parts] | None:
        """Return the parts of all values at and below a pointer; None when they are not known."""
        below = [parts for at, parts in self.by.items() if at == pointer or at.startswith(f"{pointer}/")]
        if pointer in self.by:
            return below
        if below and self.more:
            # Beside these, something may be missing.
            return None
        above = pointer
        while above:
            above = above.rpartition("/")[0]
            if above in self.by:
                # An entry for all values holds for those without an entry of their own.
                return [*below, self.by[above]]
        return below or None

    def given_by(self, people: Mapping[str, str]) -> "ArgumentSources":
        """Return the sources after people have given arguments other values; `people` says who, by pointer.

        The target of a reference is not known, whoever referred to it.
        """
        known = [at for at in people if not any(among(other, [at]) for other in self.refers)]
        by = {at: parts for at, parts in self.by.items() if not among(at, known)}
        return ArgumentSources(
            by=by | dict.fromkeys(known, (("person",),)),
            foreign=tuple(at for at in self.foreign if not among(at, known)),
            reaching=tuple(at for at in self.reaching if not among(at, known)),
            more=self.more,
            whole=tuple(at for at in self.whole if not among(at, known)),
            partly={at: codes for at, codes in self.partly.items() if not among(at, known)},
            refers=self.refers,
            doubts={at: why for at, why in self.doubts.items() if not among(at, known)},
            given={at: name for at, name in self.given.items() if not among(at, people)} | dict(people),
        )

    def once_known(
        self, late: "ArgumentSources", referring: Collection[str], others: Collection[str] = ()
    ) -> "ArgumentSources":
        """Return the sources once it is known what values refer to; `late` has those of what came in their place.

        All others stay what they were when the arguments were traced; `others` are the pointers of these leaves.
        """
        found = {at: parts for at, parts in late.by.items() if among(at, referring)}
        for pointer in referring:
            if not any(among(at, [pointer]) for at in found) and (above := late.under(pointer)):
                found[pointer] = above[0]

        def both(own: Iterable[str], now: Iterable[str]) -> tuple[str, ...]:
            return (*(at for at in own if not among(at, referring)), *(at for at in now if among(at, referring)))

        partly, doubts = {**self.partly, **late.partly}, {**self.doubts, **late.doubts}
        return ArgumentSources(
            by=self.beside(found, others) | found,
            foreign=both(self.foreign, late.foreign),
            reaching=self.reaching,
            more=max(self.more, late.more),
            whole=both(self.whole, late.whole),
            partly={at: partly[at] for at in both(self.partly, late.partly)},
            doubts={at: doubts[at] for at in both(self.doubts, late.doubts)},
            given=self.given_but_referring,
        )

    def beside(self, found: Collection[str], others: Collection[str]) -> dict[str, Parts]:
        """Return the sources of all but those found anew; an entry for all is split up where some of these are."""
        by = {at: parts for at, parts in self.by.items() if not among(at, found)}
        for above in [at for at in by if any(among(new, [at]) for new in found)]:
            nearer = [at for at in by if at != above and among(at, [above])]
            below = [at for at in others if among(at, [above]) and not among(at, nearer)]
            if len(by) + len(below) + len(found) <= MOST_LEAVES:
                by |= dict.fromkeys(below, by.pop(above))
        return by

    @property
    def given_but_referring(self) -> dict[str, str]:
        """Return which persons gave values that refer to nothing, so that these stay theirs."""
        return {at: by for at, by in self.given.items() if not any(among(other, [at]) for other in self.refers)}

    def of_leaves(self, arguments: dict[str, Any], most: int = 8) -> dict[str, tuple[Source, ...]]:
        """Return the sources of `most` leaves in full, as requests tell of them; first where only others vouch."""
        shown: dict[str, tuple[Source, ...]] = {}
        for pointer, _ in sorted(leaves(arguments), key=lambda leaf: leaf[0] not in self.foreign):
            if len(shown) >= most:
                break
            if found := self._told(pointer):
                why = self.doubts.get(pointer)
                doubted = [] if why is None else [found[0].model_copy(update={"why": one_line(why, 200)})]
                shown[one_line(pointer, 200)] = (*doubted, *found[len(doubted) :])
        return shown

    def _told(self, pointer: str) -> tuple[Source, ...]:
        """Return what people are told of one leaf; nothing of what the model alone said, and of common words."""
        steps = tuple(Source(kind="step", step=step) for step in self.refers.get(pointer, ()))
        people = tuple(
            Source(kind="person", by=one_line(by, 200)) for at, by in self.given.items() if among(pointer, [at])
        )
        if people:
            return (*people, *steps)
        # A statement about a key holds for everything below it.
        partly = [code for at, codes in self.partly.items() if among(pointer, [at]) for code in codes]
        if steps or partly:
            return (*steps, *_shown(dict.fromkeys(partly), part=True))
        found = self.under(pointer) if among(pointer, self.whole) else None
        if found is None or found == [BY_MODEL]:
            return ()
        return _shown(dict.fromkeys(code for parts in found for part in parts for code in part), part=False)


def _shown(codes: Iterable[str], *, part: bool) -> tuple[Source, ...]:
    told = [source_of(one_line(code, 300)) for code in list(codes)[:MOST_SHOWN]]
    return tuple(source.model_copy(update={"part": True}) if part else source for source in told)


def sources_data(sources: ArgumentSources | None) -> dict[str, Any]:
    """Return what the event of a call keeps of its sources; nothing where all is the model's own."""
    if sources is None or sources.by == {"": BY_MODEL}:
        return {}
    return {"sources": {at: [list(part) for part in parts] for at, parts in sources.by.items()}}


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf of a JSON value with its JSON pointer, in order."""
    match value:
        case dict() if value and not is_stored_text(value):
            for key, item in value.items():
                yield from leaves(item, pointer_to(pointer, key))
        case list() if value:
            for index, item in enumerate(value):
                yield from leaves(item, f"{pointer}/{index}")
        case _:
            yield pointer, value


def among(pointer: str, pointers: Iterable[str]) -> bool:
    """Return whether a pointer is one of others, or leads to something below one of them."""
    return any(pointer == other or pointer.startswith(f"{other}/") for other in pointers)
