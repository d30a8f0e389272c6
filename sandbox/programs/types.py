"""What passes between a program and its host: calls, and the rounds that carry them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """Name a tool and its arguments; `i` counts the program's calls from 0 in the order it made them."""

    i: int
    tool: str
    arguments: dict[str, Any]
    whole: bool = False
    """Whether the program wants to know how the call ended, and not only the answer."""


@dataclass(frozen=True, slots=True)
class Round:
    """Hold one entry of a journal; feeding the same bytes to the same image brings the program to the same place."""

    sent: bytes
    """The frame that was sent, without its length; empty in the first round, where it is the start frame."""
    came: bytes
    """The frame that came back, without its length; empty when the program died instead of answering."""
    cpu_s: float
    wall_s: float
    """How long the program computed; time spent paused does not count."""


def names_of(tools: Iterable[str]) -> dict[str, str]:
    """Return the tool that each name stands for in a program: `mail.search`, `mail__search`, and `search` alone."""
    every = sorted(tools)
    bare = Counter(tool.partition(".")[2] for tool in every)
    alone = {tool.partition(".")[2]: tool for tool in every if bare[tool.partition(".")[2]] == 1}
    return alone | {tool.replace(".", "__", 1): tool for tool in every} | {tool: tool for tool in every}
