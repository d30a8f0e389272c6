"""Say in words what people must know of a plan that waits: who is asked about which step, and who is missing."""

from collections.abc import Iterator

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
        yield f"if it is left out, {_steps(step.falls)}{more} {'are' if len(step.falls) > 1 else 'is'} not made either"
    if step.limits is not None:
        yield f"gets at most {step.limits.words}"


def more_words(proposal: Proposal) -> str:
    """Return how many steps are not shown; empty when all are."""
    return f"{counted(proposal.more, 'more step')} not shown" if proposal.more else ""


def part_lines(proposal: Proposal) -> Iterator[str]:
    """Yield who decides each part, who has, and who is missing."""
    for part in proposal.parts:
        name = f"part {part.part}: " if len(proposal.parts) > 1 else ""
        yield f"{name}{_steps(part.steps)}: {'; '.join(_standing(part))}"


def toggle_lines(proposal: Proposal) -> Iterator[str]:
    """Yield what an approver can narrow, with the flag for each."""
    toggles, limits = proposal.toggles, proposal.toggles.limits
    if toggles.external_processes:
        yield "it starts processes; to approve it without them: --no-processes"
    elif toggles.external_processes is False:
        yield "it may start no processes"
    if limits is not None and limits.timeout_s is not None:
        yield f"a step may take {limits.timeout_s:g} s; to give it less: --step-timeout SECONDS"


def _steps(indexes: tuple[int, ...]) -> str:
    return f"step{'s' if len(indexes) > 1 else ''} {', '.join(map(str, indexes))}"


def _standing(part: ProposalPart) -> Iterator[str]:
    for vote in part.decided:
        left_out = f" without {_steps(tuple(vote['rejected']))}" if vote.get("rejected") else ""
        sure = "" if vote.get("verified") else " (unverified)"
        yield f"approved by {vote.get('by')}{sure}{left_out}"
    missing = part.quorum - len(part.decided)
    if missing <= 0:
        return
    said = {vote.get("by") for vote in part.decided}
    left = [person for person in part.approvers if person not in said]
    who = ", ".join(left) if left else "a verified person" if part.quorum > 1 or part.no_self_approval else "anyone"
    if missing < len(left) or (missing > 1 and not left):
        who = f"{missing} of {who}" if left else f"{missing} verified persons"
    yield f"waits for {who}{', but not for the person who started the run' if part.no_self_approval else ''}"
