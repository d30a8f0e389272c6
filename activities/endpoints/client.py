"""The client of one model endpoint: bounded answers, no retries, and opened when it is first asked."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx2

from activities.endpoints.apis import Api, Credentials
from system.encodings import compressions_of

if TYPE_CHECKING:
    import openai

ANSWER_S = 240.0
"""How long an answer may take in all, however it drips."""
ANSWER_BYTES = 8 << 20
"""How long an answer may be, whatever its status; a longer one is not read to its end."""
STREAM_BYTES = 8 * ANSWER_BYTES
"""How long the body of a streamed answer may be, in which each word has an envelope of its own."""
EVENTS = "text/event-stream"
"""What a request accepts whose answer is streamed."""
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class BodyRefused(httpx2.ReadError):
    """The body of an answer is not read; the text says why."""


class _BoundedBody(httpx2.AsyncByteStream):
    """Read at most the given number of bytes of a body, also of one that is compressed."""

    def __init__(self, body: Any, most: int, *, packed: bool = False) -> None:
        self._body = body
        self._most = most
        self._unpacking = zlib.decompressobj(_GZIP_OR_ZLIB) if packed else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for part in self._body:
            read = self._unpacked(part, left + 1)
            left -= len(read)
            if left < 0:
                raise BodyRefused(f"it answers with more than {self._most} bytes")
            yield read
        if self._unpacking is not None and not self._unpacking.eof:
            raise BodyRefused("its compressed answer is not whole")

    def _unpacked(self, part: bytes, most: int) -> bytes:
        if self._unpacking is None:
            return part
        try:
            return self._unpacking.decompress(part, most)
        except zlib.error:
            raise BodyRefused("its compressed answer cannot be read") from None

    async def aclose(self) -> None:
        await self._body.aclose()


async def _bound(response: httpx2.Response) -> None:
    """Bound the body of a response before it is read, that of an error too."""
    # It is unpacked here, within bounds, and not by the HTTP client.
    codings = compressions_of(response.headers.pop("content-encoding", ""))
    packed = len(codings) == 1 and codings[0] in {"gzip", "x-gzip", "deflate"}
    if codings and not packed:
        raise BodyRefused("it compresses its answers, though it was asked not to")
    is_streamed = response.status_code < 400 and response.request.headers.get("accept") == EVENTS
    response.stream = _BoundedBody(response.stream, STREAM_BYTES if is_streamed else ANSWER_BYTES, packed=packed)


def open_http(key: str | None = None, api: Api = "chat") -> httpx2.AsyncClient:
    """Return the HTTP client for a model endpoint: the SDK's own, with bounded answers and this key or none."""
    import openai  # noqa: PLC0415 - see ModelClient

    timeout = httpx2.Timeout(ANSWER_S, connect=5)
    hooks: dict[str, list[Any]] = {"request": [Credentials(api, key)], "response": [_bound]}
    # A redirect may lead to another host, which would get a key that is not an authorization.
    return openai.DefaultAsyncHttpxClient(timeout=timeout, event_hooks=hooks, follow_redirects=api == "chat")


class ModelClient:
    """Open the SDK's client of an endpoint when it is first asked.

    The SDK makes up a quarter of all that a worker loads, and a worker or a command may well ask no model.
    """

    def __init__(self, base_url: str | None = None, key: str | None = None, api: Api = "chat") -> None:
        """Ask at this address, or where the SDK asks by itself, with this key or none."""
        self.api_key = key or "none"
        self._base_url = base_url
        self._key = key
        self._api: Api = api
        self._opening = asyncio.Lock()
        self._client: openai.AsyncOpenAI | None = None

    async def opened(self) -> "openai.AsyncOpenAI":
        """Return the client."""
        async with self._opening:
            if self._client is None:
                # Loading must not hold up the calls and heartbeats of other runs.
                self._client = await asyncio.to_thread(self._open)
            return self._client

    def _open(self) -> "openai.AsyncOpenAI":
        import openai  # noqa: PLC0415 - see the docstring of the class

        http = open_http(self._key, self._api)
        # Retries are the workflow's, so that they are visible and charged.
        return openai.AsyncOpenAI(api_key=self.api_key, base_url=self._base_url, max_retries=0, http_client=http)

    async def close(self) -> None:
        """Close the client, if it was opened."""
        if self._client is not None:
            await self._client.close()
