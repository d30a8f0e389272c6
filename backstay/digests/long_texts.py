"""Find the texts in a payload that a model reads as texts, and shorten those that are too long."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from backstay.canonical import canonical, pointer_to
from backstay.digests.cutting import Gap, cut_text, size_of_text

MOST_TEXTS = 8
"""A payload with more of them is a table."""
_DEEPEST = 4
_SHORT = 200
LEAST_CUT = 400
"""A string of which less has room is left out, and only said to be there."""
_REST = 2048


def is_read_as_text(value: Any) -> bool:
    """Return whether a string is long, or would be written otherwise within JSON."""
    return isinstance(value, str) and (len(value) > _SHORT or canonical(value) != f'"{value}"')


def texts_at(value: Any, pointer: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in a payload that are to be read as such, with where they stand."""
    if is_read_as_text(value):
        yield pointer, value
    elif depth < _DEEPEST and isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in inside:
            yield from texts_at(item, pointer_to(pointer, key), depth + 1)


def without_texts(value: Any, instead: dict[str, str], pointer: str = "") -> Any:
    """Return a payload with something in place of the texts that are at these places."""
    if pointer in instead:
        return instead[pointer]
    match value:
        case dict():
            return {key: without_texts(item, instead, pointer_to(pointer, key)) for key, item in value.items()}
        case list():
            return [without_texts(item, instead, f"{pointer}/{at}") for at, item in enumerate(value)]
        case _:
            return value


@dataclass(frozen=True)
class LongTexts:
    """Hold a payload whose bulk are a few texts: these, by where they stand, and the payload without them."""

    texts: dict[str, str]
    rest: Any
    around: int
    """Bytes of the rest."""

    @classmethod
    def of(cls, payload: Any, room: int) -> "LongTexts | None":
        """Return them, or None for any other payload, such as a table."""
        long: dict[str, str] = {}
        for pointer, text in texts_at(payload):
            if len(text) > LEAST_CUT:
                long[pointer] = text
            if len(long) > MOST_TEXTS:
                return None
        rest = without_texts(payload, dict.fromkeys(long, "")) if long else None
        around = size_of_text(canonical(rest))
        return cls(long, rest, around) if long and around <= min(_REST, room // 3) else None

    @property
    def size(self) -> int:
        """Return the bytes that all of it takes."""
        return self.around + sum(map(size_of_text, self.texts.values()))

    @property
    def longest(self) -> str:
        """Return the longest text."""
        return max(self.texts.values(), key=len)

    def cut(self, room: int, wanted: AbstractSet[str]) -> dict[str, Any]:
        """Return `rest`, and as `texts` the pieces of each that fit into the room together."""
        sizes = {pointer: size_of_text(text) for pointer, text in self.texts.items()}
        shares = shared(sizes, room - self.around)
        pieces = {at: _kept(_pieces_of(text, shares[at], wanted)) for at, text in self.texts.items()}
        return {"rest": self.rest, "texts": pieces}


def shared(sizes: dict[str, int], room: int) -> dict[str, int]:
    """Return how much of a room each may take: room that small ones leave goes to the large ones.

    They never take more than the room together; the last ones get nothing where it is too small for all.
    """
    shares: dict[str, int] = {}
    for count, name in enumerate(sorted(sizes, key=lambda name: (sizes[name], name))):
        least = min(sizes[name], LEAST_CUT)
        share = min(sizes[name], max(room // (len(sizes) - count), least))
        shares[name] = share if share <= room else 0
        room -= shares[name]
    return shares


def _pieces_of(text: str, share: int, wanted: AbstractSet[str]) -> list[str | Gap]:
    return cut_text(text, share, wanted) if share else [Gap(0, len(text), text.count("\n"))]


def _kept(pieces: list[str | Gap]) -> list[Any]:
    return [piece if isinstance(piece, str) else piece._asdict() for piece in pieces]
