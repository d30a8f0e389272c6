"""Where a value came from, as plain data that travels with a call."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from backstay.frozen import Frozen, Message
from backstay.shown import one_line

Kind = Literal["task", "person", "operator", "tool", "program", "model"]
Content = Literal["own", "others"]
Parts = tuple[tuple[str, ...], ...]
"""What a value was put together from, in order: for each part the codes of all places where it stood."""

MODEL = "model"
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
    """Return whether strangers may have written what stood there."""
    return code.startswith((_OTHERS, _PROGRAM + _OTHERS))


def is_computed(code: str) -> bool:
    """Return whether a program computed it; the codes of one value then name all that the program had read."""
    return code.startswith(_PROGRAM)


def vouched(codes: Sequence[str]) -> bool:
    """Return whether the task, a person, the operator or an own record vouches for what stood in these places."""
    if any(code != MODEL and not is_others(code) and not is_computed(code) for code in codes):
        return True
    computed = [code for code in codes if is_computed(code)]
    return bool(computed) and not any(map(is_others, computed))


class Sources(Message):
    """Hold where the arguments of one call came from, in short codes."""

    by: dict[str, Parts] = Field(default_factory=dict)
    """By JSON pointer; what holds for all that is below a pointer stands there once."""
    foreign: tuple[str, ...] = ()
    """Pointers of addresses, accounts, paths, URLs and commands that come from what others wrote only."""
    reaching: tuple[str, ...] = ()
    """Pointers of what would leave with a read that reaches out, and is not from task, person or operator."""
    more: int = 0
    """Of how many further arguments nothing is told."""

    def under(self, pointer: str) -> list[Parts] | None:
        """Return the parts of all values at and below a pointer; None when they are not known."""
        below = [parts for at, parts in self.by.items() if at == pointer or at.startswith(f"{pointer}/")]
        if below and not self.more:
            return below
        above = pointer
        while not below:
            if above in self.by:
                return [self.by[above]]
            if not above:
                return None
            above = above.rpartition("/")[0]
        # Below a pointer that is named itself nothing else stands; below others something may be missing.
        return below if pointer in self.by else None

    def decided_by_person(self, pointers: Sequence[str]) -> "Sources":
        """Return the sources after a person has given these arguments other values."""
        by = {at: parts for at, parts in self.by.items() if not _among(at, pointers)}
        by |= dict.fromkeys(pointers, (("person",),))
        foreign = tuple(at for at in self.foreign if not _among(at, pointers))
        reaching = tuple(at for at in self.reaching if not _among(at, pointers))
        return Sources(by=by, foreign=foreign, reaching=reaching, more=self.more)

    def of_leaves(self, arguments: dict[str, Any], most: int = 8) -> dict[str, tuple[Source, ...]]:
        """Return the sources of so many leaves in full, as requests show them; first where only others vouch."""
        shown: dict[str, tuple[Source, ...]] = {}
        for pointer, _ in sorted(leaves(arguments), key=lambda leaf: leaf[0] not in self.foreign):
            found = self.under(pointer)
            if found is None or found == [BY_MODEL]:
                continue
            if len(shown) >= most:
                break
            codes = list(dict.fromkeys(code for parts in found for part in parts for code in part))[:MOST_SHOWN]
            shown[one_line(pointer, 200)] = tuple(source_of(one_line(code, 300)) for code in codes)
        return shown


def sources_data(sources: Sources | None) -> dict[str, Any]:
    """Return what the event of a call keeps of its sources; nothing where all is the model's own."""
    if sources is None or sources.by == {"": BY_MODEL}:
        return {}
    return {"sources": {at: [list(part) for part in parts] for at, parts in sources.by.items()}}


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf of a JSON value with its JSON pointer, in order."""
    match value:
        case dict() if value and "$ref" not in value:
            for key, item in value.items():
                yield from leaves(item, pointer_to(pointer, key))
        case list() if value:
            for index, item in enumerate(value):
                yield from leaves(item, f"{pointer}/{index}")
        case _:
            yield pointer, value


def pointer_to(pointer: str, key: Any) -> str:
    """Return the JSON pointer of a key below a pointer."""
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def first_seen(found: Source) -> str:
    """Return where that is, in words for people."""
    match found.kind:
        case "task":
            return "the task"
        case "person":
            return "a person's answer" if found.content is None else "an answer of nobody verified"
        case "operator":
            return "the operator's files"
        case "model":
            return "the model's own words"
        case "tool":
            whose = "which others write" if found.content == "others" else "an own record"
            return f"the answer of {one_line(found.tool or '', 100)}, {whose}"
        case "program":
            whose = ", which others write" if found.content == "others" else ""
            return f"what a program computed from {one_line(found.tool or 'nothing', 100)}{whose}"


def told_of(sources: Mapping[str, Sequence[Source]], name: str) -> str:
    """Return where an argument of a request first appeared, in words for people; empty when only the model said it."""
    places = [source for at, found in sources.items() if _among(at, [pointer_to("", name)]) for source in found]
    told = dict.fromkeys(first_seen(source) for source in places)
    return f"first seen in {_listed(list(told))}" if told else ""


def _listed(told: Sequence[str]) -> str:
    """Return places as a list; what is said of one of them behind a comma must not be taken for part of the next."""
    return (", and in " if any("," in place for place in told[:-1]) else " and in ").join(told)


def _among(pointer: str, pointers: Sequence[str]) -> bool:
    return any(pointer == other or pointer.startswith(f"{other}/") for other in pointers)
