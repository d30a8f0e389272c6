"""The labelled corpus that a redactor of secrets is judged by: what it must take away and what it must leave alone."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from tests.redaction.grammar import FOLDER
from tests.redaction.negatives import hard_negatives
from tests.redaction.placing import Context, Kind, contexts, kinds

SEED = 20_310_502
LEAST_SECRET = 8
LEAST_POSITIVES, LEAST_KINDS, LEAST_NEGATIVES = 2500, 230, 5000
LEAST_HELD_OUT = 0.3
UNFILLED = ("{put:", "{pick:", "{made:", "{int:", "{hex:", "{alnum:", "{base64")
# How many values of a kind stand in each placement; a kind without a fitting context gets more embedded ones instead.
OPEN_PLAN = {"alone": 1, "named": 3, "embedded": 5}
HELD_OUT_PLAN = {"alone": 1, "named": 3, "embedded": 6}
HAS_HELD_OUT = (FOLDER / "held_out.yaml").exists()
"""Whether there is a half that was not read yet; once it was, it becomes part of the open half."""
# Known kinds in held-out contexts: what was learned from formats.yaml has to hold in places nobody has seen.
CROSSED_PLAN = {"named": 1, "embedded": 1}


@dataclass(frozen=True)
class Positive:
    """A payload with a secret, whose exact text must not be found in the redacted payload."""

    kind: str
    context: str
    payload: Any
    secret: str


@dataclass(frozen=True)
class Negative:
    """A payload without a secret, which must come through redaction unchanged."""

    kind: str
    payload: Any


def positives(held_out: bool) -> list[Positive]:
    """Return one half of the positives, always the same."""
    places = contexts(held_out=held_out)
    if not held_out:
        return list(planted(kinds(held_out=False), places, OPEN_PLAN, "open"))
    own = planted(kinds(held_out=True), places, HELD_OUT_PLAN, "held out")
    return [*own, *planted(kinds(held_out=False), places, CROSSED_PLAN, "crossed")]


def negatives(held_out: bool) -> list[Negative]:
    """Return one half of the negatives, always the same."""
    return [Negative(kind, payload) for kind, payload in hard_negatives(held_out=held_out)]


def planted(known: list[Kind], places: list[Context], plan: dict[str, int], part: str) -> Iterator[Positive]:
    """Put values of every kind into contexts as the plan says, so that all contexts have their turn."""
    used: Counter[str] = Counter()
    for kind in known:
        generator = Random(f"{SEED}:{part}:{kind.kind}")
        for placement, count in plan.items():
            for _ in range(count):
                place = least_used(kind, placement, places, used, generator)
                used[place.context] += 1
                used[f"{kind.kind} {place.context}"] += 1
                payload, secret = place.filled(kind, generator)
                yield Positive(kind.kind, place.context, payload, secret)


def least_used(kind: Kind, placement: str, places: list[Context], used: Counter[str], generator: Random) -> Context:
    """Choose the context that this kind, and then every kind, has stood in least often."""
    fitting = [place for place in places if place.holds(kind)]
    wanted = [place for place in fitting if place.placement == placement] or [
        place for place in fitting if place.placement == "embedded"
    ]
    generator.shuffle(wanted)
    return min(wanted, key=lambda place: (used[f"{kind.kind} {place.context}"], used[place.context]))


def halves() -> tuple[bool, ...]:
    """Return the halves there are: the open one, and the one that is held out."""
    return (False, True) if HAS_HELD_OUT else (False,)


@cache
def embedding() -> frozenset[str]:
    """Name the contexts that put the value inside of prose, code, an address or a string of JSON."""
    every = [place for half in halves() for place in contexts(held_out=half)]
    return frozenset(place.context for place in every if place.placement == "embedded")


def strings(payload: Any) -> Iterator[str]:
    """Yield every text of a payload, keys included."""
    match payload:
        case dict():
            for key, value in payload.items():
                yield key
                yield from strings(value)
        case list():
            for value in payload:
                yield from strings(value)
        case str():
            yield payload
        case _:
            pass


def check() -> None:
    """Assert what the corpus promises: counts, halves, and secrets exactly where they are said to be."""
    found = {half: (positives(half), negatives(half)) for half in halves()}
    check_counts(found)
    check_halves()
    secrets = {item.secret for planted_ones, _ in found.values() for item in planted_ones}
    for planted_ones, harmless in found.values():
        for item in (*planted_ones, *harmless):
            text = json.dumps(item.payload)
            assert text.isascii(), item
            assert not any(sign in text for sign in UNFILLED), item
        for item in planted_ones:
            assert len(item.secret) >= LEAST_SECRET, item
            assert item.secret in json.dumps(item.payload), item
            assert any(item.secret in part for part in strings(item.payload)), item
        for item in harmless:
            text = json.dumps(item.payload)
            assert not any(secret in text for secret in secrets), item
    for half in halves():
        assert positives(half) == found[half][0]
        assert negatives(half) == found[half][1]


def check_counts(found: dict[bool, tuple[list[Positive], list[Negative]]]) -> None:
    """Assert that there are as many examples and kinds as promised, and that enough of them are held out."""
    planted_ones = [sample for half, _ in found.values() for sample in half]
    harmless = [json.dumps(sample.payload) for _, half in found.values() for sample in half]
    assert len(planted_ones) >= LEAST_POSITIVES
    assert len({planted.kind for planted in planted_ones}) >= LEAST_KINDS
    assert len(harmless) >= LEAST_NEGATIVES
    assert len(set(harmless)) == len(harmless)
    for half, _ in found.values():
        assert sum(sample.context in embedding() for sample in half) * 2 >= len(half)
        assert len({json.dumps(sample.payload) for sample in half}) == len(half)
    if HAS_HELD_OUT:
        assert len(found[True][0]) >= LEAST_HELD_OUT * len(planted_ones)
        assert len(found[True][1]) >= LEAST_HELD_OUT * len(harmless)


def check_halves() -> None:
    """Assert that no kind, no issuer, no name of a context and no template stands in both halves."""
    # Forms without an issuer, such as a key of an RFC, may have relatives in both halves.
    issuers = [{kind.issuer for kind in kinds(held_out=half)} - {"any"} for half in halves()]
    assert len(set().union(*issuers)) == sum(map(len, issuers))
    names = [kind.kind for half in halves() for kind in kinds(held_out=half)]
    places = [context for half in halves() for context in contexts(held_out=half)]
    assert len(set(names)) == len(names)
    assert len({place.context for place in places}) == len(places)
    assert len({json.dumps(place.payload) for place in places}) == len(places)
