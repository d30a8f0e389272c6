"""The rules of rehearsals: how an answer is simulated, and when a real call fits what was foretold.

A simulated leaf is the token `⟦sim:<idx>:<pointer>⟧`. It stands for the value, of whatever type, that the real answer
of call `idx` has at that JSON pointer.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import Field

from backstay.approvals.forecast import ForecastEntry
from backstay.canonical import canonical, digest_of, key_of, pointer_to, texts_of
from backstay.frozen import Frozen
from backstay.shown import one_line
from backstay.tools.tool import ToolResult

OPEN, CLOSE = "⟦sim:", "⟧"
MOST_LEAVES = 500
_DEEPEST = 12
_LONGEST_INDEX = 9
_MISSING = object()


class RehearsedCall(Frozen):
    """Say that a call is made in a rehearsal, as which one of it."""

    idx: int
    name: str
    """Of the rehearsal: its copy of the workspace is kept under it."""
    simulated: tuple[int, ...] = ()
    """The earlier calls of the rehearsal whose answers were simulated."""


class Rehearsal(Frozen):
    """Hold how far the rehearsal of a plan, or of a program, came and what it foretells."""

    forecast: tuple[ForecastEntry, ...] = ()
    results: dict[int, str] = Field(default_factory=dict)
    """Stored answers by the number of the call, simulated ones too."""
    failed: dict[int, str] = Field(default_factory=dict)
    """Why a call that was tried gave no answer."""
    done: bool = False

    def entry(self, index: int) -> ForecastEntry | None:
        """Return what is foretold of a call; None where nothing is."""
        return next((entry for entry in self.forecast if entry.idx == index), None)

    def with_call(self, entry: ForecastEntry, ref: str | None, fault: str) -> "Rehearsal":
        """Return the rehearsal with one more call, which a fault may have ended; a read behind a write is assumed."""
        update: dict[str, Any] = {"forecast": (*self.forecast, entry)}
        if fault:
            update["failed"] = self.failed | {entry.idx: fault}
        elif ref is not None:
            update["results"] = self.results | {entry.idx: ref}
        return self.model_copy(update=update)

    def without(self, index: int, fault: str) -> "Rehearsal":
        """Return the rehearsal with a call that was not even tried; the fault begins with the type of the error."""
        return self.model_copy(update={"failed": self.failed | {index: fault}})

    def answer(self, index: int) -> ToolResult:
        """Return the answer to a call that was tried."""
        if index in self.failed:
            kind, _, said = self.failed[index].partition(": ")
            return ToolResult(success=False, error=said, error_type=kind)
        entry = self.entry(index)
        simulated = entry is not None and entry.simulated
        return ToolResult(success=True, ref=self.results.get(index), simulated=simulated)

    def knows(self, index: int) -> bool:
        """Return whether a call was tried."""
        return index in self.failed or self.entry(index) is not None

    def digest_with(self, about: str) -> str:
        """Return the digest of all that is foretold, and of what it is about."""
        return digest_of([about, [[entry.idx, entry.tool, entry.digest] for entry in self.forecast]])

    @property
    def wrote(self) -> bool:
        """Return whether a write was simulated so far."""
        return any(entry.writes for entry in self.forecast)

    @property
    def simulated(self) -> tuple[int, ...]:
        """Return the numbers of the calls whose answers were simulated."""
        return tuple(entry.idx for entry in self.forecast if entry.simulated)


class Token(NamedTuple):
    """Name a simulated value: the call, and where its answer holds the value."""

    idx: int
    pointer: str

    @property
    def text(self) -> str:
        """Return it as it is in arguments."""
        return f"{OPEN}{self.idx}:{self.pointer}{CLOSE}"


def simulated_answer(schema: Any, idx: int) -> Any:
    """Return what call `idx` may answer by the JSON Schema of its answer: every leaf is a token."""
    return _Simulating(schema, idx).answer(schema, "", 0)


class _Simulating:
    """Walk through one schema, as deep and as wide as is reasonable."""

    def __init__(self, root: Any, idx: int) -> None:
        self.root = root
        self.idx = idx
        self.left = MOST_LEAVES

    def answer(self, schema: Any, pointer: str, depth: int) -> Any:
        self.left -= 1
        if depth > _DEEPEST or self.left <= 0 or not isinstance(schema, dict):
            return Token(self.idx, pointer).text
        if (other := self._meant(schema)) is not None:
            return self.answer(other, pointer, depth + 1)
        properties, items = schema.get("properties"), schema.get("items")
        if isinstance(properties, dict) and properties and all(map(_plain, properties)):
            named = ((key, inner, pointer_to(pointer, key)) for key, inner in properties.items())
            return {key: self.answer(inner, at, depth + 1) for key, inner, at in named}
        if isinstance(items, dict):
            return [self.answer(items, pointer_to(pointer, "0"), depth + 1)]
        return Token(self.idx, pointer).text

    def _meant(self, schema: dict[str, Any]) -> Any:
        """Return the schema that another one refers to, or its first choice that is not null."""
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            found = value_at(self.root, reference[1:])
            return None if found is _MISSING else found
        for name in ("anyOf", "oneOf", "allOf"):
            choices = schema.get(name)
            if isinstance(choices, list) and choices:
                real = (choice for choice in choices if not (isinstance(choice, dict) and choice.get("type") == "null"))
                return next(real, None)
        return None


def _plain(name: str) -> bool:
    return not any(sign in name for sign in "⟦⟧")


def tokens_in(value: Any) -> list[Token]:
    """Return the tokens in a JSON value, those in names of objects included."""
    return [part for text in texts_of(value, names=True) for part in _parts(text) if isinstance(part, Token)]


def _parts(text: str) -> Iterator[str | Token]:
    """Yield a string as its tokens and what stands between them."""
    rest = text
    while True:
        before, opened, after = rest.partition(OPEN)
        inner, closed, remainder = after.partition(CLOSE)
        if not opened or not closed:
            yield rest
            return
        index, colon, pointer = inner.partition(":")
        if before:
            yield before
        number = colon and index.isascii() and index.isdecimal() and len(index) <= _LONGEST_INDEX
        right = number and (not pointer or pointer.startswith("/"))
        yield Token(int(index), pointer) if right else f"{OPEN}{inner}{CLOSE}"
        rest = remainder
        if not rest:
            return


def value_at(document: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer, or a mark of its own where there is none."""
    found = document
    for part in pointer.split("/")[1:]:
        key = key_of(part)
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and len(key) <= _LONGEST_INDEX and int(key) < len(found):
            found = found[int(key)]
        else:
            return _MISSING
    return found


SHOWN_VALUE = 120
"""How many characters of each of two values that differ people are shown."""
_KEPT_BEFORE = 20


class Difference(NamedTuple):
    """Name where a call is not as it was foretold."""

    pointer: str
    foretold: Any
    real: Any

    @property
    def words(self) -> str:
        """Return both values as people compare them: of long ones, what comes where they begin to differ."""
        texts = repr(self.foretold), repr(self.real)
        start = 0
        if max(map(len, texts)) > SHOWN_VALUE:
            equal = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
            start = max(0, equal - _KEPT_BEFORE)
        said = [one_line(f"{'...' if start else ''}{text[start:]}", SHOWN_VALUE) for text in texts]
        after = f"after {start} equal characters: " if start else ""
        return f"{after}foretold {said[0]}, now {said[1]}"


def differences(foretold: Any, real: Any, answers: Mapping[int, Any], before: int) -> list[Difference]:
    """Return where arguments differ from what was foretold; none when the call fits.

    A token fits the value that it stands for in the real `answers`, which are those of calls before number `before`.
    """
    known = {idx: answer for idx, answer in answers.items() if idx < before}
    return list(_differing("", foretold, real, known))


def _differing(pointer: str, foretold: Any, real: Any, answers: Mapping[int, Any]) -> Iterator[Difference]:
    if isinstance(foretold, dict) and isinstance(real, dict):
        named = {_text(key, answers): item for key, item in foretold.items()}
        if None in named or len(named) != len(foretold) or named.keys() != real.keys():
            yield Difference(pointer, sorted(map(str, foretold)), sorted(real))
            return
        for key, item in named.items():
            yield from _differing(pointer_to(pointer, str(key)), item, real[key], answers)
    elif isinstance(foretold, list) and isinstance(real, list) and len(foretold) == len(real):
        for index, (item, found) in enumerate(zip(foretold, real, strict=True)):
            yield from _differing(pointer_to(pointer, str(index)), item, found, answers)
    elif not _same(foretold, real, answers):
        yield Difference(pointer, foretold, real)


def _same(foretold: Any, real: Any, answers: Mapping[int, Any]) -> bool:
    if not isinstance(foretold, str):
        return type(foretold) is type(real) and canonical(foretold) == canonical(real)
    parts = list(_parts(foretold))
    if len(parts) == 1 and isinstance(parts[0], Token):
        value = _stands_for(parts[0], answers)
        return value is not _MISSING and canonical(value) == canonical(real)
    return isinstance(real, str) and _text(foretold, answers) == real


def _text(foretold: str, answers: Mapping[int, Any]) -> str | None:
    """Return a string with the values that its tokens stand for, or None where one stands for nothing."""
    text = ""
    for part in _parts(foretold):
        value = _stands_for(part, answers) if isinstance(part, Token) else part
        if value is _MISSING:
            return None
        text += str(value)
    return text


def _stands_for(token: Token, answers: Mapping[int, Any]) -> Any:
    return value_at(answers[token.idx], token.pointer) if token.idx in answers else _MISSING


def missing_value(path: str, simulated: Mapping[int, Any]) -> Any:
    """Return the token for a reference `steps.<idx>.result.<path>` that leads nowhere in a simulated answer, or None.

    Fields that a schema does not name may still be in the real answer.
    """
    parts = path.split(".")
    if len(parts) < 3 or parts[0] != "steps" or not parts[1].isdecimal() or int(parts[1]) not in simulated:
        return None
    pointer = ""
    for index, key in enumerate(parts[3:]):
        found = value_at(simulated[int(parts[1])], pointer)
        if isinstance(found, str) and list(map(type, _parts(found))) == [Token]:
            # The part of an answer that is one token holds all that a reference finds beneath it.
            beneath = "".join(pointer_to("", inner) for inner in parts[3 + index :])
            (token,) = tokens_in(found)
            return Token(token.idx, token.pointer + beneath).text
        pointer = pointer_to(pointer, key)
    return Token(int(parts[1]), pointer).text
