"""Send one Chat Completions request and read its answer, whatever the endpoint makes of it."""

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from activities.endpoints.client import ANSWER_S, EVENTS, BodyRefused
from activities.endpoints.usage import counts_words, has_counts, usage_in
from activities.media.parts import MediaParts
from activities.model.ends import End, end_of
from activities.model.message import MessageExtras, in_one_form
from activities.model.refusals import (
    AnswerBroken,
    AnswerRefused,
    Cause,
    Refusal,
    fault_in,
    media_refused,
    refusal_of,
    seconds_in,
    status_in,
    tells_of_loading,
    wait_in,
)
from activities.model.streaming import CALLED, STREAMED, Say, read_answer, read_whole
from backstay.budgets.usage import ModelUsage
from backstay.canonical import canonical
from backstay.errors import ModelRefused, ModelUnavailable
from backstay.redaction.redactor import Redactor
from backstay.shown import one_line
from backstay.tools.trying import LONGEST_WAIT_S

if TYPE_CHECKING:
    import openai

# Data that is not compressed does not grow while it is read.
HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
STREAM_HEADERS = {**HEADERS, "Accept": EVENTS, "X-Stainless-Raw-Response": "stream"}
"""The last of them tells the SDK to leave the body to us."""


class RequestRefused(ModelRefused):
    """The endpoint does not take the request as it is."""

    refusal: Refusal = Refusal(0, "")


class TooManyRequests(ModelUnavailable):
    """The endpoint takes no request for the time in `retry_after`, from nobody with its key."""


class ContextTooLong(RequestRefused):
    """The request is longer than the model takes."""


@dataclass(frozen=True)
class Completion:
    """Hold one answer of the endpoint."""

    message: dict[str, Any]
    finish_reason: str
    usage: ModelUsage
    """Without its cost."""
    reported: bool
    """Whether the endpoint said what it used."""
    beside: MessageExtras = field(default_factory=MessageExtras)
    """What was beside the message and its calls."""


Read = Callable[[httpx2.Response, Say | None], Awaitable[Completion]]
"""Reads an answer, and tells its words while it arrives."""


async def read_chat(response: httpx2.Response, say: Say | None) -> Completion:
    """Read an answer of Chat Completions."""
    data = await (read_whole(response.content) if say is None else read_answer(response.aiter_bytes(), say))
    if (fault := fault_in(data)) is not None:
        raise AnswerRefused(fault)
    return _parsed(data)


@dataclass(frozen=True)
class HttpPost:
    """Hold a request as it is sent, and who reads its answer."""

    content: bytes
    path: str = "/chat/completions"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    read: Read = read_chat
    form: str = "a chat completion"
    """What the answer is to be."""
    most: int | None = None
    """How many tokens the answer may have at most; None where the endpoint is told no limit."""


class ApiRequest(Protocol):
    """Be a request in the form of an API, as it asks for a whole answer or for a stream."""

    def whole(self) -> HttpPost:
        """Return the request for an answer that comes whole."""
        ...

    def streamed(self, without: frozenset[str]) -> HttpPost:
        """Return the request for a stream, without fields that the endpoint does not take."""
        ...


@dataclass(frozen=True)
class ChatRequest:
    """Hold a request of Chat Completions."""

    asked: dict[str, Any]
    content: bytes
    """The same, written."""

    def whole(self) -> HttpPost:
        """Return the request for an answer that comes whole."""
        return HttpPost(self.content, most=most_in(self.asked))

    def streamed(self, without: frozenset[str]) -> HttpPost:
        """Return the request for a stream, without fields that the endpoint does not take."""
        added = {name: value for name, value in STREAMED.items() if name not in without}
        return HttpPost(written({**self.asked, **added}), most=most_in(self.asked))


@dataclass(frozen=True)
class _WithMedia:
    """Hold a request with the bytes of what it shows."""

    request: ApiRequest
    media: MediaParts

    def whole(self) -> HttpPost:
        """Return the request for an answer that comes whole."""
        return self._filled(self.request.whole())

    def streamed(self, without: frozenset[str]) -> HttpPost:
        """Return the request for a stream, without fields that the endpoint does not take."""
        return self._filled(self.request.streamed(without))

    def _filled(self, post: HttpPost) -> HttpPost:
        return replace(post, content=self.media.filled(post.content))


def with_media(request: ApiRequest, media: MediaParts) -> ApiRequest:
    """Return a request in which the bytes of pictures and PDFs are in place of their marks."""
    return _WithMedia(request, media)


def most_in(asked: Mapping[str, Any]) -> int | None:
    """Return how many tokens an answer may have at most, as a request of Chat Completions says it."""
    return next((asked[name] for name in ("max_completion_tokens", "max_tokens") if name in asked), None)


_GROW = frozenset({"messages", "contents", "input"})
"""What grows from request to request, as the APIs call it."""


def written(request: dict[str, Any]) -> bytes:
    """Return a request as it is sent: the growing part comes last, so that a request begins as the one before."""
    names = sorted(request, key=lambda name: (name in _GROW, name))
    fields = (f"{canonical(name)}:{canonical(request[name])}" for name in names)
    return f"{{{','.join(fields)}}}".encode("utf-8", "replace")


def say_nothing(text: str) -> None:
    """Take what a model says where nobody reads along."""


async def complete(
    client: "openai.AsyncOpenAI",
    request: HttpPost,
    *,
    listed: bool = False,
    within_s: float = ANSWER_S,
    say: Say | None = None,
) -> Completion:
    """Send a written request once, and wait so long for the whole answer.

    `listed`: models.yaml says where, so that is what a fault there is mended in. `say` is told what the model says
    while it arrives; the request then asks for a stream, and the whole is the same.
    Raises ModelUnavailable or ModelRefused; the fact `unbilled` is True only where that is proven.
    """
    import openai  # noqa: PLC0415 - whoever has a client has loaded it

    kind, headers, redactor = "nothing", httpx2.Headers(), _knowing(client.api_key)
    try:
        async with asyncio.timeout(within_s), _posted(client, request, say) as response:
            kind = response.headers.get("content-type", kind)[:60]
            headers = response.headers
            return _cut_at(request.most, await request.read(response, say))
    except AnswerRefused as error:
        refusal = refusal_of(status_in(error.data), error.data, redactor)
        return _cut_off(refusal, _by_cause(refusal, headers, listed=listed, host=client.base_url.host))
    except AnswerBroken as error:
        refusal = refusal_of(200, error.data, redactor)
        return _cut_off(refusal, _broken(refusal))
    except TimeoutError as error:
        raise ModelUnavailable(f"the model endpoint has not answered within {within_s:g} s", unbilled=False) from error
    except openai.APIConnectionError as error:
        raise _unreached(error.__cause__ or error, client, listed=listed) from error
    except httpx2.HTTPError as error:
        # The body of a stream is read here, and not by the SDK.
        raise _unreached(error, client, listed=listed) from error
    except openai.APIStatusError as error:
        refusal = refusal_of(error.status_code, _body_of(error), redactor)
        return _cut_off(refusal, _by_cause(refusal, error.response.headers, listed=listed, host=client.base_url.host))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise _unread(kind, request.form, listed=listed) from error


_MAYBE_CUT = frozenset[End]({"done", "unsaid", "unknown"})


def _cut_at(most: int | None, completion: Completion) -> Completion:
    """Return an answer of exactly as many tokens as it may have as one that was cut off, whatever its end is called.

    vLLM calls it the end of calls. A limit holds for thoughts too or for the answer alone; an answer that is longer has
    not been held to it, and may be whole.
    """
    usage, end = completion.usage, end_of(completion.finish_reason, completion.message)
    is_full = most in (usage.output_tokens, usage.output_tokens - usage.reasoning_tokens)
    return replace(completion, finish_reason="length") if is_full and end in _MAYBE_CUT else completion


def _unread(kind: str, form: str, *, listed: bool) -> ModelUnavailable:
    return ModelUnavailable(f"the endpoint answered {kind}, not {form}; check {_place(listed=listed)}", unbilled=False)


def _place(*, listed: bool) -> str:
    return "its base_url in models.yaml" if listed else "OPENAI_BASE_URL"


@lru_cache(maxsize=64)
def _knowing(key: str) -> Redactor:
    return Redactor((key,))


@contextlib.asynccontextmanager
async def _posted(client: "openai.AsyncOpenAI", request: HttpPost, say: Say | None) -> AsyncGenerator[httpx2.Response]:
    """Send a request, and close its answer when it is read."""
    options: Any = {"headers": {**(HEADERS if say is None else STREAM_HEADERS), **request.headers}}
    response = await client.post(request.path, content=request.content, options=options, cast_to=httpx2.Response)
    try:
        yield response
    finally:
        await response.aclose()


def _unreached(cause: BaseException, client: "openai.AsyncOpenAI", *, listed: bool) -> ModelUnavailable:
    if isinstance(cause, BodyRefused):
        return ModelUnavailable(f"the model endpoint: {cause}", unbilled=False)
    unsent = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
    said = _knowing(client.api_key).text(one_line(str(cause), 200)) or type(cause).__name__
    text = f"the model endpoint does not answer: {client.base_url.host}: {said}; check {_place(listed=listed)}"
    return ModelUnavailable(text, unbilled=unsent)


_FIXES = {401: "check OPENAI_API_KEY", 403: "check the key's rights", 404: "check BACKSTAY_MODEL and OPENAI_BASE_URL"}
_FIXES_OF_LISTED = {
    401: "check the key of its endpoint in models.yaml",
    403: "check the rights of that key",
    404: "check its model and the base_url in models.yaml",
}
_CAUSES = {
    "quota": "raise the quota",
    "filtered": "its filter does not take what is asked; it is not asked again in the same words",
    "bad_generation": "the model wrote what its endpoint could not read",
}
_OF_THE_KEY = frozenset({401, 402, 403})


def _cut_off(refusal: Refusal, error: ModelUnavailable | ModelRefused) -> Completion:
    """Return the answer of which a refusal says that it was cut off; raises the error for every other refusal."""
    if refusal.cause != "cut":
        raise error
    usage, reported = usage_in(refusal.data)
    return Completion({"role": "assistant", "content": None}, "length", usage, reported=reported)


def _broken(refusal: Refusal) -> ModelUnavailable:
    text = f"the model endpoint broke off its answer with an error{refusal.told}"
    return ModelUnavailable(text, unbilled=False, retry_after=wait_in(refusal.text))


def _body_of(error: "openai.APIStatusError") -> Any:
    """Return what an endpoint answered; the SDK leaves out what is beside its `error`."""
    try:
        return json.loads(error.response.content)
    except (ValueError, RecursionError):
        text = error.response.text
        return "" if text.lstrip()[:1] == "<" else text


def _by_cause(refusal: Refusal, headers: httpx2.Headers, *, listed: bool, host: str) -> ModelUnavailable | ModelRefused:
    """Return the error for a refusal, by its cause."""
    wait = _wait(refusal.text, headers)
    status, cause, code = refusal.status, _cause_at_status(refusal), refusal.code
    said = f"HTTP {status}{f' {code}' if code and code != str(status) else ''}"
    unbilled = _is_unbilled(refusal, host)
    if cause == "too_long" and status not in _OF_THE_KEY:
        text = f"the model endpoint says {said}: the request is longer than the model takes{refusal.told}"
        return _of(ContextTooLong(text, unbilled=unbilled), refusal)
    if cause in _CAUSES or (status == 429 and code == "insufficient_quota") or status == 402:
        why = _CAUSES.get(cause, _CAUSES["quota"])
        kind = RequestRefused if cause == "bad_generation" else ModelRefused
        return _of(kind(f"the model endpoint says {said}; {why}{refusal.told}", unbilled=unbilled), refusal)
    if _takes_no_media(refusal):
        return _of(RequestRefused(f"the model endpoint says {said}{refusal.told}", unbilled=True), refusal)
    known = cause not in {"", "unknown_model"} and status not in {*_OF_THE_KEY, 429}
    if not known and (status in {200, 408, 409, 429} or status >= 500):
        text = f"the model endpoint says {said}{refusal.told}"
        kind = TooManyRequests if status == 429 and wait else ModelUnavailable
        return kind(text, unbilled=unbilled, retry_after=wait)
    hint = (_FIXES_OF_LISTED if listed else _FIXES).get(status, "check the model's settings")
    kind = RequestRefused if known or cause == "unknown_model" or status in {400, 422} else ModelRefused
    return _of(kind(f"the model endpoint says {said}; {hint}{refusal.told}", unbilled=unbilled), refusal)


def _takes_no_media(refusal: Refusal) -> bool:
    """Return whether an endpoint says that it takes no pictures, or no such files; no model is asked then."""
    # llama.cpp calls it a fault of its own.
    is_said = refusal.status in _UNTAKEN or (refusal.status == 500 and "is not supported" in refusal.text.lower())
    return is_said and bool(media_refused(refusal.text.lower()))


def _cause_at_status(refusal: Refusal) -> Cause:
    """Return the cause of a refusal, unless its status says that a gateway only tells what has befallen an answer."""
    return "" if refusal.status >= _BELIEVED_BELOW.get(refusal.cause, 1000) else refusal.cause


_BELIEVED_BELOW: Mapping[str, int] = {"too_long": 501, "answer_limit": 501, "form": 501, "filtered": 429}
_UNTAKEN = frozenset({404, 413, 415, 501})
_UNASKED = frozenset(
    {"no_functions", "no_schema", "too_many_functions", "function_schema", "unknown_model"}
    | {"too_long", "answer_limit", "form", "quota"}
)
"""Causes for which no model is asked."""


_UNCOMPUTED = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 413, 414, 415, 417, 421, 422, 426, 428, 429, 431, 498}
)
"""Statuses that prove that the request was not taken; others, such as 424 and 499, come in the middle of an answer."""
_BILLS_LONG_REQUESTS = (".azure.com", ".azure.us", ".azure.cn", ".azure-api.net")
"""Hosts that say that they bill a request which is longer than the model takes."""


def _is_unbilled(refusal: Refusal, host: str) -> bool:
    """Return whether it is proven that a refusal cost nothing: no model was asked where the request was not taken."""
    cause = _cause_at_status(refusal)
    # A filter reads the request with models of its own, for which Azure charges as for the one that is asked.
    if cause in {"bad_generation", "filtered"} or has_counts(refusal.data):
        return False
    if cause == "too_long" and host.lower().endswith(_BILLS_LONG_REQUESTS):
        return False
    if 400 <= refusal.status < 500:
        return refusal.status in _UNCOMPUTED or cause in _UNASKED - {"quota"}
    if refusal.status == 503 and tells_of_loading(refusal.text):
        return True
    return cause in _UNASKED and (cause != "quota" or refusal.status == 200)


def _of(error: ModelRefused, refusal: Refusal) -> ModelRefused:
    if isinstance(error, RequestRefused):
        error.refusal = refusal
    return error


def _wait(text: str, headers: httpx2.Headers) -> float | None:
    """Return the seconds to wait, as the headers say, or the words; a header may also name a date."""
    if (span := seconds_in(headers.get("retry-after-ms", ""))) is not None:
        return span / 1000
    said = headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        if not math.isnan(seconds := float(said)):
            return min(seconds, LONGEST_WAIT_S)
    if (span := seconds_in(said)) is not None:
        return span
    try:
        return (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return wait_in(text)


_NOTHING: Mapping[str, Any] = {"content": None}
"""The message of an answer that was withheld whole; it is an answer all the same, and is paid for."""


def _choice(data: Any) -> dict[str, Any]:
    choices = data["choices"] or []
    return {"message": {**_NOTHING}} if choices == [] and has_counts(data) else choices[0]


def _message(choice: dict[str, Any]) -> dict[str, Any]:
    # Some write what belongs to a stream.
    message = choice.get("delta" if "message" not in choice and "delta" in choice else "message")
    if message is None and choice.get("finish_reason") and "text" not in choice:
        message = {**_NOTHING}
    if not isinstance(message, dict):
        raise TypeError("no message")
    return message


def _parsed(data: Any) -> Completion:
    choice = _choice(data)
    message, beside = in_one_form(_message(choice))
    if "tool_calls" not in message and choice.get("finish_reason") in CALLED:
        # Only one answer was asked for: some gateways put its words and its calls into choices of their own.
        others = [other.get("message") for other in data["choices"][1:] if isinstance(other, dict)]
        apart = [in_one_form(other) for other in others if isinstance(other, dict)]
        found = next(((other, more) for other, more in apart if other.get("tool_calls")), None)
        if found is not None:
            message["tool_calls"] = found[0]["tool_calls"]
            beside = replace(found[1], message=found[1].message | beside.message)
    usage, reported = usage_in(data)
    return Completion(
        message=message,
        finish_reason=str(choice.get("finish_reason") or ""),
        usage=usage,
        reported=reported and counts_words(usage, message),
        beside=beside,
    )
