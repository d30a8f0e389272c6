"""POST notices to the addresses of BACKSTAY_NOTIFY_URLS, signed with a key that only these receivers hold."""

import hashlib
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import httpx2

from backstay.approvals.notice import Notice
from backstay.canonical import canonical
from backstay.settings import Settings
from gateways.signatures import ID, SIGNATURE, STAMP, signature
from people.notices.delivering import NotTaken

TIMEOUT_S = 10


class Webhook:
    """POST notices to one address."""

    def __init__(self, client: httpx2.AsyncClient, url: str, key: bytes | None) -> None:
        """Without a key, nothing is signed."""
        self._client = client
        self._url = url
        self._key = key
        # Addresses of this kind often hold a token, and the name of a receiver is stored and logged.
        self.name = f"webhook-{hashlib.sha256(url.encode()).hexdigest()[:16]}"

    async def send(self, notice: Notice) -> None:
        """POST a notice; raises NotTaken unless the receiver answers with a status of success."""
        content = canonical(notice.plain()).encode("utf-8", "replace")
        headers = {"content-type": "application/json", ID: _header(notice.id), **self._signature(content)}
        try:
            async with self._client.stream("POST", self._url, content=content, headers=headers) as response:
                # The status says it all, and a body may never end.
                taken, status = response.is_success, response.status_code
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise NotTaken(type(error).__name__) from None
        if not taken:
            raise NotTaken(f"HTTP {status}")

    def _signature(self, content: bytes) -> dict[str, str]:
        now = str(int(time.time()))
        return {STAMP: now} if self._key is None else {STAMP: now, SIGNATURE: signature(self._key, now, content)}


def _header(text: str) -> str:
    """Return a string as a header may hold it; a workflow id may be anything."""
    return "".join(sign if " " < sign <= "~" else f"%{ord(sign):X}" for sign in text)


@asynccontextmanager
async def open_webhooks(settings: Settings) -> AsyncGenerator[Sequence[Webhook]]:
    """Open one receiver for each address of the settings."""
    key = None if settings.webhook_key is None else settings.webhook_key.get_secret_value().encode()
    async with httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client:
        yield [Webhook(client, url.get_secret_value(), key) for url in settings.notify_urls]
