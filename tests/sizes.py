"""How much of what is made by the hundred a test takes: a sample, or with FULL_SIZE=1, as in `make soak`, all of it."""

import os
from collections.abc import Sequence
from typing import TypeVar

FULL = os.environ.get("FULL_SIZE") == "1"
Case = TypeVar("Case")


def sized(full: int, sample: int) -> int:
    """Return how many to take."""
    return full if FULL else sample


def spread(cases: Sequence[Case], count: int) -> list[Case]:
    """Return so many of the cases, evenly spread and always the same ones; all of them at full size."""
    if FULL or count >= len(cases):
        return list(cases)
    return [cases[number * len(cases) // count] for number in range(count)]


__all__ = ["FULL", "sized", "spread"]
