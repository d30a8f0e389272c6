"""Turn a Reply into a chat completion: its bytes, whole or as a stream, and its usage."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from backstay.testing.reply import Reply, Tokens

BYTES_PER_TOKEN = 4


class ScriptedCompletion:
    """Hold the completion that answers one request: its message, its usage and its bytes."""

    def __init__(
        self, reply: Reply, number: int, request: dict[str, Any], prompt_bytes: int, shared_bytes: int
    ) -> None:
        self._reply = reply
        self._number = number
        self._request = request
        cap = request.get("max_completion_tokens") or request.get("max_tokens")
        self._room = cap * BYTES_PER_TOKEN if isinstance(cap, int) and reply.usage is None else None
        self.message = self._message()
        self.usage = reply.usage or Tokens(
            prompt=_tokens(prompt_bytes), cached=shared_bytes // BYTES_PER_TOKEN, completion=self._spoken()
        )

    @property
    def finish_reason(self) -> str:
        """Return why the answer ends."""
        if self._reply.finish_reason is not None:
            return self._reply.finish_reason
        if self._room is not None and self._size() > self._room:
            return "length"
        return "tool_calls" if self._reply.calls else "stop"

    def whole(self) -> bytes:
        """Return the answer as one JSON object, or the error that the status asks for."""
        if self._reply.body is not None:
            return self._reply.body
        if self._reply.status >= 400:
            return json.dumps({"error": self._error()}).encode()
        choice = {"index": 0, "message": self.message, "finish_reason": self.finish_reason, "logprobs": None}
        return json.dumps(self._envelope("chat.completion", [choice], with_usage=True)).encode()

    async def stream(self, *, cut: bool = False) -> AsyncIterator[bytes]:
        """Yield the answer as server-sent events, usage last when the request wants it; with `cut`, half of them."""
        deltas = [*self._deltas()]
        for number, delta in enumerate(deltas[: -(-len(deltas) // 2)] if cut else deltas):
            if number and self._reply.pause_s:
                await asyncio.sleep(self._reply.pause_s)
            yield self._event([{"index": 0, "delta": delta, "finish_reason": None}])
        if cut:
            return
        options = self._request.get("stream_options") or {}
        yield self._event([{"index": 0, "delta": {}, "finish_reason": self.finish_reason}])
        if isinstance(options, dict) and options.get("include_usage"):
            yield self._event([], with_usage=True)
        yield b"data: [DONE]\n\n"

    def _deltas(self) -> Iterator[dict[str, Any]]:
        """Yield the message in pieces: the role with the first, and of a call its name before its arguments."""
        size = self._reply.piece
        text, calls = self.message["content"], self.message.get("tool_calls", [])
        if not size:
            numbered = [{**call, "index": index} for index, call in enumerate(calls)]
            yield {**self.message, **({"tool_calls": numbered} if calls else {})}
            return
        first, *rest = _pieces(text, size)
        yield {"role": "assistant", "content": first}
        yield from ({"content": piece} for piece in rest)
        for index, call in enumerate(calls):
            function = call["function"]
            first, *rest = _pieces(function["arguments"], size)
            yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": first}}]}
            yield from ({"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in rest)

    def _event(self, choices: list[dict[str, Any]], *, with_usage: bool = False) -> bytes:
        chunk = self._envelope("chat.completion.chunk", choices, with_usage=with_usage)
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    def _envelope(self, kind: str, choices: list[dict[str, Any]], *, with_usage: bool) -> dict[str, Any]:
        envelope = {
            "id": f"chatcmpl-{self._number}",
            "object": kind,
            "created": 0,
            "model": str(self._request.get("model", "")),
            "choices": choices,
        }
        return {**envelope, "usage": self.usage.wire()} if with_usage and self._reply.reports_usage else envelope

    def _error(self) -> dict[str, Any]:
        message = self._reply.text or f"scripted status {self._reply.status}"
        kind = "server_error" if self._reply.status >= 500 else "invalid_request_error"
        return {"message": message, "type": kind, "param": None, "code": self._reply.code}

    def _message(self) -> dict[str, Any]:
        room = self._room
        message: dict[str, Any] = {"role": "assistant", "content": _cut(self._reply.text, room), "refusal": None}
        if self._reply.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{self._number}_{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": text},
                }
                for index, (name, arguments) in enumerate(self._reply.calls)
                for text in [_cut(arguments if isinstance(arguments, str) else json.dumps(arguments), room)]
            ]
        return message

    def _spoken(self) -> int:
        """Return how many tokens the answer has; only one that was cut has as many as it may."""
        spoken = _tokens(len(json.dumps(self.message, ensure_ascii=False).encode("utf-8", "replace")))
        if self._room is None:
            return spoken
        most = self._room // BYTES_PER_TOKEN
        return min(spoken, most if self.finish_reason == "length" else max(1, most - 1))

    def _size(self) -> int:
        texts = [self._reply.text or "", *(str(arguments) for _, arguments in self._reply.calls)]
        return sum(len(text.encode("utf-8", "replace")) for text in texts)


def _pieces(text: str | None, size: int) -> list[str | None]:
    if not text:
        return [text]
    return [text[start : start + size] for start in range(0, len(text), size)]


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _cut(text: str | None, room: int | None) -> str | None:
    return text if text is None or room is None else text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
