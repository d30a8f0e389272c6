"""Send one Chat Completions request and read its answer, whatever the endpoint makes of it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import openai

from activities.endpoints.endpoints import ANSWER_S, EVENTS, BodyRefused
from activities.model.streaming import Say, read_answer
from backstay.budgets.usage import ModelUsage
from backstay.canonical import canonical
from backstay.errors import ModelRefused, ModelUnavailable

MOST_TOKENS = 10**9
# What is not compressed does not grow while it is read.
_PLAIN = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
HEADERS: Any = {"headers": _PLAIN}
STREAM_HEADERS: Any = {"headers": {**_PLAIN, "Accept": EVENTS, "X-Stainless-Raw-Response": "stream"}}
"""The last of them tells the SDK to leave the body to us."""


class ContextTooLong(ModelRefused):
    """The request is longer than the model takes."""


class RequestRefused(ModelRefused):
    """The endpoint does not take the request as it is."""


@dataclass(frozen=True)
class Completion:
    """Hold one answer of the endpoint."""

    message: dict[str, Any]
    finish_reason: str
    usage: ModelUsage
    """Without its cost."""
    reported: bool
    """Whether the endpoint said what it used."""


def written(request: dict[str, Any]) -> bytes:
    """Return a request as it is sent."""
    return canonical(request).encode("utf-8", "replace")


async def complete(
    client: openai.AsyncOpenAI,
    request: bytes,
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
    kind = "nothing"
    try:
        async with asyncio.timeout(within_s), _posted(client, request, say) as response:
            kind = response.headers.get("content-type", kind)[:60]
            if say is None:
                return _parsed(json.loads(response.content))
            return _parsed(await read_answer(response.aiter_bytes(), say))
    except TimeoutError as error:
        raise ModelUnavailable(f"the model endpoint has not answered within {within_s:g} s", unbilled=False) from error
    except openai.APIConnectionError as error:
        raise _unreached(error.__cause__, error) from error
    except httpx2.HTTPError as error:
        # The body of a stream is read here, and not by the SDK.
        raise _unreached(error, error) from error
    except openai.APIStatusError as error:
        raise _refusal(error, listed=listed) from error
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        fix = f"check {'its base_url in models.yaml' if listed else 'OPENAI_BASE_URL'}"
        text = f"the endpoint answered {kind}, not a chat completion; {fix}"
        raise ModelUnavailable(text, unbilled=False) from error


@contextlib.asynccontextmanager
async def _posted(client: openai.AsyncOpenAI, request: bytes, say: Say | None) -> AsyncGenerator[httpx2.Response]:
    """Send a request, and close its answer when it is read."""
    options = HEADERS if say is None else STREAM_HEADERS
    response = await client.post("/chat/completions", content=request, options=options, cast_to=httpx2.Response)
    try:
        yield response
    finally:
        await response.aclose()


def _unreached(cause: BaseException | None, error: Exception) -> ModelUnavailable:
    if isinstance(cause, BodyRefused):
        return ModelUnavailable(f"the model endpoint: {cause}", unbilled=False)
    unsent = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
    return ModelUnavailable(f"the model endpoint does not answer: {error}", unbilled=unsent)


_FIXES = {401: "check OPENAI_API_KEY", 403: "check the key's rights", 404: "check BACKSTAY_MODEL and OPENAI_BASE_URL"}
_FIXES_OF_LISTED = {
    401: "check the key of its endpoint in models.yaml",
    403: "check the rights of that key",
    404: "check its model and the base_url in models.yaml",
}


def _refusal(error: openai.APIStatusError, *, listed: bool) -> ModelUnavailable | ModelRefused:
    status = error.status_code
    code = _code(error)
    unbilled = 400 <= status < 500 and status != 408
    said = f"HTTP {status}{f' {code}' if code else ''}"
    if code == "context_length_exceeded":
        return ContextTooLong(f"{said}: the request is longer than the model takes", unbilled=unbilled)
    if status in {408, 409} or status >= 500 or (status == 429 and code != "insufficient_quota"):
        return ModelUnavailable(f"the model endpoint says {said}", unbilled=unbilled, retry_after=_retry_after(error))
    fix = _FIXES_OF_LISTED if listed else _FIXES
    hint = "raise the quota" if status == 429 else fix.get(status, "check the model's settings")
    kind = RequestRefused if status in {400, 422} else ModelRefused
    return kind(f"the model endpoint says {said}; {hint}", unbilled=unbilled)


def _code(error: openai.APIStatusError) -> str:
    code = error.code
    return "".join(sign for sign in code if sign.isalnum() or sign in "_-")[:60] if isinstance(code, str) else ""


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Return the seconds to wait; the header may also name a date."""
    said = error.response.headers.get("retry-after", "")
    try:
        return float(said)
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None


def _parsed(data: Any) -> Completion:
    choice = data["choices"][0]
    message = choice["message"]
    if not isinstance(message, dict):
        raise TypeError("no message")
    usage = _dict(data.get("usage"))
    prompt, output = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    cached = min(prompt or 0, _count(_dict(usage.get("prompt_tokens_details")), "cached_tokens") or 0)
    return Completion(
        message=message,
        finish_reason=str(choice.get("finish_reason") or ""),
        usage=ModelUsage(
            calls=1,
            input_cached_tokens=cached,
            input_new_tokens=(prompt or 0) - cached,
            output_tokens=output or 0,
            reasoning_tokens=_count(_dict(usage.get("completion_tokens_details")), "reasoning_tokens") or 0,
        ),
        reported=bool(prompt) and output is not None,
    )


def _count(usage: dict[str, Any], name: str) -> int | None:
    """Return a count of tokens, or None when there is none that can be believed."""
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
