"""Write what people are to be told, and check who decided."""

from collections.abc import Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.resources import Activities
from activities.retrying import implements
from backstay import calls
from backstay.approvals import proof
from backstay.approvals.notice import NoticeDraft
from backstay.requests import OfRun


class Notifications(Activities):
    """Implement `announce` and `check_proof`."""

    @implements(calls.announce)
    async def announce(self, ask: calls.Announce) -> int:
        """Write notices, from where whichever worker lives sends them; return how many are new."""
        await self.begin(ask)
        return await self.write(ask, f"{ask.workflow_id}/{ask.run_id}", ask.notices)

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
