"""Where a program stands still, as its jail says it and the host believes it."""

from dataclasses import dataclass
from typing import Any, Literal

from sandbox.jail_process import Jail
from sandbox.program_call import ProgramCall
from sandbox.round import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Halted:
    """Say why the program does not go on: it waits for calls, has finished with a result, or has crashed."""

    kind: Literal["waiting", "finished", "crashed"]
    round: Round
    """What has just been exchanged."""
    calls: tuple[ProgramCall, ...] = ()
    """One batch, numbered consecutively; empty unless it waits."""
    result: Any = None
    error: dict[str, str] | None = None
    """`type` and `message`, one line each."""
    output: str = ""
    """What the program has printed so far, as far as it is kept."""
    output_dropped: int = 0
    """How many bytes of what it printed are not kept."""
    fed: int = 0
    """How many rounds had to be replayed to get here."""
    jail: Jail | None = None
    """The paused jail of a program that waits; hand it back with `keep` or `discard`."""
