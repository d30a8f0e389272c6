"""The model endpoints of a worker: one client each, and what is known of the models there."""

import asyncio
import contextlib
import difflib
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2
import openai

from activities.endpoints.apis import Api, Credentials, base_of, models_at
from activities.endpoints.models_file import Effort, Models, read_models
from activities.endpoints.pricing import Price, price_of
from backstay.errors import SettingsInvalid, TaskInvalid, WorkerMisfit
from backstay.settings import Settings
from backstay.shown import one_line

ANSWER_S = 240.0
"""How long an answer may take in all, however it drips."""
ANSWER_BYTES = 8 << 20
"""How long an answer may be, whatever its status; a longer one is not read to its end."""
STREAM_BYTES = 8 * ANSWER_BYTES
"""How long the body of a streamed answer may be, in which each word has an envelope of its own."""
NAMES_S = 5.0
"""How long an endpoint may take to name its models."""
MOST_NAMES = 12
EVENTS = "text/event-stream"
"""What a request accepts whose answer is streamed."""


_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class BodyRefused(httpx2.ReadError):
    """The body of an answer is not read; the text says why."""


class _Bounded(httpx2.AsyncByteStream):
    """Read at most so many bytes of a body, also of one that is compressed."""

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
    encoding = response.headers.get("content-encoding", "").strip().lower()
    packed = encoding in {"gzip", "x-gzip", "deflate"}
    if encoding not in {"", "identity"} and not packed:
        raise BodyRefused("it compresses its answers, though it was asked not to")
    if packed:
        # It is read here, within bounds, and not by the HTTP client.
        del response.headers["content-encoding"]
    is_streamed = response.status_code < 400 and response.request.headers.get("accept") == EVENTS
    response.stream = _Bounded(response.stream, STREAM_BYTES if is_streamed else ANSWER_BYTES, packed=packed)


def open_http(key: str | None = None, api: Api = "chat") -> httpx2.AsyncClient:
    """Return the HTTP client for a model endpoint: the SDK's own, with bounded answers and this key or none."""
    timeout = httpx2.Timeout(ANSWER_S, connect=5)
    hooks: dict[str, list[Any]] = {"request": [Credentials(api, key)], "response": [_bound]}
    # A redirect may lead to another host, which would get a key that is no authorization.
    return openai.DefaultAsyncHttpxClient(timeout=timeout, event_hooks=hooks, follow_redirects=api == "chat")


@dataclass(frozen=True)
class Target:
    """Hold a model, where it is asked, and how."""

    name: str
    """What tasks, events and bills call it."""
    listed: bool
    """Whether it is an entry of models.yaml."""
    model: str
    """What its endpoint calls it."""
    where: str
    """The address of the endpoint, for people."""
    client: openai.AsyncOpenAI
    price: Price | None
    api: Api = "chat"
    context_tokens: int | None = None
    tools: bool | Literal["auto"] = "auto"
    strict: bool | Literal["auto"] = "auto"
    effort: Effort | None = None
    fallback: tuple[str, ...] = ()
    dialect: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What models.yaml says of how its endpoint is spoken to."""

    @property
    def by(self) -> str | None:
        """Return what the transcript says of answers of this model; nothing of one that is no entry."""
        return self.name if self.listed else None


@dataclass(frozen=True)
class Endpoints:
    """Find models by name: entries of models.yaml, and any other name at the default endpoint."""

    settings: Settings
    models: Models
    default: openai.AsyncOpenAI
    clients: Mapping[str, openai.AsyncOpenAI]
    """By endpoint."""

    @property
    def names(self) -> list[str]:
        """Return the names of the models that runs use unless they name another one at the default endpoint."""
        return list(dict.fromkeys([self.main().name, *self.models.file.models]))

    def is_listed(self, name: str) -> bool:
        """Return whether a name is an entry of models.yaml."""
        return name in self.models.file.models

    def main(self, *wanted: str | None) -> Target:
        """Return the model that drives runs: the first that is wanted, else the one that the operator has named."""
        settings = self.settings
        own = settings.model if "model" in settings.model_fields_set else None
        named = (*wanted, own, self.models.file.use.act, settings.model)
        name = next(name for name in named if name is not None)
        return self.target(name, listed=self.is_listed(name))

    def target(self, name: str, *, listed: bool) -> Target:
        """Return a model; raises WorkerMisfit when it was an entry of models.yaml and is none here."""
        if not listed:
            where = self.settings.openai_base_url or "the default endpoint of OpenAI"
            return Target(name, False, name, where, self.default, price_of(self.settings, name))  # a field
        entry = self.models.file.models.get(name)
        if entry is None:
            raise WorkerMisfit(f"models.yaml: this worker knows no model {one_line(name, 80)!r}; list it again")
        return Target(
            name=name,
            listed=True,
            model=entry.model,
            where=self.models.file.endpoints[entry.endpoint].base_url,
            client=self.clients[entry.endpoint],
            price=price_of(self.settings, entry.model, entry.price),
            api=self.models.file.endpoints[entry.endpoint].api,
            context_tokens=entry.context_tokens,
            tools=entry.tools,
            strict=entry.strict,
            effort=entry.effort,
            fallback=entry.fallback,
            dialect=self.models.file.endpoints[entry.endpoint].dialect.model_dump(exclude_unset=True),
        )

    def natives(self) -> list[Target]:
        """Return the models whose endpoints speak an API of their vendor."""
        listed = [self.target(name, listed=True) for name in self.models.file.models]
        return [target for target in listed if target.api != "chat"]

    def chain(self, target: Target) -> tuple[Target, ...]:
        """Return a model and those that are asked in turn when it fails."""
        return (target, *(self.target(name, listed=True) for name in target.fallback))

    def chain_for(self, purpose: Literal["perception", "closing"]) -> tuple[Target, ...]:
        """Return the models that are asked for this; none where the operator names none."""
        name: str | None = getattr(self.models.file.use, purpose)
        return () if name is None else self.chain(self.target(name, listed=True))

    def _unusable(self, name: str) -> SettingsInvalid | TaskInvalid:
        """Return why a model that is no entry of models.yaml cannot be asked where there is no default endpoint."""
        if not self.models.file.models:
            return SettingsInvalid(
                "OPENAI_API_KEY: the worker has no key and no OPENAI_BASE_URL; set one and start it anew"
            )
        known = one_line(", ".join(self.models.file.models), 500)
        fault = (
            f"models.yaml has no model {one_line(name, 80)!r}; {self._nearest(name)}name one that it has ({known}), "
            "or set OPENAI_API_KEY or OPENAI_BASE_URL where the worker starts"
        )
        # Nobody but the operator has named this one.
        if name == self.main().name:
            return SettingsInvalid(f"BACKSTAY_MODEL: {fault}")
        return TaskInvalid(f"model: {fault}")

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, [*self.models.file.models], 1)
        return f"did you mean {near[0]!r}? Otherwise " if near and near[0] != name else ""

    def require_usable(self, chain: Iterable[Target], *, usd: bool) -> None:
        """Raise SettingsInvalid when a model cannot be asked, TaskInvalid when a limit in USD lacks a price."""
        for target in chain:
            if not target.listed and not self.settings.has_endpoint:
                raise self._unusable(target.name)
            if usd and target.price is None:
                fix = "give it a price in models.yaml" if target.listed else "set BACKSTAY_PRICES for it"
                fix = f"{self._nearest(target.name)}{fix}"
                raise TaskInvalid(
                    f"model: no price is known for {one_line(target.name, 80)!r}, so max_llm_cost_usd cannot be kept; "
                    f"{fix}, or budget.max_llm_cost_usd to null"
                )


async def models_of(target: Target) -> list[str]:
    """Return what models an endpoint lists; raises whatever is wrong there."""
    answer = await target.client.get(models_at(target.api), cast_to=httpx2.Response)
    data = answer.json()
    listed = data.get("data") or data.get("models") or []
    return [str(model.get("id") or model["name"]).removeprefix("models/") for model in listed]


async def names_at(target: Target) -> list[str]:
    """Return what models an endpoint has, those of a like name first; none where it does not say."""
    try:
        async with asyncio.timeout(NAMES_S):
            found = await models_of(target)
    except Exception:  # whatever is wrong there, the refusal of the model is told
        return []
    near = difflib.get_close_matches(target.model, found, MOST_NAMES, 0.4)
    return [*dict.fromkeys([*near, *found])][:MOST_NAMES]


@contextlib.asynccontextmanager
async def open_endpoints(settings: Settings) -> AsyncGenerator[Endpoints]:
    """Open one client per endpoint; retries are the workflow's, so that they are visible and charged.

    Raises SettingsInvalid for a models.yaml that cannot be obeyed.
    """
    models = read_models(settings)
    own = settings.openai_api_key
    async with contextlib.AsyncExitStack() as stack:

        async def opened(base_url: str | None, key: str | None, api: Api = "chat") -> openai.AsyncOpenAI:
            http = open_http(key, api)
            client = openai.AsyncOpenAI(api_key=key or "none", base_url=base_url, max_retries=0, http_client=http)
            return await stack.enter_async_context(client)

        default = await opened(settings.openai_base_url, None if own is None else own.get_secret_value())
        entries = models.file.endpoints.items()
        clients = {
            name: await opened(base_of(entry.base_url, entry.api), models.keys.get(name), entry.api)
            for name, entry in entries
        }
        yield Endpoints(settings, models, default, clients)
