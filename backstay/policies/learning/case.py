"""The verdicts of people on one call that policy asked about, as plain data to learn from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backstay.provenance.source import Source

Said = Literal["approve", "modify", "reject"]


@dataclass(frozen=True, slots=True)
class Case:
    """Hold one call as a person was shown it, and what that person said of it."""

    run: str
    request: str
    starters: frozenset[str]
    """The names of who started the run; empty where nobody proved who that was."""
    tool: str
    arguments: Mapping[str, Any]
    """As they were shown; those that are `unseen` stand for something else."""
    by: str
    said: Said
    verified: bool
    asked_at: float
    decided_at: float
    """In unix seconds."""
    args_digest: str = ""
    """Of all arguments as they are, also of those that nobody was shown whole."""
    unseen: frozenset[str] = frozenset()
    """Arguments of which it is not known what they are: clipped, secret, or with characters that are shown as codes."""
    incomplete: bool = False
    """Whether it has arguments that were not shown at all."""
    by_default: bool = True
    """Whether only a default asked, in whose place a line can stand."""
    reads: bool = False
    """Whether the tool only reads: a default asks about it because it reaches out."""
    sources: Mapping[str, tuple[Source, ...]] = field(default_factory=dict)
    """Where arguments came from, by their top-level names; none for the model's own words."""
    edited: frozenset[str] = frozenset()
    """Of `modify`: the arguments that the person gave other values."""
    was_edited: bool = False
    """Whether people had changed the call before it was asked about again."""
    current: bool = True
    """Whether the tool was defined then as it is now."""

    @property
    def seconds(self) -> float:
        """Return how long it took to decide."""
        return self.decided_at - self.asked_at
