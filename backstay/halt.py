"""Where a program stands still."""

from typing import Literal

from pydantic import Field

from backstay.noun import Noun
from backstay.tool import ToolCall


class Halt(Noun):
    """Say why a program does not go on: it waits for calls, it has finished, or it has failed."""

    kind: Literal["waiting", "finished", "crashed"]
    calls: tuple[ToolCall, ...] = ()
    """What it waits for: one batch, ids are the calls' numbers in program order."""
    refused: dict[int, str] = Field(default_factory=dict)
    """By index in `calls`: what is wrong with the arguments; such a call is not made."""
    journal: str = ""
    """Ref of the journal up to here."""
    image: str = ""
    """Hash of the root image it runs in; every later round needs the same one."""
    sampled: bool = False
    """Whether it is to be run again from its journal, beside the run, to prove that this leads to the same end."""
    queue: str = ""
    """Where the paused program is kept; going on anywhere else feeds the journal to a new one."""
    rounds: int = 0
    payload: str | None = None
    """Ref of what it returned and printed."""
    error: str | None = None
    """One line; None when it finished."""
    error_type: str | None = None
