"""What people are told of a run: in order, each once or more."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from backstay.approvals.approval import Approval, ApprovalRequest, ChangedCall, Links, Verdict
from backstay.approvals.proposal import PlanToggles
from backstay.approvals.verdicts import comes_to, verdict_of_each
from backstay.frozen import Frozen
from backstay.shown import one_line


class NoticeKind(StrEnum):
    """Name what a notice tells."""

    ASKED = "asked"
    DECIDED = "decided"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    ENDED = "ended"
    EFFECT_UNKNOWN = "effect.unknown"
    BUDGET_OVERSHOT = "budget.overshot"


class DecisionNotice(Frozen):
    """Say how a request was decided."""

    verdict: Verdict
    by: str
    verified: bool = False
    comment: str = ""
    option: str = ""
    """How a plan was approved."""
    calls: dict[int, str] = Field(default_factory=dict, exclude_if=lambda calls: not calls)
    """The verdict of each call, by index, where they are not all that of the whole; nothing for a plan."""
    left_out: tuple[int, ...] = Field(default=(), exclude_if=lambda steps: not steps)
    """The steps of a plan that people rejected while they approved the rest."""
    toggles: PlanToggles | None = Field(default=None, exclude_if=lambda toggles: toggles is None)
    """What an approved plan may not do, though it was proposed so."""
    stop: bool = Field(default=False, exclude_if=lambda stop: not stop)
    """Whether it ends the run."""
    asked_again: bool = Field(default=False, exclude_if=lambda again: not again)
    """Whether the calls are asked about again with its change, so that it let none of them go."""
    remember: str = Field(default="", exclude_if=lambda remember: not remember)
    """How long it was to be remembered."""
    changed: tuple[ChangedCall, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    """What it changed of calls."""

    @classmethod
    def of(
        cls,
        request: ApprovalRequest,
        approval: Approval,
        changed: tuple[ChangedCall, ...],
        *,
        verified: bool,
        again: bool,
    ) -> "DecisionNotice":
        """Return what is told of the decision that completed a request."""
        proposal, toggles = request.proposal, approval.toggles
        verdict, each = comes_to(request, approval), verdict_of_each(request, approval)
        if proposal is not None and proposal.no_processes_by:
            # The person who decided last may not be the one who said so.
            toggles = (toggles or PlanToggles()).model_copy(update={"external_processes": False})
        return cls(
            verdict=verdict,
            by=one_line(approval.by, 200),
            verified=verified,
            comment=one_line(approval.comment, 1000),
            option=approval.option or "",
            calls=each if proposal is None and {*each.values()} != {verdict.value} else {},
            left_out=() if proposal is None else tuple(sorted(proposal.left_out)),
            toggles=toggles,
            stop=approval.stop,
            asked_again=again,
            remember=approval.remember or "",
            changed=changed,
        )


class NoticeDraft(Frozen):
    """Hold what a workflow knows of a notice; a field at its default does not reach history."""

    sequence: int
    """Counted in the run, without gaps."""
    event: NoticeKind
    at: str
    request: ApprovalRequest | None = None
    """Of `asked`, whole."""
    request_id: str = ""
    """Of what became of a request."""
    decision: DecisionNotice | None = None
    reminder: int = 0
    """How often people were reminded before, counting this time; 0 when it is asked, and when it is escalated."""
    data: dict[str, Any] = Field(default_factory=dict)
    """Of what concerns no request."""


class Notice(Frozen):
    """Tell people and other programs one thing about a run; the JSON of this is what webhooks carry."""

    version: int = 2
    id: str
    """The same whenever the same notice comes again."""
    sequence: int
    """Grows by one from each notice of a run to the next."""
    event: NoticeKind
    at: str
    namespace: str = ""
    workflow_id: str
    run_id: str
    """The run id of the run's first execution."""
    user_id: str = ""
    session_id: str | None = None
    task: str = ""
    """The first line of the task, redacted."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """What the task said in its field `metadata`, redacted."""
    links: Links = Links()
    request: dict[str, Any] | None = None
    """The request that is asked, or that something became of."""
    decision: DecisionNotice | None = None
    reminder: int = 0
    """How often people were reminded, counting this time; 0 when it is asked, and when it is escalated."""
    result: dict[str, Any] | None = None
    """How the run ended, without its events and effects."""
    effect: dict[str, Any] | None = None
    """The effect of which nobody knows whether it took place."""
    budget: dict[str, Any] | None = None
    """What was billed beyond what was reserved."""

    @property
    def request_id(self) -> str:
        """Return the id of the request it is about; empty when it is about none."""
        return "" if self.request is None else str(self.request.get("id", ""))

    @classmethod
    def named(cls, workflow_id: str, run_id: str, draft: NoticeDraft) -> str:
        """Return the id of a notice; after a reset another notice may have the same number, at another time."""
        return f"{workflow_id}/{run_id}/{draft.sequence}/{draft.at}"
