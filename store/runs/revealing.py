"""Show a person with the authority the secret behind a handle, after it is recorded that they were shown it."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from backstay.approvals import proof
from backstay.approvals.approval import RecordedDecision
from backstay.approvals.approvers import WORDS_HOLD_S, authority_over_secret, refused_person
from backstay.authority import principal
from backstay.errors import ArgumentsInvalid, NotVerified, QuorumPending, RunNotFound
from backstay.frozen import Frozen
from backstay.redaction.handles import handle_named
from backstay.responses import OpenedRun
from store.runs.decisions import Decisions
from store.runs.runs import RunRow, Runs
from store.secrets.handles import SecretHandles


class Wish(Frozen):
    """Say who wants to be shown which secret."""

    workflow_id: str
    run_id: str | None = None
    """Of an execution of the run; without it the newest run of that name."""
    handle: str
    """As it is in an answer of the run, with or without its brackets."""
    by: str
    proof: str | None = None


class Revealing:
    """Reveal secrets of runs, open or ended; nothing but the answer to the caller holds the value in clear."""

    def __init__(self, runs: Runs, decisions: Decisions, secrets: SecretHandles, clock: Callable[[], float]) -> None:
        """Read and record in these parts of the store."""
        self._clock = clock
        self._runs = runs
        self._decisions = decisions
        self._secrets = secrets

    async def binding(self, workflow_id: str, namespace: str, run_id: str | None = None) -> proof.Binding:
        """Return what a proof for a run's secrets is bound to."""
        row = await self._run(workflow_id, run_id)
        first = row.run.rpartition("/")[2]
        return proof.Binding(namespace=namespace, workflow_id=workflow_id, run_id=first, update=proof.REVEAL)

    async def reveal(self, data: dict[str, Any], namespace: str, key: bytes | None) -> Any:
        """Return the secret that somebody wishes to be shown; `key` is the approver key that proofs are checked with.

        Raises NotVerified or DecisionRefused for a person who may not be shown it, QuorumPending while more people
        must ask for the same, ArgumentsInvalid for a handle that the run does not hold.
        """
        wish = Wish.model_validate(data)
        row = await self._run(wish.workflow_id, wish.run_id)
        handle = handle_named(wish.handle)
        held = (await self._secrets.reveal(row.run, [handle])).get(handle)
        opened = OpenedRun.model_validate(row.opened)
        authority = authority_over_secret(opened.policy, handle)
        starters = {opened.started_by, row.user_id} if opened.started_by else set[str]()
        if (refused := refused_person(authority, wish.by, wish.proof, starters)) is not None:
            raise refused
        if held is None:
            raise ArgumentsInvalid("handle: it is not a secret of this run; copy it from an answer of the run")
        if wish.proof is not None:
            await self._check(wish, row, namespace, key)
        await self._record(wish, row.run, handle, authority.quorum)
        return held.value

    async def _run(self, workflow_id: str, run_id: str | None) -> RunRow:
        row = await self._runs.get(workflow_id, run_id)
        if row is None:
            raise RunNotFound(f"workflow_id: this store knows no run of {workflow_id[:100]!r}")
        row.require_not_pruned()
        if not row.opened:
            raise RunNotFound(f"workflow_id: the store does not know how {workflow_id[:100]!r} began, nor its policy")
        return row

    async def _check(self, wish: Wish, row: RunRow, namespace: str, key: bytes | None) -> None:
        """Check a proof and use it up; raises NotVerified."""
        binding = await self.binding(wish.workflow_id, namespace, wish.run_id)
        payload = {"handle": wish.handle, "by": wish.by, "proof": wish.proof}
        used_by = f"{proof.REVEAL} {uuid.uuid4()}"
        proven = await self._decisions.prove(key, binding, payload, run=row.run, used_by=used_by)
        if not proven.verified or proven.used:
            raise NotVerified(f"proof: {proven.reason or 'used already; sign it again'}")

    async def _record(self, wish: Wish, run: str, handle: str, quorum: int) -> None:
        """Record who is shown the secret; raises QuorumPending while that is nobody yet."""
        # The proof is for the name as it was sent.
        by, at = principal(wish.by), datetime.fromtimestamp(self._clock(), UTC)

        def decision(earlier: list[RecordedDecision]) -> dict[str, Any]:
            asked = _waiting(earlier, handle, at) | {by}
            return {"state": "decided" if len(asked) >= quorum else "recorded"}

        made = RecordedDecision(
            n=0,
            at=at.isoformat(timespec="microseconds"),
            update=proof.REVEAL,
            by=by,
            verified=wish.proof is not None,
            handle=handle,
        )
        recorded, earlier = await self._decisions.add(run, made, decision)
        if recorded.state != "decided":
            asked = sorted(_waiting(earlier, handle, at) | {by})
            missing = quorum - len(asked)
            raise QuorumPending(f"{', '.join(asked)} asked for this secret; {missing} more must ask for the same")


def _waiting(earlier: list[RecordedDecision], handle: str, now: datetime) -> set[str]:
    """Return who asked for a secret since it was shown last; nobody's old word makes up a number with a new one."""
    asked: set[str] = set()
    for decision in earlier:
        if decision.update != proof.REVEAL or decision.handle != handle:
            continue
        if decision.state != "recorded" or not decision.verified:
            asked = set()
        elif (now - datetime.fromisoformat(decision.at)).total_seconds() <= WORDS_HOLD_S:
            asked |= {decision.by}
    return asked
