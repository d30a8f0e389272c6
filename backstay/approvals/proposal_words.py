"""Say in words what people must know of a plan that waits: who is asked about which step, and who is missing."""

from collections.abc import Iterator
from typing import NamedTuple

from backstay.approvals.proposal import Proposal, ProposalPart, ProposedStep
from backstay.shown import counted


def step_marks(step: ProposedStep, *, several: bool) -> Iterator[str]:
    """Yield what marks a step; with `several` parts, also which of them it is decided with."""
    if step.needs_approval:
        yield f"needs approval, part {step.part}" if several else "needs approval"
    else:
        yield "only reads" if step.safety.level == 0 else "allowed by the policy"
    if step.depends_on:
        yield f"uses what {_steps(step.depends_on)} returned"
    if step.falls and step.needs_approval:
        more = " and more" if step.more_fall else ""
        yield f"if it is left out, {_steps(step.falls)}{more} {_are(set(step.falls))} not made either"
    if step.limits is not None:
        yield f"gets at most {step.limits.words}"


def summary_words(summary: str) -> str:
    """Return what the author of a plan says of a step, marked as that: by itself it could pass for an argument."""
    return f"the plan says: {summary}" if summary else ""


def more_words(proposal: Proposal) -> str:
    """Return how many steps are not shown; empty when all are."""
    return f"{counted(proposal.more, 'more step')} not shown" if proposal.more else ""


def part_lines(proposal: Proposal, *, waits: bool = True) -> Iterator[str]:
    """Yield who decides each part, who has, and while it waits who is missing."""
    for part in proposal.parts:
        name = f"part {part.part}: " if len(proposal.parts) > 1 else ""
        yield f"{name}{_steps(part.steps)}: {'; '.join(_standing(part, waits=waits))}"


def process_words(proposal: Proposal) -> str:
    """Return which steps start processes, and what falls away without them; empty when none does or may."""
    if not proposal.toggles.external_processes:
        return ""
    starting = {step.idx for step in proposal.steps if step.starts_process}
    falling = {index for step in proposal.steps if step.idx in starting for index in step.falls} - starting
    more = proposal.more or any(step.more_fall for step in proposal.steps if step.idx in starting)
    without = f"; without them {_steps(tuple(sorted(falling)))} {_are(falling)} not made either" if falling else ""
    named = _steps(tuple(sorted(starting))) if starting else "a step that is not shown"
    return f"{named} {'start' if len(starting) > 1 else 'starts'} processes{without}{' and more' if more else ''}"


class NarrowedLimit(NamedTuple):
    """Say of a limit what it is now, and how less of it is given."""

    field: str
    """In `toggles.limits`."""
    name: str
    """Of the flag and the field of a form, with underscores."""
    unit: str
    now: str
    label: str
    most: float
    whole: bool


_LIMITS = (
    ("timeout_s", "step_timeout", "SECONDS", "a step may take {:g} s", "Seconds that a step may take"),
    ("memory_mb", "step_memory", "MB", "a step may use {:g} MB of memory", "Megabytes of memory for a step"),
    ("cpu_s", "step_cpu", "SECONDS", "a step may use {:g} s of processor time", "Seconds of processor time for a step"),
    ("artifacts_mb", "step_artifacts", "MB", "a step may write {:g} MB", "Megabytes that a step may write"),
)


def narrowed_limits(proposal: Proposal) -> Iterator[NarrowedLimit]:
    """Yield the limits of which an approver can give the steps less."""
    for field, name, unit, now, label in _LIMITS:
        most = getattr(proposal.toggles.limits, field, None)
        if most is not None:
            yield NarrowedLimit(field, name, unit, now.format(most), label, most, field != "timeout_s")


_WITHOUT, _LESS = "; to approve it without them: --no-processes", "; to give it less: --{} {}"


def toggle_lines(proposal: Proposal, without: str = _WITHOUT, less: str = _LESS) -> Iterator[str]:
    """Yield what an approver can narrow, and how: `without` processes, and with `less` of a limit."""
    if words := process_words(proposal):
        yield f"{words}{without}"
    elif proposal.toggles.external_processes is False:
        yield "it may start no processes"
    for limit in narrowed_limits(proposal):
        yield f"{limit.now}{less.format(limit.name.replace('_', '-'), limit.unit)}"


def _are(steps: set[int]) -> str:
    return "are" if len(steps) > 1 else "is"


def _steps(indexes: tuple[int, ...]) -> str:
    return f"step{'s' if len(indexes) > 1 else ''} {', '.join(map(str, indexes))}"


def _standing(part: ProposalPart, *, waits: bool) -> Iterator[str]:
    for vote in part.decided:
        left_out = f" without {_steps(tuple(vote['rejected']))}" if vote.get("rejected") else ""
        sure = "" if vote.get("verified") else " (unverified)"
        yield f"approved by {vote.get('by')}{sure}{left_out}"
    if not waits and not part.decided:
        yield f"asked {part.authority.words}"
    missing = part.quorum - len(part.decided)
    if missing <= 0 or not waits:
        return
    said = {vote.get("by") for vote in part.decided}
    left = [person for person in part.approvers if person not in said]
    who = ", ".join(left) if left else part.authority.model_copy(update={"approvers": ()}).words
    if missing < len(left) or (missing > 1 and not left):
        who = f"{missing} of {who}" if left else f"{missing} verified persons"
    yield f"waits for {who}{', but not for the person who started the run' if part.no_self_approval else ''}"
