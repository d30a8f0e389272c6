"""Remember decisions: obey lines in the run that they were made in, and keep them for later ones."""

from collections.abc import Callable
from typing import Any

from temporalio import workflow

from backstay import calls, errors
from backstay.approvals import approvers
from backstay.approvals.approval import Approval
from backstay.authority import Authority
from backstay.policies.accepted import HOLDS, AcceptedLine
from backstay.shown import one_line
from workflows.dispatch.activity_calls import ActivityCalls, Stopped
from workflows.state.state import RunState

NOBODY_ACCEPTS = (
    "for later runs it waits until somebody who can write policy.yaml accepts it (`backstay policy accept`)"
)


class DecisionMemory:
    """Keep the lines that decisions are remembered by, as far as whoever decided may say so."""

    def __init__(self, state: RunState, activities: ActivityCalls, changed: Callable[[], None]) -> None:
        """Use the run's state; `changed` is called whenever something that people see has changed."""
        self.state = state
        self.activities = activities
        self.changed = changed

    async def remember(
        self, approval: Approval, lines: tuple[AcceptedLine, ...], starters: frozenset[str]
    ) -> list[dict[str, Any]]:
        """Obey what a decision is remembered by, as far as this person may say so, and keep it for later runs."""
        policy = self.state.opened.policy
        authority, run = approvers.accepting_of(policy), approvers.authority_in_run(policy)

        def refusal(needed: Authority) -> str:
            return str(approvers.refused_person(needed, approval.by, approval.proof, starters) or "")

        why = refusal(run)
        here = run.quorum == 1 and not why
        if here:
            self.state.obey(lines)
        held = frozenset[str]()
        if approval.remember != "run":
            ask = calls.RememberLines(lines=lines)
            why = NOBODY_ACCEPTS if authority is None else refusal(authority)
            if authority is not None and not why:
                ask = ask.model_copy(update={"accepting": True, "quorum": authority.quorum})
            held, fault = await self._kept(ask)
            why = fault or why
        return [self._told(line, approval, here=here, held=line.id in held, why=why) for line in lines]

    async def _kept(self, ask: calls.RememberLines) -> tuple[frozenset[str], str]:
        """Keep lines for later runs; return which hold, and why others do not, where that is known only now."""
        try:
            kept = await self.activities.execute_in_handler(calls.remember_lines, ask, summary="remember a decision")
        except (errors.BackstayError, Stopped) as error:
            return frozenset(), f"not kept: {error}"
        self.state.obey(kept.held)
        return frozenset(line.id for line in kept.held), f"{kept.missing} more must say so" if kept.missing else ""

    def _told(self, line: AcceptedLine, approval: Approval, *, here: bool, held: bool, why: str) -> dict[str, Any]:
        """Record and return how far a line holds."""
        whole = held or (here and approval.remember == "run")
        within = "run" if here else ""
        holds = str(approval.remember) if whole else within
        waits = "" if whole else one_line(why, 300) or NOBODY_ACCEPTS
        text = f"{line.words} holds for {HOLDS[holds]}{f'; {waits}' if waits else ''}"
        self.state.record("policy.remembered", one_line(text, 500), workflow.now(), line=line.id, holds=holds)
        self.changed()
        return {"line": line.id, "tool": line.tool, "holds": holds, "waits": waits}
