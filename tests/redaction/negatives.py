"""Hard negatives: payloads that look or read like secrets and are none."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.redaction.grammar import Filler, read

SEED = 20_310_501
PER_KIND = {"negatives.yaml": 37, "held_out_negatives.yaml": 24}
MOST_TRIES = 50


def hard_negatives(*, held_out: bool) -> Iterator[tuple[str, Any]]:
    """Draw the kinds and payloads of one half, each payload once."""
    name = "held_out_negatives.yaml" if held_out else "negatives.yaml"
    for entry in read(name):
        drawn = different(entry["kind"], entry["templates"], PER_KIND[name])
        yield from ((entry["kind"], payload) for payload in drawn)


def different(kind: str, templates: list[Any], count: int) -> Iterator[Any]:
    """Draw `count` payloads of one kind from templates that take turns, no two alike."""
    filler = Filler(Random(f"{SEED}:{kind}"))
    seen: set[str] = set()
    for number in range(count):
        for _ in range(MOST_TRIES):
            payload = filler.payload(templates[number % len(templates)])
            text = json.dumps(payload)
            if text not in seen:
                break
        seen.add(text)
        yield payload
