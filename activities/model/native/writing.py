"""Write requests in the native APIs of vendors and read their answers, by the classes of a library.

The library sees no network: its requests are taken from it and sent as every other request is, within the same bounds,
and the answers are put before it as if it had asked for them. So nothing is sent before it is reserved for, and what
went wrong is recognised by what the vendor says.
"""

import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import httpx2
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from activities.endpoints.apis import Api
from activities.endpoints.client import BodyRefused
from activities.endpoints.usage import counts_words
from activities.model.completion import Completion, HttpPost, most_in, written
from activities.model.learning import EFFORT
from activities.model.native.conversation import conversation, message_of
from activities.model.native.events import AnswerEvents
from activities.model.native.prefix import mark_for_cache, within_limit
from activities.model.schemas import simple
from activities.model.streaming import Say, StreamedAnswer
from backstay.canonical import canonical, digest_of
from backstay.errors import ModelRefused
from backstay.shown import one_line

_NOWHERE = "https://native.invalid"
_TOOLS = 2000
_FEW = 16
_WORDS = {"responses": "an answer of Responses", "anthropic": "an answer of Messages", "gemini": "an answer of Gemini"}


@dataclass
class _Exchange:
    """Hold what the library wants to send, and what is put before it in return."""

    answer: httpx2.Response | None = None
    asked: httpx2.Request | None = None


_EXCHANGE: ContextVar[_Exchange] = ContextVar("exchange")


class _Apart(httpx2.AsyncBaseTransport):
    """Stand where the library has its network."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        exchange = _EXCHANGE.get()
        exchange.asked = request
        if exchange.answer is None:
            return httpx2.Response(400, json={"error": {"message": "taken"}}, request=request)
        exchange.answer.request = request
        return exchange.answer


class _Body(httpx2.AsyncByteStream):
    """Read the events of an answer while they arrive, and keep what goes wrong."""

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        self._events = events
        self.fault: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for event in self._events:
                yield event
        except Exception as error:
            # The library would put it into words of its own.
            self.fault = error
            raise


@contextmanager
def _exchanging(answer: httpx2.Response | None = None) -> Generator[_Exchange]:
    exchange = _Exchange(answer)
    token = _EXCHANGE.set(exchange)
    try:
        yield exchange
    finally:
        _EXCHANGE.reset(token)


@dataclass(frozen=True)
class NativeRequest:
    """Hold a request of a native API."""

    body: dict[str, Any]
    path: str
    headers: Mapping[str, str]
    model: "NativeModel"
    most: int | None

    def whole(self) -> HttpPost:
        """Return the request for an answer that comes whole."""
        body = {**self.body, "stream": False} if "stream" in self.body else self.body
        return self._post(body, self.path)

    def streamed(self, without: frozenset[str]) -> HttpPost:
        """Return the request for a stream."""
        body = {**self.body, "stream": True} if "stream" in self.body else self.body
        return self._post(body, self.path.replace(":generateContent", ":streamGenerateContent?alt=sse"))

    def _post(self, body: dict[str, Any], path: str) -> HttpPost:
        return HttpPost(written(body), path, self.headers, self.model.read, _WORDS[self.model.api], self.most)


@dataclass
class NativeModel:
    """Write requests for one model, and read what it answers."""

    api: Api
    model: Model[Any]
    settings: ModelSettings = field(default_factory=ModelSettings)
    known: OrderedDict[str, ToolDefinition] = field(default_factory=OrderedDict[str, ToolDefinition])
    """Functions in a form that the library takes, by what is asked for."""

    async def request(self, asked: Mapping[str, Any]) -> NativeRequest:
        """Return a request of Chat Completions in the form of this API; raises ModelRefused for one that has none."""
        most = most_in(asked)
        settings = self._settings(most)
        if (effort := asked.get(EFFORT)) is not None:
            settings["thinking"] = False if effort == "none" else effort
        with _exchanging() as exchange:
            try:
                await self.model.request(conversation(asked["messages"]), settings, self._parameters(asked))
            except Exception as error:  # that nothing is answered ends each of them
                if exchange.asked is None:
                    said = f"this request cannot be put as {self.api}: {one_line(str(error), 300)}"
                    raise ModelRefused(said, unbilled=True) from error
        sent = exchange.asked
        if sent is None:
            raise ModelRefused(f"this request cannot be put as {self.api}", unbilled=True)
        body = json.loads(sent.content)
        if self.api == "anthropic":
            within_limit(body)
            mark_for_cache(body)
        headers = {name: value for name, value in sent.headers.items() if name.startswith("anthropic-")}
        return NativeRequest(body, sent.url.raw_path.decode(), headers, self, most)

    def _settings(self, most: int | None) -> ModelSettings:
        settings = self.settings.copy()
        if most is not None:
            settings["max_tokens"] = most
        return settings

    def _parameters(self, asked: Mapping[str, Any]) -> ModelRequestParameters:
        tools = [self._tool(function) for function in asked.get("tools", ())]
        if (form := asked.get("response_format")) is None:
            return ModelRequestParameters(function_tools=tools)
        about = form["json_schema"]
        # Anthropic has strict schemas only.
        strict = self.api == "anthropic" or about.get("strict") is True
        wanted = OutputObjectDefinition(json_schema=about["schema"], name=about["name"], strict=strict)
        return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=wanted)

    def _tool(self, function: dict[str, Any]) -> ToolDefinition:
        """Return a function in a form that the library takes; it refuses a whole request because of one schema."""
        key = digest_of(function)
        if (found := self.known.get(key)) is None:
            found = self._tried(function) or self._tried(simple(function)) or _bare(function)
            self.known[key] = found
            while len(self.known) > _TOOLS:
                self.known.popitem(last=False)
        return found

    def _tried(self, function: dict[str, Any]) -> ToolDefinition | None:
        tool = _definition(function)
        try:
            self.model.customize_request_parameters(ModelRequestParameters(function_tools=[tool]))
            canonical(tool.parameters_json_schema)
        except Exception:  # whatever it does not bear
            return None
        return tool

    async def read(self, response: httpx2.Response, say: Say | None) -> Completion:
        """Read an answer; raises ValueError for what is none, and what Events and `complete` tell of others."""
        events = AnswerEvents(self.api)
        if say is None or "json" in response.headers.get("content-type", ""):
            answer = await self._whole(await response.aread(), events)
        else:
            answer = await self._streamed(response, events, say)
        message, beside = message_of(answer)
        usage, reported = events.usage()
        return Completion(message, _end(answer), usage, reported and counts_words(usage, message), beside)

    async def _whole(self, content: bytes, events: AnswerEvents) -> ModelResponse:
        events.note(json.loads(content))
        answer = httpx2.Response(200, content=content, headers={"content-type": "application/json"})
        with _exchanging(answer):
            try:
                return await self.model.request(*self._anything())
            except Exception as error:
                raise ValueError(str(error)) from error

    async def _streamed(self, response: httpx2.Response, events: AnswerEvents, say: Say) -> ModelResponse:
        body, said = _Body(events.of(response.aiter_bytes())), StreamedAnswer(say)
        answer = httpx2.Response(200, stream=body, headers={"content-type": "text/event-stream"})
        with _exchanging(answer):
            try:
                async with self.model.request_stream(*self._anything()) as stream:
                    async for event in stream:
                        for chunk in _chunks(event):
                            said.add(chunk)
                    return stream.get()
            except BodyRefused:
                raise
            except Exception as error:
                raise body.fault or ValueError(str(error)) from error

    def _anything(self) -> tuple[list[ModelMessage], ModelSettings, ModelRequestParameters]:
        """Return a question, to which the answer is there already."""
        return [ModelRequest(parts=[UserPromptPart("?")])], self._settings(_FEW), ModelRequestParameters()


def _definition(function: Mapping[str, Any]) -> ToolDefinition:
    about = function["function"]
    schema = {"type": "object", **about["parameters"]}
    described = {"name": about["name"], "description": about["description"]}
    return ToolDefinition(**described, parameters_json_schema=schema, strict=False)


def _bare(function: Mapping[str, Any]) -> ToolDefinition:
    return replace(_definition(function), parameters_json_schema={"type": "object", "properties": {}})


def _chunks(event: ModelResponseStreamEvent) -> Iterator[dict[str, Any]]:
    """Yield what arrives as a chunk of Chat Completions, of which the words are told."""
    match event:
        case PartStartEvent(index=index, part=part):
            delta = _begun(index, part)
        case PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=text)):
            delta = {"content": text}
        case PartDeltaEvent(index=index, delta=ThinkingPartDelta(content_delta=text)):
            delta = {"reasoning": text}
        case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=given)):
            delta = _piece(index, {"arguments": given})
        case _:
            return
    yield {"choices": [{"delta": delta}]}


def _begun(index: int, part: ModelResponsePart) -> dict[str, Any]:
    match part:
        case TextPart(content=text):
            return {"content": text}
        case ThinkingPart(content=text):
            return {"reasoning": text}
        case ToolCallPart():
            given = {} if part.args is None else {"arguments": part.args}
            return _piece(index, {"name": part.tool_name, **given}, id=part.tool_call_id)
        case _:
            return {}


def _piece(index: int, function: dict[str, Any], **more: str) -> dict[str, Any]:
    if isinstance(function.get("arguments"), dict):
        function = {**function, "arguments": canonical(function["arguments"])}
    return {"tool_calls": [{"index": index, "function": function, **more}]}


def _end(answer: ModelResponse) -> str:
    """Return why an answer ended, in the words of its vendor where it has some."""
    details = answer.provider_details or {}
    if details.get("refusal"):
        return "refusal"
    return str(details.get("finish_reason") or answer.finish_reason or "")


@cache
def _http() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=_Apart(), timeout=None)


@cache
def native(api: Api, model: str) -> NativeModel:
    """Return what writes requests for a model; it holds no key and no address, which are those of the endpoint."""
    # Each request of the library is taken from it at once, so it never tries anything again.
    reached: Any = {"api_key": "none", "base_url": _NOWHERE, "http_client": _http()}
    match api:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - each vendor's SDK is large
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - the same

            return NativeModel(api, AnthropicModel(model, provider=AnthropicProvider(**reached)))
        case "gemini":
            from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415 - the same
            from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415 - the same

            return NativeModel(api, GoogleModel(model, provider=GoogleProvider(**reached)))
        case _:
            from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings  # noqa: PLC0415 - the same
            from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - the same

            made = OpenAIResponsesModel(model, provider=OpenAIProvider(**reached))
            # Items that the vendor keeps could not be pruned here.
            return NativeModel(api, made, OpenAIResponsesModelSettings(openai_store=False))
