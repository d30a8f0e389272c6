"""Send what a person decided in Slack to the run, proven, and for exactly the request that they were shown."""

import json
from typing import Any

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.deciding import admit
from backstay.approvals.proof import Binding
from backstay.client import Backstay
from backstay.client.run import signed
from backstay.errors import DecisionRefused
from gateways.slack.aim import Aim
from store.store import Store

_CLOSED = {"expired": "nobody decided in time", "withdrawn": "it was no longer needed", "ended": "the run has ended"}


class Desk:
    """Ask runs what they wait for, and decide it."""

    def __init__(self, backstay: Backstay, unsigned: Backstay, store: Store, key: bytes) -> None:
        """`backstay` signs what it sends; `unsigned` is the same connection for what is signed here already."""
        self.backstay = backstay
        self._unsigned = unsigned
        self._store = store
        self._key = key

    async def look(self, aim: Aim) -> ApprovalRequest:
        """Return a request as the run shows it now; raises DecisionRefused when it is not the one that was shown."""
        status = await self.backstay.run(aim.w).status()
        if status.run_id != aim.f:
            raise DecisionRefused("this message is of an earlier run of the same name, so it decides nothing any more")
        found = next((request for request in status.pending if request.id == aim.r), None)
        if found is None:
            raise DecisionRefused(await self._gone(aim))
        if found.digest != aim.d:
            raise DecisionRefused("this message shows another request than the one that waits now; look at the new one")
        return found

    async def _gone(self, aim: Aim) -> str:
        row = await self._store.requests.get(aim.w, aim.r, aim.f)
        if row is None or row.state == "open":
            return "this request no longer waits"
        if row.decision is not None:
            return f"this request is decided already: {row.decision.verdict.value} by {row.decision.by}"
        return f"this request is closed: {_CLOSED.get(row.state, row.state)}"

    async def decide(
        self, aim: Aim, request: ApprovalRequest, *, by: str, event_id: str, **said: Any
    ) -> dict[str, Any]:
        """Decide a request in the name of a person; the same event again gets the same answer.

        `said` are fields of an Approval. Raises DecisionRefused, NotVerified or Expired.
        """
        fields = {"request_id": aim.r, "by": by, "event_id": event_id, **said}
        if request.args_digest:
            fields["args_digest"] = request.args_digest
        # What is signed must be what is sent, to the letter.
        payload = json.loads(admit(fields).model_dump_json(exclude_defaults=True))
        binding = Binding(
            namespace=self.backstay.client.namespace,
            workflow_id=aim.w,
            run_id=aim.f,
            update="decide",
            request_id=aim.r,
            digest=aim.d,
        )
        return await self._unsigned.run(aim.w).decide(signed(self._key, binding, payload))
