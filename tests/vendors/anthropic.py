"""Anthropic's Messages."""

import itertools
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.vendors.chat import NOTE, Fields, thought_of
from tests.vendors.wire import (
    FIELDS,
    Asked,
    Heard,
    Refusal,
    Rule,
    Turn,
    Vendor,
    event,
    number,
    signature,
    spent,
    unknown,
)

REFERENCE = "https://docs.claude.com/en/api/messages"
VERSIONS = "https://docs.claude.com/en/api/versioning"
ERRORS = "https://docs.claude.com/en/api/errors"
TOOLS = "https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use"
THINKING = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
STREAMS = "https://docs.claude.com/en/api/messages-streaming"
STOPS = "https://docs.claude.com/en/api/handling-stop-reasons"
MODIFIED = "https://github.com/anthropics/claude-code/issues/26314"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
THOUGHT_WITH = "toolu_01T"
"""How ids of calls begin that came with thoughts."""


def refusal(message: str) -> Refusal:
    """Return what is said of a request that is not valid."""
    error = {"type": "invalid_request_error", "message": message}
    return Refusal(400, {"type": "error", "error": error, "request_id": "req_1"})


class Anthropic(Vendor):
    """Anthropic, with a model that signs its thoughts."""

    name = "anthropic"
    title = "Anthropic, Messages"
    api = "anthropic"
    base = ""
    model = "claude-opus-5-5"
    refusals = ("refusal",)

    def __init__(self) -> None:
        self.rules = (
            Rule("path", REFERENCE, self._path, lambda asked: setattr(asked, "path", "/v1/chat/completions")),
            Rule("version", VERSIONS, self._version, lambda asked: asked.headers.pop("anthropic-version")),
            Rule("limit", REFERENCE, self._limit, lambda asked: asked.body.pop("max_tokens")),
            Rule("unknown field", REFERENCE, self._unknown, lambda asked: asked.body.update(parallel_tool_calls=True)),
            Rule("roles", REFERENCE, self._roles, lambda asked: asked.body["messages"][0].update(role="system")),
            Rule("first", REFERENCE, self._first, lambda asked: asked.body["messages"].pop(0)),
            Rule("empty", REFERENCE, self._empty, lambda a: a.body["messages"][0].update(content="")),
            Rule("names", REFERENCE, self._names, lambda asked: asked.body["tools"][0].update(name="n.ote")),
            Rule("schemas", REFERENCE, self._schemas, lambda a: a.body["tools"][0].update(input_schema={"anyOf": []})),
            Rule("calls answered", TOOLS, self._answered, lambda asked: asked.body["messages"][2]["content"].pop()),
            Rule("answers first", TOOLS, self._first_answers, _words_before_answers),
            Rule("thoughts returned", THINKING, self._thoughts, lambda a: a.body["messages"][1]["content"].pop(0)),
            Rule("thoughts unchanged", MODIFIED, self._unchanged, _change_thought),
            Rule(
                "budget",
                THINKING,
                self._budget,
                lambda a: a.body.update(thinking={"type": "enabled", "budget_tokens": 9999}),
            ),
            Rule("choice", THINKING, self._choice, _forced_choice),
        )

    def correct(self) -> Asked:
        ids = [f"{THOUGHT_WITH}{number():020d}" for _ in range(2)]
        uses = [
            {"type": "tool_use", "id": each, "name": "note", "input": {"number": place}}
            for place, each in enumerate(ids)
        ]
        answers = [{"type": "tool_result", "tool_use_id": each, "content": "noted"} for each in ids]
        messages = [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [_thought(), *uses]},
            {"role": "user", "content": answers},
        ]
        tools = [{"name": "note", "description": "Note.", "input_schema": deepcopy(NOTE)}]
        body = {"model": self.model, "max_tokens": 900, "system": "Note.", "messages": messages, "tools": tools}
        return Asked("/v1/messages", body, headers={"anthropic-version": "2023-06-01", "x-api-key": "key"})

    def hear(self, asked: Asked) -> Heard:
        body = asked.body
        blocks = [block for each in body["messages"] if each["role"] == "user" for block in _blocks(each["content"])]
        told = [*_blocks(body.get("system") or ""), *blocks]
        config = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        return Heard(
            "\n".join(block.get("text", "") or _text(block.get("content")) for block in told),
            sum(each["role"] == "assistant" for each in body["messages"]),
            sum(block["type"] == "tool_result" for block in blocks),
            {tool["name"]: tool.get("input_schema") for tool in body.get("tools") or ()},
            config.get("schema"),
        )

    def whole(self, turn: Turn, asked: Asked) -> Refusal:
        if turn.end == "broken":
            error = {"type": "overloaded_error", "message": "Overloaded"}
            return Refusal(529, {"type": "error", "error": error, "request_id": "req_1"})
        return Refusal(200, self._message(turn, asked, self._content(turn), self._end(turn)))

    def pieces(self, turn: Turn, asked: Asked) -> Iterator[bytes]:
        start = self._message(turn, asked, [], None)
        yield _told("message_start", message=start | {"usage": start["usage"] | {"output_tokens": 1}})
        for place, block in enumerate(self._content(turn)):
            yield _told("content_block_start", index=place, content_block=_begun(block))
            yield _told("ping")
            for delta in _deltas(block, turn, place):
                yield _told("content_block_delta", index=place, delta=delta)
                if turn.end == "broken":
                    yield _told("error", error={"type": "overloaded_error", "message": "Overloaded"})
                    return
            yield _told("content_block_stop", index=place)
        delta = {"stop_reason": self._end(turn), "stop_sequence": None}
        yield _told("message_delta", delta=delta, usage={"output_tokens": spent(turn, asked).written})
        yield _told("message_stop")

    def _content(self, turn: Turn) -> list[Fields]:
        ids = [f"{THOUGHT_WITH if turn.thought else 'toolu_01P'}{number():020d}" for _ in turn.calls]
        content: list[Fields] = [_thought()] if turn.thought else []
        content += [{"type": "text", "text": turn.text}] if turn.text and turn.end != "refusal" else []
        return content + [
            {"type": "tool_use", "id": each, "name": name, "input": _as_far(turn, place)}
            for place, (each, (name, _)) in enumerate(zip(ids, turn.calls, strict=True))
        ]

    def _message(self, turn: Turn, asked: Asked, content: list[Fields], end: str | None) -> Fields:
        tokens = spent(turn, asked)
        usage = {
            "input_tokens": tokens.read,
            "output_tokens": tokens.written,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        head = {"id": f"msg_{number()}", "type": "message", "role": "assistant", "model": self.model}
        return head | {"content": content, "stop_reason": end, "stop_sequence": None, "usage": usage}

    def _end(self, turn: Turn) -> str:
        if turn.calls and turn.end == "stop":
            return "tool_use"
        return {"length": "max_tokens", "refusal": "refusal"}.get(turn.end, "end_turn")

    def _path(self, asked: Asked) -> Refusal | None:
        error = {"type": "not_found_error", "message": "Not found"}
        return None if asked.path == "/v1/messages" else Refusal(404, {"type": "error", "error": error})

    def _version(self, asked: Asked) -> Refusal | None:
        return None if "anthropic-version" in asked.headers else refusal("anthropic-version: header is required")

    def _limit(self, asked: Asked) -> Refusal | None:
        return None if isinstance(asked.body.get("max_tokens"), int) else refusal("max_tokens: Field required")

    def _unknown(self, asked: Asked) -> Refusal | None:
        found = next(unknown(asked.body, FIELDS["anthropic.request"]), None)
        return refusal(f"{found}: Extra inputs are not permitted") if found else None

    def _roles(self, asked: Asked) -> Refusal | None:
        odd = {each["role"] for each in asked.body["messages"]} - {"user", "assistant"}
        said = f'messages: Unexpected role "{min(odd, default="")}". The Messages API accepts a top-level `system`'
        return refusal(f'{said} parameter, not "system" as an input message role.') if odd else None

    def _first(self, asked: Asked) -> Refusal | None:
        if asked.body["messages"][0]["role"] == "user" and asked.body["messages"][-1]["role"] == "user":
            return None
        return refusal('messages: first and last message must use the "user" role')

    def _empty(self, asked: Asked) -> Refusal | None:
        blocks = [block for message in asked.body["messages"] for block in _blocks(message["content"])]
        empty = [block for block in blocks if block["type"] == "text" and not block["text"].strip()]
        return refusal("messages: text content blocks must be non-empty") if empty else None

    def _names(self, asked: Asked) -> Refusal | None:
        for place, tool in enumerate(asked.body.get("tools") or ()):
            if not NAME.fullmatch(tool["name"]):
                said = f"tools.{place}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
                return refusal(said)
        return None

    def _schemas(self, asked: Asked) -> Refusal | None:
        for place, tool in enumerate(asked.body.get("tools") or ()):
            if {"oneOf", "allOf", "anyOf"} & tool["input_schema"].keys():
                said = "input_schema does not support oneOf, allOf, or anyOf at the top level"
                return refusal(f"tools.{place}.custom.{said}")
            if tool["input_schema"].get("type") != "object":
                return refusal(f"tools.{place}.custom.input_schema.type: Input should be 'object'")
        return None

    def _answered(self, asked: Asked) -> Refusal | None:
        messages = [*asked.body["messages"], {"role": "user", "content": ""}]
        for place, (each, after) in enumerate(itertools.pairwise(messages)):
            wanted = {block["id"] for block in _blocks(each["content"]) if block["type"] == "tool_use"}
            given = {block["tool_use_id"] for block in _blocks(after["content"]) if block["type"] == "tool_result"}
            if missing := wanted - given:
                said = "`tool_use` ids were found without `tool_result` blocks immediately after"
                return refusal(f"messages.{place}: {said}: {', '.join(sorted(missing))}.")
            if extra := given - wanted:
                said = "unexpected `tool_use_id` found in `tool_result` blocks"
                return refusal(f"messages.{place + 1}.content.0: {said}: {min(extra)}.")
        return None

    def _first_answers(self, asked: Asked) -> Refusal | None:
        for place, each in enumerate(asked.body["messages"]):
            kinds = [block["type"] for block in _blocks(each["content"])]
            if "tool_result" in kinds and kinds[0] != "tool_result":
                return refusal(f"messages.{place}: `tool_result` blocks must come first in the content")
        return None

    def _thoughts(self, asked: Asked) -> Refusal | None:
        for place, each in enumerate(asked.body["messages"]):
            blocks = _blocks(each["content"])
            thought_with = any(str(block.get("id", "")).startswith(THOUGHT_WITH) for block in blocks)
            if thought_with and blocks[0]["type"] not in {"thinking", "redacted_thinking"}:
                said = f"Expected `thinking` or `redacted_thinking`, but found `{blocks[0]['type']}`."
                return refusal(f"messages.{place}.content.0.type: {said}")
        return None

    def _unchanged(self, asked: Asked) -> Refusal | None:
        for place, each in enumerate(asked.body["messages"]):
            for block in _blocks(each["content"]):
                if block["type"] == "thinking" and block != _thought():
                    said = (
                        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
                    )
                    return refusal(f"messages.{place}.content.0: {said}")
        return None

    def _budget(self, asked: Asked) -> Refusal | None:
        budget = (asked.body.get("thinking") or {}).get("budget_tokens", 0)
        if budget < asked.body["max_tokens"]:
            return None
        return refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")

    def _choice(self, asked: Asked) -> Refusal | None:
        thinks = (asked.body.get("thinking") or {}).get("type", "disabled") != "disabled"
        forced = (asked.body.get("tool_choice") or {}).get("type", "auto") in {"any", "tool"}
        return refusal("Thinking may not be enabled when tool_choice forces tool use.") if thinks and forced else None


def _blocks(content: Any) -> list[Fields]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(block.get("text", "") for block in content or ())


def _thought() -> Fields:
    text = thought_of(["anthropic"])
    return {"type": "thinking", "thinking": text, "signature": signature(text)}


def _as_far(turn: Turn, place: int) -> Fields:
    """Return the input of a call as far as it was written: its last field is missing where the answer was cut."""
    given = turn.calls[place][1]
    is_cut = turn.end == "length" and place == len(turn.calls) - 1
    return dict([*given.items()][:-1]) if is_cut else given


def _told(kind: str, **data: Any) -> bytes:
    return event({"type": kind, **data}, kind)


def _begun(block: Fields) -> Fields:
    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
    return block | empty[block["type"]]


def _deltas(block: Fields, turn: Turn, place: int) -> Iterator[Fields]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": word} for word in turn.words())
        case "thinking":
            yield {"type": "thinking_delta", "thinking": block["thinking"]}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case _:
            before = bool(turn.thought) + bool(turn.text)
            text = turn.arguments(place - before)
            yield from (
                {"type": "input_json_delta", "partial_json": text[start : start + 9]}
                for start in range(0, len(text), 9)
            )


def _words_before_answers(asked: Asked) -> None:
    asked.body["messages"][2]["content"].insert(0, {"type": "text", "text": "Here:"})


def _change_thought(asked: Asked) -> None:
    asked.body["messages"][1]["content"][0]["thinking"] += "."


def _forced_choice(asked: Asked) -> None:
    asked.body.update(thinking={"type": "adaptive"}, tool_choice={"type": "any"})
