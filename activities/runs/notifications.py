"""Write what people are to be told, and check who decided."""

from collections.abc import Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.resources import Activities
from activities.retrying import implements
from backstay import calls
from backstay.approvals import proof
from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.notice import NoticeDraft, Told
from backstay.requests import OfRun


class Notifications(Activities):
    """Implement `announce` and `check_proof`."""

    @implements(calls.announce)
    async def announce(self, ask: calls.Announce) -> int:
        """Write notices, from where whichever worker lives sends them; return how many are new."""
        await self.begin(ask)
        # A run of an older version does not say which execution was its first, but its request does.
        old = () if ask.request is None else (_asked(ask.request),)
        run = f"{ask.workflow_id}/{ask.run_id or (ask.request.run_id if ask.request else '')}"
        return await self.write(ask, run, (*old, *ask.notices))

    async def write(
        self, ask: OfRun, told_by: str, drafts: Sequence[NoticeDraft], result: Mapping[str, Any] | None = None
    ) -> int:
        """Write the notices of one workflow, `<workflow id>/<first execution run id>`; a repeat writes nothing."""
        workflow_id, _, run_id = told_by.rpartition("/")
        notices = await self.store.outbox.write(
            ask.run,
            workflow_id,
            run_id,
            drafts,
            namespace=activity.info().namespace,
            page=self.settings.url or "",
            result=result,
        )
        return len(notices)

    @implements(calls.check_proof)
    async def check_proof(self, ask: calls.CheckProof) -> calls.Proven:
        """Verify who decided, with the key that only workers and gateways hold, and use the proof up."""
        await self.begin(ask)
        binding = proof.Binding(
            namespace=activity.info().namespace,
            workflow_id=ask.workflow_id,
            run_id=ask.run_id,
            update=ask.update,
            request_id=ask.request_id,
            digest=ask.digest,
        )
        return await self.store.decisions.prove(
            self.settings.approver_key_bytes, binding, ask.payload, run=ask.run, used_by=ask.used_by
        )


def _asked(request: ApprovalRequest) -> NoticeDraft:
    number = request.id.removeprefix("r")
    sequence = int(number) if number.isdecimal() else 0
    return NoticeDraft(sequence=sequence, event=Told.ASKED, at=request.created_at, request=request)
