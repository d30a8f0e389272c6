"""Write what people are to be told, check who decided, and hide the secrets in what people typed."""

from collections.abc import Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.records import PERSON
from activities.resources import Activities
from activities.retrying import implements
from backstay import calls
from backstay.approvals import proof
from backstay.approvals.notice import NoticeDraft
from backstay.requests import OfRun


class Notifications(Activities):
    """Implement `announce`, `check_proof` and `hide_secrets`."""

    @implements(calls.announce)
    async def announce(self, ask: calls.Announce) -> int:
        """Write notices, from where whichever worker lives sends them; return how many are new."""
        await self.begin(ask)
        drafts = await self.records.cleaned(ask.run, ask.notices)
        notices = await self.store.outbox.write(ask.run, ask.workflow_id, ask.run_id, drafts, **self._common())
        return len(notices)

    async def write_later(
        self, ask: OfRun, told_by: str, drafts: Sequence[NoticeDraft], result: Mapping[str, Any]
    ) -> None:
        """Write the notices of the end of a workflow, `<workflow id>/<first execution run id>`, with what comes next.

        A repeat writes nothing.
        """
        if not drafts:
            return
        outbox, more = self.store.outbox, self._common()
        workflow_id, _, run_id = told_by.rpartition("/")
        drafts = await self.records.cleaned(ask.run, drafts)

        async def then(written: object) -> None:
            outbox.tell_here(written)

        await self.store.write_later(
            lambda transaction: outbox.write.within(
                transaction, ask.run, workflow_id, run_id, drafts, result=result, **more
            ),
            then,
        )

    def _common(self) -> dict[str, Any]:
        return {"namespace": activity.info().namespace, "page": self.settings.url or ""}

    @implements(calls.check_proof)
    async def check_proof(self, ask: calls.CheckProof) -> calls.ProofCheck:
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

    @implements(calls.hide_secrets)
    async def hide_secrets(self, ask: calls.HideSecrets) -> calls.RedactedInput:
        """Return what a person typed with a handle for each secret, and remember what the handles stand for."""
        await self.begin(ask)
        redactor = await self.resources.redactor_of(ask.run)
        for field, names in ask.names.items():
            if any(redactor.secret_in(name) is not None for name in names):
                return calls.RedactedInput(typed={}, refused=field)
        return calls.RedactedInput(typed=(await self.records.show(ask.run, ask.typed, PERSON)).payload)
