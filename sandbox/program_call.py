"""One call that a program waits for."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """Name a tool and its arguments; `i` counts the program's calls from 0 in the order it made them."""

    i: int
    tool: str
    arguments: dict[str, Any]
