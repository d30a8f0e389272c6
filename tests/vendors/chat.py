"""Chat Completions as its vendors share it; each of them says where it differs."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Literal

from tests.vendors.wire import FIELDS, Asked, Heard, Refusal, Rule, Turn, Vendor, event, number, spent, unknown

OPENAI_REFERENCE = "https://github.com/openai/openai-openapi/blob/master/openapi.yaml"
NOTE = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}
Fields = dict[str, Any]


def told(content: Any) -> str:
    """Return the text of a content that is text or parts."""
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content if part.get("type") == "text")
    return content or ""


class Chat(Vendor):
    """OpenAI's form, with the places where others leave it."""

    base = "/v1"
    limit = "max_completion_tokens"
    ids = "call_{:024d}"
    thoughts: str | None = None
    """The field that thoughts come in."""
    thoughts_wanted = False
    """Whether they must come back beside calls."""
    ends: dict[str, str] = {"stop": "stop", "length": "length", "filter": "content_filter"}  # noqa: RUF012 - never changed
    stream_calls_end = "tool_calls"
    usage: Literal["asked", "last", "choice", "aside"] = "asked"
    """Whether a stream's usage must be asked for, comes with its last chunk, inside of its choice, or in `x_groq`."""
    arguments: Literal["pieces", "whole"] = "pieces"
    index: Literal["counted", "zero", "none"] = "counted"
    beside_calls: str | None = None
    """The content beside calls."""
    refuses = False
    """Whether a message has a field for refusals."""
    function_extra: Fields = {}  # noqa: RUF012 - never changed

    def __init__(self) -> None:
        self.rules = (self._path(), *self.own_rules())

    def own_rules(self) -> tuple[Rule, ...]:
        """Return what this vendor refuses."""
        return ()

    def error(self, status: int, message: str, *, code: Any = None, param: Any = None, kind: str = "") -> Refusal:
        """Return a refusal in the vendor's form."""
        kind = kind or "invalid_request_error"
        return Refusal(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})

    def broken(self) -> Iterator[bytes]:
        """Return how a stream tells of an error, after its first words."""
        message = "The server had an error while processing your request. Sorry about that!"
        yield event({"error": {"message": message, "type": "server_error", "param": None, "code": None}})

    def failed(self) -> Refusal:
        """Return what is answered in place of a whole answer that broke."""
        return self.error(500, "The server had an error while processing your request.", kind="server_error")

    def beside_message(self, ids: list[str]) -> Fields:
        """Return what stands beside a message of the model."""
        return {self.thoughts: thought_of(ids)} if self.thoughts else {}

    def beside_call(self, place: int, call_id: str) -> Fields:
        """Return what stands beside a call."""
        return {}

    def correct(self) -> Asked:
        ids = [self.ids.format(number()) for _ in range(2)]
        calls = [
            {"id": each, "type": "function", "function": {"name": "note", "arguments": f'{{"number": {place}}}'}}
            | self.beside_call(place, each)
            for place, each in enumerate(ids)
        ]
        said = {"role": "assistant", "content": "", "tool_calls": calls}
        returned = self.beside_message(ids) if self.thoughts_wanted else {}
        heard = [{"role": "tool", "tool_call_id": each, "content": "noted"} for each in ids]
        messages = [{"role": "system", "content": "Note."}, {"role": "user", "content": "Go."}, said | returned, *heard]
        function = {"name": "note", "description": "Note a number.", "parameters": deepcopy(NOTE)}
        tools = [{"type": "function", "function": function | self.function_extra}]
        body = {"model": self.model, "messages": messages, "tools": tools, self.limit: 900}
        return Asked(self.base + "/chat/completions", body)

    def hear(self, asked: Asked) -> Heard:
        messages = asked.body["messages"]
        wanted = (asked.body.get("response_format") or {}).get("json_schema") or {}
        return Heard(
            "\n".join(told(each.get("content")) for each in messages if each["role"] != "assistant"),
            sum(each["role"] == "assistant" for each in messages),
            sum(each["role"] == "tool" for each in messages),
            {each["function"]["name"]: each["function"].get("parameters") for each in asked.body.get("tools") or ()},
            wanted.get("schema"),
        )

    def whole(self, turn: Turn, asked: Asked) -> Refusal:
        if turn.end == "broken":
            return self.failed()
        ids = [self.ids.format(number()) for _ in turn.calls]
        message: Fields = {"role": "assistant", "content": turn.text or (self.beside_calls if turn.calls else "")}
        if turn.end == "refusal" and self.refuses:
            message |= {"content": None, "refusal": turn.text}
        if turn.calls:
            message["tool_calls"] = [self._call(turn, place, each) for place, each in enumerate(ids)]
        if turn.thought or self.thoughts_wanted:
            message |= self.beside_message(ids)
        choice = {"index": 0, "message": self.formed(message, turn), "finish_reason": self._end(turn), "logprobs": None}
        body = self._head("chat.completion") | {"choices": [choice], "usage": self.bill(turn, asked)}
        return Refusal(200, body)

    def formed(self, message: Fields, turn: Turn) -> Fields:
        """Return a message in the vendor's form."""
        return message

    def pieces(self, turn: Turn, asked: Asked) -> Iterator[bytes]:
        ids = [self.ids.format(number()) for _ in turn.calls]
        head = self._head("chat.completion.chunk")

        def chunk(delta: Fields, end: str | None = None, **more: Any) -> bytes:
            return event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": end} | more]})

        yield chunk({"role": "assistant", "content": self.beside_calls if turn.calls else ""})
        for delta in self.deltas(turn, ids):
            yield chunk(delta)
            if turn.end == "broken" and not delta.keys() <= {self.thoughts}:
                yield from self.broken()
                return
        bill = self.bill(turn, asked)
        end = self.stream_calls_end if turn.calls and turn.end == "stop" else self._end(turn)
        if self.usage == "choice":
            yield chunk({}, end, usage=bill)
        elif self.usage == "last":
            choice = {"index": 0, "delta": {"content": ""}, "finish_reason": end}
            yield event(head | {"choices": [choice], "usage": bill})
        elif self.usage == "aside":
            choice = {"index": 0, "delta": {}, "finish_reason": end}
            yield event(head | {"choices": [choice], "x_groq": {"id": "req_1", "usage": bill}})
        else:
            yield chunk({}, end)
        if self.usage in {"asked", "aside"} and (asked.body.get("stream_options") or {}).get("include_usage"):
            yield event(head | {"choices": [], "usage": bill})
        yield event("[DONE]")

    def deltas(self, turn: Turn, ids: list[str]) -> Iterator[Fields]:
        """Return what a stream brings, between its first and its last chunk."""
        if turn.thought or self.thoughts_wanted:
            yield from self.thought_deltas(ids)
        for word in turn.words():
            yield {"refusal": word} if turn.end == "refusal" and self.refuses else {"content": word}
        for place, each in enumerate(ids):
            call = self._call(turn, place, each)
            at = {"counted": {"index": place}, "zero": {"index": 0}, "none": {}}[self.index]
            if self.arguments == "whole":
                yield {"tool_calls": [at | call]}
                continue
            text = call["function"]["arguments"]
            yield {"tool_calls": [at | call | {"function": {"name": call["function"]["name"], "arguments": ""}}]}
            for start in range(0, len(text), 7):
                yield {"tool_calls": [at | {"function": {"arguments": text[start : start + 7]}}]}

    def thought_deltas(self, ids: list[str]) -> Iterator[Fields]:
        """Return the thoughts of a stream."""
        if self.thoughts:
            text = thought_of(ids)
            yield {self.thoughts: text[:9]}
            yield {self.thoughts: text[9:]}

    def bill(self, turn: Turn, asked: Asked) -> Fields:
        """Return the usage of an answer."""
        tokens = spent(turn, asked)
        return {
            "prompt_tokens": tokens.read,
            "completion_tokens": tokens.written,
            "total_tokens": tokens.read + tokens.written,
            "completion_tokens_details": {"reasoning_tokens": tokens.thought},
        }

    def _call(self, turn: Turn, place: int, call_id: str) -> Fields:
        function = {"name": turn.calls[place][0], "arguments": turn.arguments(place)}
        beside = self.beside_call(place, call_id) if turn.thought or self.thoughts_wanted else {}
        return {"id": call_id, "type": "function", "function": function} | beside

    def _end(self, turn: Turn) -> str:
        if turn.calls and turn.end == "stop":
            return "tool_calls"
        return self.ends.get(turn.end, "stop")

    def _head(self, kind: str) -> Fields:
        return {"id": f"chatcmpl-{number()}", "object": kind, "created": 1_790_000_000, "model": self.model}

    def _path(self) -> Rule:
        path = self.base + "/chat/completions"
        return Rule(
            "path",
            OPENAI_REFERENCE,
            lambda asked: None if asked.path == path else self.error(404, f"Invalid URL (POST {asked.path})"),
            lambda asked: setattr(asked, "path", "/completions"),
        )

    def known_fields(self, source: str, said: Callable[[str], Refusal], place: str = "request") -> Rule:
        """Refuse fields of the request that the vendor does not know."""
        known = FIELDS[f"{self.name}.{place}"]
        return Rule(
            "unknown field",
            source,
            lambda asked: next((said(name) for name in unknown(asked.body, known)), None),
            lambda asked: asked.body.update(frequency=1),
        )

    def known_message_fields(self, source: str, said: Callable[[int, str, str], Refusal]) -> Rule:
        """Refuse fields of messages that the vendor does not know."""

        def refused(asked: Asked) -> Refusal | None:
            for place, message in enumerate(asked.body["messages"]):
                for name in unknown(message, FIELDS[f"{self.name}.{message['role']}"]):
                    return said(place, message["role"], name)
            return None

        return Rule("unknown field of a message", source, refused, lambda a: a.body["messages"][2].update(mind="x"))

    def calls_answered(self, source: str = OPENAI_REFERENCE) -> Rule:
        """Refuse calls that are not answered at once, and answers to no call."""

        def refused(asked: Asked) -> Refusal | None:
            open_ids: list[str] = []
            for place, message in enumerate(asked.body["messages"]):
                if message["role"] == "tool":
                    if message.get("tool_call_id") not in open_ids:
                        said = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                        return self.error(400, f"Invalid parameter: {said}", param=f"messages.[{place}].role")
                    open_ids.remove(message["tool_call_id"])
                elif open_ids:
                    break
                open_ids += [call["id"] for call in message.get("tool_calls") or ()]
            if not open_ids:
                return None
            said = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            missing = ", ".join(open_ids)
            return self.error(400, f"{said} 'tool_call_id'. The following did not have response messages: {missing}")

        return Rule("calls answered", source, refused, lambda asked: asked.body["messages"].pop())

    def thoughts_returned(self, source: str, said: Callable[[int], Refusal]) -> Rule:
        """Refuse calls without the thoughts that came with them, unchanged."""

        def refused(asked: Asked) -> Refusal | None:
            for place, message in enumerate(asked.body["messages"]):
                ids = [call["id"] for call in message.get("tool_calls") or ()]
                wanted = self.beside_message(ids)
                if ids and wanted != {name: message.get(name) for name in wanted}:
                    return said(place)
            return None

        return Rule(
            "thoughts returned",
            source,
            refused,
            lambda asked: asked.body["messages"][2].pop(next(iter(self.beside_message(["x"])))),
        )


def thought_of(ids: list[str]) -> str:
    """Return what the model thought before calls: nobody who changed a sign of it has it."""
    return f"I weigh «{', '.join(ids)}»\u2028 “twice”, \\n and \t once."


def json_text(value: Any) -> str:
    """Return a value as a model writes it."""
    return json.dumps(value, ensure_ascii=False)
