"""How a program ended that was run for a host program."""

from typing import Any

from pydantic import Field

from backstay.noun import Noun


class SandboxResult(Noun):
    """Tell what a program returned, what it printed, and what went wrong."""

    success: bool
    result: Any = None
    """The JSON value that it returned."""
    logs: tuple[str, ...] = Field(default=())
    """What it printed, line by line."""
    error: str | None = None
    """One line; None on success."""
    timed_out: bool = False
