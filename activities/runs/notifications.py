"""Notify receivers that a request waits for a person, and check who decided."""

import asyncio
import hashlib
import hmac
import time

import httpx2
import structlog
from temporalio import activity

from activities.resources import Activities
from activities.retrying import implements
from backstay import calls
from backstay.approvals import proof
from backstay.canonical import canonical

TIMEOUT_S = 10

log = structlog.get_logger("backstay.notifications")


class Notifications(Activities):
    """Implement `announce` and `check_proof`."""

    @implements(calls.announce)
    async def announce(self, ask: calls.Announce) -> int:
        """POST a request, signed, to every receiver; a receiver that fails is logged and never blocks the run."""
        await self.begin(ask)
        content = canonical({"workflow_id": ask.workflow_id, "request": ask.request.plain()}).encode("utf-8", "replace")
        headers = {"content-type": "application/json", **self._signature(content)}
        async with httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client:

            async def taken(url: str) -> bool:
                try:
                    response = await client.post(url, content=content, headers=headers)
                    response.raise_for_status()
                except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                    log.warning("announce.failed", request=ask.request.id, error=type(error).__name__)
                    return False
                return True

            # At the same time, so that a receiver that hangs does not delay the others.
            return sum(await asyncio.gather(*(taken(url.get_secret_value()) for url in self.settings.notify_urls)))

    def _signature(self, content: bytes) -> dict[str, str]:
        key = self.settings.approver_key_bytes
        if key is None:
            return {}
        now = str(int(time.time()))
        mac = hmac.new(key, f"{now}.".encode() + content, hashlib.sha256).hexdigest()
        return {"backstay-timestamp": now, "backstay-signature": mac}

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
