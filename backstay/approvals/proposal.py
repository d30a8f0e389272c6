"""The view of a plan that people are shown before they decide, and the part of it that each of them decides."""

from collections.abc import Collection
from typing import Any, Literal

from pydantic import Field

from backstay.authority import Authority
from backstay.frozen import Frozen, PublicInput
from backstay.tools.tool import Safety, WorkspaceLimits

ApproveOption = Literal["approve_all", "approve_per_step", "dry_run_only"]
"""How a plan is approved: as it is, without the steps that are rejected, or not to be carried out at all."""
LIMITS = {"timeout_s": "s", "memory_mb": "MB", "cpu_s": "s", "artifacts_mb": "MB"}
"""What an approver can give each step less of, with the unit of each."""


class PlanLimits(WorkspaceLimits):
    """Bound each step of a plan; those of a jail are null where no step works in one."""

    timeout_s: float | None = Field(default=None, gt=0, le=600)

    def narrowed(self, other: "PlanLimits | None") -> "PlanLimits":
        """Return the lower of each limit."""
        if other is None:
            return self
        both = {name: [most for at in (self, other) if (most := getattr(at, name)) is not None] for name in LIMITS}
        return PlanLimits(**{name: min(most) for name, most in both.items() if most})

    def of_jail(self, usual: WorkspaceLimits, own: WorkspaceLimits | None) -> WorkspaceLimits | None:
        """Return the limits of a step's jail, with its `own`, as far as they are below the `usual` ones."""
        names = ("memory_mb", "cpu_s", "artifacts_mb")
        given = {name: [most for at in (self, own) if (most := getattr(at, name, None)) is not None] for name in names}
        less = {name: min(most) for name, most in given.items() if most}
        less = {name: most for name, most in less.items() if most < (getattr(usual, name) or most + 1)}
        return WorkspaceLimits(**less) if less else own


class PlanToggles(PublicInput):
    """Say what a plan may do; an approver can only narrow it, and only where it is not null."""

    external_processes: bool | None = None
    """Whether its steps may start processes; null where none would."""
    limits: PlanLimits | None = None

    def narrowed(self, other: "PlanToggles | None") -> "PlanToggles":
        """Return what holds when another person narrows it, too."""
        if other is None:
            return self
        off = False in (self.external_processes, other.external_processes)
        return PlanToggles(
            external_processes=False if off else self.external_processes,
            limits=other.limits if self.limits is None else self.limits.narrowed(other.limits),
        )

    @property
    def most_s(self) -> float | None:
        """Return how long a step may take at most, however long it was planned to take."""
        return None if self.limits is None else self.limits.timeout_s

    def refusal(self, given: "PlanToggles") -> str | None:
        """Return why a plan that shows these cannot be narrowed so, or None."""
        if given.external_processes is not None and self.external_processes is None:
            return "toggles.external_processes: no step of the plan starts a process; leave it out"
        if given.external_processes and not self.external_processes:
            return "toggles.external_processes: can only be narrowed; set it to false, or leave it out"
        for name in LIMITS if given.limits is not None else ():
            asked, most = getattr(given.limits, name), getattr(self.limits, name, None)
            if asked is not None and most is None:
                return (
                    f"toggles.limits.{name}: no step of the plan works in a jail that it would apply to; leave it out"
                )
            if asked is not None and asked > most:
                return f"toggles.limits.{name}: can only be narrowed; give at most {most:g}"
        return None


class ProposedStep(Frozen):
    """Show one step of a plan; engine facts, text escaped."""

    idx: int
    action: str
    """The tool, `provider.tool`."""
    arguments: dict[str, Any]
    safety: Safety
    summary: str = ""
    """What the author of the plan says of it."""
    diff_preview: str | None = None
    side_effects: tuple[str, ...] = ()
    """What the operator says that it changes."""
    undoable: bool = False
    undo_how: str | None = None
    depends_on: tuple[int, ...] = ()
    """The steps whose results it needs."""
    falls: tuple[int, ...] = ()
    """The steps that are not made either when this one is left out, at most 40."""
    more_fall: bool = Field(default=False, exclude_if=lambda more: not more)
    """Whether there are more of them."""
    limits: WorkspaceLimits | None = None
    """What it may use of its jail, when that is less than usual."""
    starts_process: bool = Field(default=False, exclude_if=lambda starts: not starts)
    """Whether its call starts a process: a command, or the program of a plugin."""
    needs_approval: bool = False
    part: int | None = None
    """The part that it is decided with; null when no rule asks about it."""


class ProposalPart(Frozen):
    """Name the steps that the same people decide."""

    part: int
    steps: tuple[int, ...]
    approvers: tuple[str, ...] = ()
    quorum: int = 1
    no_self_approval: bool = False
    verified: bool = Field(default=False, exclude_if=lambda verified: not verified)
    """Whether a verified person must decide even where none is named."""
    rule: str = ""
    escalate_to: tuple[str, ...] = ()
    """Who may decide, too, when nobody did in time."""
    decided: tuple[dict[str, Any], ...] = ()
    """Who has approved it; with `rejected`, the steps that this person left out."""

    @property
    def authority(self) -> Authority:
        """Return who may decide."""
        return Authority(
            approvers=self.approvers,
            quorum=self.quorum,
            no_self_approval=self.no_self_approval,
            verified=self.verified,
        )

    @property
    def complete(self) -> bool:
        """Return whether enough people have approved it."""
        return len(self.decided) >= self.quorum


class Proposal(Frozen):
    """Show a plan that waits for approval."""

    plan_id: str
    version: int
    hash: str
    """What approvals bind to."""
    title: str = ""
    summary: str = ""
    steps: tuple[ProposedStep, ...]
    more: int = Field(default=0, exclude_if=lambda more: not more)
    """How many further steps are not shown, because the plan is too long for one answer."""
    estimated_side_effects: tuple[str, ...] = ()
    estimated_cost_usd: float = 0
    """What carrying it out costs at models; the tools' own prices are not known."""
    approve_options: tuple[ApproveOption, ...] = ("approve_all", "approve_per_step", "dry_run_only")
    toggles: PlanToggles = PlanToggles()
    parts: tuple[ProposalPart, ...] = ()
    per_step: bool = False
    """Whether somebody approved it step by step, so that it goes on without the steps that were rejected."""
    dry_run: bool = False
    """Whether somebody approved nothing but a dry run."""
    alternatives: tuple[str, ...] = ()
    """The plans that are proposed beside this one, each in a request of its own; one of them is chosen."""

    @property
    def complete(self) -> bool:
        """Return whether every part is approved."""
        return all(part.complete for part in self.parts)

    @property
    def left_out(self) -> frozenset[int]:
        """Return the steps that people rejected while they approved the rest."""
        votes = (vote for part in self.parts for vote in part.decided)
        return frozenset(index for vote in votes for index in vote.get("rejected", ()))

    @property
    def left_out_by(self) -> dict[int, tuple[str, str]]:
        """Return who left out which step first, and the comment of that person."""
        votes = [vote for part in self.parts for vote in part.decided]
        votes.sort(key=lambda vote: str(vote.get("at", "")), reverse=True)
        return {
            index: (str(vote.get("by", ""))[:200], str(vote.get("comment", "")))
            for vote in votes
            for index in vote.get("rejected", ())
        }

    @property
    def no_processes_by(self) -> str:
        """Return who was first to let the plan start no processes; empty where nobody did."""
        votes = [vote for part in self.parts for vote in part.decided if vote.get("no_processes")]
        return str(min(votes, key=lambda vote: str(vote.get("at", "")))["by"])[:200] if votes else ""

    @property
    def escalated(self) -> "Proposal":
        """Return the proposal with those who may decide now that nobody did in time; parts that anybody may stay so."""

        def wider(part: ProposalPart) -> ProposalPart:
            people = {*part.approvers, *part.escalate_to} if part.approvers else ()
            return part.model_copy(update={"approvers": tuple(sorted(people))})

        return self.model_copy(update={"parts": tuple(map(wider, self.parts))})

    def with_vote(
        self, parts: Collection[int], vote: dict[str, Any], rejected: Collection[int], comment: str = ""
    ) -> "Proposal":
        """Return the proposal with a person's approval of some parts, of which some steps are left out."""

        def voted(part: ProposalPart) -> ProposalPart:
            if part.part not in parts:
                return part
            out = sorted(set(part.steps) & set(rejected))
            said = {"comment": comment} if comment else {}
            why = {"rejected": out} | said if out else {}
            return part.model_copy(update={"decided": (*part.decided, vote | why)})

        return self.model_copy(update={"parts": tuple(map(voted, self.parts))})
