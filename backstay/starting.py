"""What is asked and answered where something starts a run: a schedule, a trigger, or a run that delegates."""

from typing import Any

from pydantic import Field

from backstay.authority import Authority
from backstay.budgets.share import Share, Spent
from backstay.canonical import digest_of
from backstay.effects.effect import Effect
from backstay.frozen import Message
from backstay.requests import OfRun
from backstay.task.standing import Kind
from backstay.tools.tool import ToolResult

NOT_BEGUN = "cancelled before it began"
"""Why a run was never started, so that it has cost nothing."""


_LONGEST_ID = 900
"""Bytes of a workflow id that those of sub-runs begin with; Temporal takes ids of 1,000."""
_BELOW = "--"


def subrun_id(workflow_id: str, first_run_id: str, n: int) -> str:
    """Return the workflow id of a sub-run; two runs that bear the same name have sub-runs of different names.

    Run ids begin with the time, so that only their ends tell those apart that begin together.
    """
    return f"{_base(workflow_id)}{_BELOW}{first_run_id[-8:]}-{n}"


def is_below(workflow_id: str, above: str | None) -> bool:
    """Return whether a run bears the name of a sub-run of another one, or of a sub-run of that."""
    return above is not None and workflow_id.startswith(f"{_base(above)}{_BELOW}")


def may_be_subrun(workflow_id: str) -> bool:
    """Return whether a run bears a name such as those of sub-runs; whether it is one, the store knows."""
    return _BELOW in workflow_id


def _base(workflow_id: str) -> str:
    return workflow_id if len(workflow_id.encode("utf-8", "replace")) <= _LONGEST_ID else digest_of(workflow_id)[:32]


class BeginStart(OfRun):
    """Reserve for one run of a schedule or a trigger, and say with which task it starts."""

    kind: Kind
    name: str
    start: str
    """The workflow id of the start."""


class BegunStart(Message):
    """Hold the task of a run that may start, or why it may not."""

    workflow_id: str = ""
    """Of the run; empty where it may not start."""
    task: dict[str, Any] = Field(default_factory=dict)
    """Signed for that run."""
    line: str = ""
    refused: str = ""


class EndStart(OfRun):
    """Settle what one run of a schedule or a trigger has cost."""

    start: str
    workflow_id: str
    """Of the run."""
    first_run_id: str = ""
    """Of its first execution; empty where it was not started."""
    fault: str = ""
    """Why it was not started, or the type of the error that it failed with."""


class WantedSubrun(Message):
    """Say what one sub-run is to do, and what it may spend."""

    n: int
    """Which sub-run of the run it is, from 1."""
    workflow_id: str
    task: dict[str, Any]
    share: Share


class BeginSubruns(OfRun):
    """Keep what the sub-runs of one decision are started with; a repeat keeps nothing twice."""

    subruns: tuple[WantedSubrun, ...]
    context: str
    """Ref of the transcript of the run: where the words of the tasks come from."""
    private: tuple[str, ...] = ()
    """The providers that have answered the run something which not everybody may read."""
    step: int


class BegunSubruns(Message):
    """Say that sub-runs may start, or why none may."""

    refused: str = ""
    """Empty where they may."""


class EndedChild(Message):
    """Say how the workflow of a sub-run has ended, as Temporal told the run."""

    workflow_id: str
    fault: str = ""
    """The type of the error that it failed with, or what else became of it; empty where it has a Result."""
    unseen: bool = False
    """Whether it was started before, so that Temporal tells this execution nothing of its end."""


class EndSubruns(OfRun):
    """Settle what sub-runs have spent, keep what they say, and take over their effects that stand."""

    children: tuple[EndedChild, ...]
    first_effect: int
    """The first number that their effects may have in the run."""


class EndedSubrun(Message):
    """Tell how one sub-run has ended."""

    workflow_id: str
    outcome: str
    result: ToolResult
    """What the model of the run is told."""
    spent: Spent | None = None
    """None where nobody knows, so that all of its share counts."""
    open: bool = False
    """Whether it works on, so that nothing of this holds yet."""
    whole: Spent | None = None
    """Where nobody knows what it has spent: all that it could spend, with what people have added to its share."""


class EndedSubruns(Message):
    """Tell how sub-runs have ended, and which of their effects stand."""

    subruns: tuple[EndedSubrun, ...] = ()
    """In the order in which they were asked about."""
    effects: tuple[Effect, ...] = ()
    """Under their numbers in the run, those with the highest ones first."""
    count: int = 0
    """How many there are in all."""
    authority: Authority | None = None
    """Who may undo all of them."""
    next_effect: int = 0
    """The first number that no effect has."""
