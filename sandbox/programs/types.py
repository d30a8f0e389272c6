"""What passes between a program and its host: calls, and the rounds that carry them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """Name a tool and its arguments; `i` counts the program's calls from 0 in the order it made them."""

    i: int
    tool: str
    arguments: dict[str, Any]


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
