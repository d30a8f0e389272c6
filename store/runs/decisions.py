"""Decisions that runs accepted, and the proofs that they used up."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from backstay.approvals.approval import RecordedDecision
from backstay.approvals.proof import Binding, nonce_of, verify
from backstay.responses import ProofCheck
from store.database.database import Database
from store.database.schema import decisions, used_proofs
from store.database.transactions import only_with, reading, writing
from store.ledger.noting import note

_KNOWN = select(decisions.c.n, decisions.c.at).where(decisions.c.run == bindparam("run_"))
_OF_RUN = select(decisions.c.body).where(decisions.c.run == bindparam("run_")).order_by(decisions.c.n, decisions.c.at)
_USED = select(used_proofs.c.run, used_proofs.c.used_by).where(used_proofs.c.nonce == bindparam("nonce_"))
FIRST_APART = 1_000_000_000
"""The run numbers its own decisions from 1; those made beside it are numbered far beyond."""
_KEPT_S = 3600
"""How long after its expiry a used proof is remembered: the clocks of workers differ."""


class Decisions:
    """Keep every accepted decision, and let every proof be used once."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Read time from `clock`, in unix seconds."""
        self.database = database
        self._clock = clock

    # Most activities bring none, and a transaction costs more than the question.
    @only_with("new")
    @writing
    def append(self, connection: Connection, run: str, new: Sequence[RecordedDecision]) -> None:
        """Add decisions; a repeat changes nothing."""
        add_decisions(connection, run, new)

    @writing
    def add(
        self,
        connection: Connection,
        run: str,
        new: RecordedDecision,
        rest: Callable[[list[RecordedDecision]], dict[str, Any]],
    ) -> tuple[RecordedDecision, list[RecordedDecision]]:
        """Add a decision that the run itself does not number, and return it with all earlier ones.

        `rest`: the fields that depend on the earlier ones, which nobody adds to meanwhile.
        """
        earlier = self.of_run.within(connection, run)
        n = max((decision.n + 1 for decision in earlier), default=0)
        made = new.model_copy(update={"n": max(n, FIRST_APART), **rest(earlier)})
        add_decisions(connection, run, [made])
        return made, earlier

    @reading
    def of_run(self, connection: Connection, run: str) -> list[RecordedDecision]:
        """Return all decisions of a run, in order."""
        return [RecordedDecision.model_validate(body) for body in connection.execute(_OF_RUN, {"run_": run}).scalars()]

    async def prove(
        self, key: bytes | None, binding: Binding, payload: dict[str, Any], *, run: str, used_by: str
    ) -> ProofCheck:
        """Return whether the proof of a payload holds, checked with the approver key, and use it up."""
        if key is None:
            return ProofCheck(
                verified=False, reason="there is no BACKSTAY_APPROVER_KEY here, so no proof can be checked"
            )
        given = str(payload.get("proof"))
        fault = verify(key, given, binding, payload, self._clock())
        if fault is not None:
            return ProofCheck(verified=False, reason=fault)
        nonce, expires = nonce_of(given)
        said = {"by": payload.get("by"), "update": binding.update, "request_id": binding.request_id}
        said |= {"digest": binding.digest, "proof": given}
        unused = await self._use_proof(nonce, said, run=run, used_by=used_by, expires=expires)
        return ProofCheck(verified=True, used=not unused)

    @writing
    def _use_proof(
        self, connection: Connection, nonce: str, said: dict[str, Any], *, run: str, used_by: str, expires: float
    ) -> bool:
        """Use a proof up; False when something else has used it. A retry of the same use is the same use."""
        connection.execute(delete(used_proofs).where(used_proofs.c.expires < self._clock() - _KEPT_S))
        found = connection.execute(_USED, {"nonce_": nonce}).first()
        if found is not None:
            return tuple(found) == (run, used_by)
        row = {"nonce": nonce, "run": run, "used_by": used_by, "expires": expires}
        connection.execute(insert(used_proofs), row)
        note(connection, run, "proof", "proof.used", {**said, "used_by": used_by})
        return True


def add_decisions(connection: Connection, run: str, new: Sequence[RecordedDecision]) -> None:
    """Add decisions in a transaction that is under way.

    After a reset of the workflow a number can come again with another decision; both are kept.
    """
    if not new:
        return
    known = {tuple(row) for row in connection.execute(_KNOWN, {"run_": run})}
    unknown = [decision for decision in new if (decision.n, decision.at) not in known]
    rows = [{"run": run, "n": decision.n, "at": decision.at, "body": decision.plain()} for decision in unknown]
    if rows:
        connection.execute(insert(decisions), rows)
    for decision in unknown:
        note(connection, run, "decision", decision.update, decision.plain())
