"""Mistral, DeepSeek, Kimi, Groq and OpenRouter: Chat Completions with rules of their own."""

import itertools
import re
from collections.abc import Iterator

from tests.vendors.chat import Chat, Fields, thought_of
from tests.vendors.wire import Asked, Refusal, Rule, Turn, event, signature

MISTRAL_REFERENCE = "https://docs.mistral.ai/api/"
MISTRAL_FIELDS = "https://github.com/editor-code-assistant/eca/issues/231"
MISTRAL_MESSAGES = "https://github.com/charmbracelet/crush/issues/1590"
MISTRAL_STREAMS = "https://github.com/dnakov/anon-kode/issues/53"
MISTRAL_IDS = "https://github.com/karthink/gptel/issues/1203"
MISTRAL_ORDER = "https://github.com/datapizza-labs/datapizza-ai/issues/98"
DEEPSEEK_THINKING = "https://api-docs.deepseek.com/guides/thinking_mode"
DEEPSEEK_REFERENCE = "https://api-docs.deepseek.com/api/create-chat-completion"
DEEPSEEK_ERRORS = "https://api-docs.deepseek.com/quick_start/error_codes"
KIMI_THINKING = "https://platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model"
KIMI_EMPTY = "https://github.com/MoonshotAI/kimi-code/issues/1985"
KIMI_TEMPERATURE = "https://github.com/HKUDS/nanobot/pull/202"
KIMI_REFERENCE = "https://platform.moonshot.cn/docs/api/chat"
GROQ_FIELDS = "https://github.com/fanenr/chatbot/issues/21"
GROQ_MESSAGES = "https://github.com/janhq/jan/issues/8136"
GROQ_REASONING = "https://console.groq.com/docs/reasoning"
GROQ_REFERENCE = "https://console.groq.com/docs/api-reference#chat-create"
OPENROUTER_REASONING = "https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks"
OPENROUTER_STREAMS = "https://openrouter.ai/docs/api/reference/streaming"


class Mistral(Chat):
    """Mistral, with a model that shows its thoughts as parts of the content."""

    name = "mistral"
    title = "Mistral"
    model = "magistral-medium-latest"
    limit = "max_tokens"
    ids = "{:09d}"
    usage = "last"
    arguments = "whole"
    beside_calls = ""

    def own_rules(self) -> tuple[Rule, ...]:
        def extra(*place: str | int) -> Refusal:
            detail = {"type": "extra_forbidden", "loc": ["body", *place], "msg": "Extra inputs are not permitted"}
            said = {"detail": [detail | {"input": None}]}
            error = {"object": "error", "message": said, "type": "invalid_request_error", "param": None, "code": None}
            return Refusal(422, error)

        return (
            self.known_fields(MISTRAL_FIELDS, extra),
            self.known_message_fields(MISTRAL_MESSAGES, lambda place, role, name: extra("messages", place, role, name)),
            Rule("ids", MISTRAL_IDS, self._ids, _long_id),
            Rule("order", MISTRAL_ORDER, self._order, _user_last),
            self.calls_answered(MISTRAL_REFERENCE),
        )

    def error(self, status: int, message: str, *, code=None, param=None, kind="") -> Refusal:
        kind = kind or "invalid_request_error"
        return Refusal(status, {"object": "error", "message": message, "type": kind, "param": param, "code": code})

    def broken(self) -> Iterator[bytes]:
        yield event(self.failed().body)

    def failed(self) -> Refusal:
        return self.error(500, "Internal server error", kind="internal_server_error", code="1000")

    def formed(self, message: Fields, turn: Turn) -> Fields:
        if not turn.thought:
            return message
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thought_of(["mistral"])}]}]
        return message | {"content": [*parts, *([{"type": "text", "text": turn.text}] if turn.text else [])]}

    def thought_deltas(self, ids: list[str]) -> Iterator[Fields]:
        yield {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": thought_of(["mistral"])}]}]}

    def _ids(self, asked: Asked) -> Refusal | None:
        for message in asked.body["messages"]:
            ids = [call["id"] for call in message.get("tool_calls") or ()] + [message.get("tool_call_id", "a" * 9)]
            for each in ids:
                if not re.fullmatch(r"[a-zA-Z0-9]{9}", each):
                    said = f"Tool call id was {each} but must be a-z, A-Z, 0-9, with a length of 9."
                    return self.error(400, said, kind="invalid_function_call", code="3280")
        return None

    def _order(self, asked: Asked) -> Refusal | None:
        roles = [message["role"] for message in asked.body["messages"]]
        for before, role in itertools.pairwise(roles):
            if before == "tool" and role in {"user", "system"}:
                said = f"Unexpected role '{role}' after role '{before}'"
                return self.error(400, said, kind="invalid_request_message_order", code="3230")
        if roles[-1] == "assistant":
            said = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
            return self.error(400, said, kind="invalid_request_message_order", code="3230")
        return None


def _long_id(asked: Asked) -> None:
    asked.body["messages"][2]["tool_calls"][0]["id"] = "call_12345"


def _user_last(asked: Asked) -> None:
    asked.body["messages"].append({"role": "user", "content": "And?"})


class DeepSeek(Chat):
    """DeepSeek, which thinks unless it is told not to."""

    name = "deepseek"
    title = "DeepSeek"
    model = "deepseek-v4-pro"
    limit = "max_tokens"
    ids = "call_00_{:024d}"
    thoughts = "reasoning_content"
    thoughts_wanted = True
    beside_calls = ""
    refusals = ("filter", "blocked")

    def own_rules(self) -> tuple[Rule, ...]:
        said = "The reasoning_content in the thinking mode must be passed back to the API."
        code = "invalid_request_error"
        return (
            self.thoughts_returned(DEEPSEEK_THINKING, lambda _: self.error(400, said, code=code)),
            Rule(
                "typed output",
                DEEPSEEK_REFERENCE,
                self._format,
                lambda asked: asked.body.update(response_format={"type": "json_schema"}),
            ),
            self.calls_answered(DEEPSEEK_REFERENCE),
        )

    def blocked(self) -> Refusal:
        return self.error(400, "Content Exists Risk", code="invalid_request_error")

    def broken(self) -> Iterator[bytes]:
        head = self._head("chat.completion.chunk")
        end = {"index": 0, "delta": {"content": ""}, "finish_reason": "insufficient_system_resource"}
        yield event(head | {"choices": [end]})
        yield event("[DONE]")

    def _format(self, asked: Asked) -> Refusal | None:
        wanted = (asked.body.get("response_format") or {}).get("type", "text")
        if wanted == "json_object" and "json" not in str(asked.body["messages"]).lower():
            return self.error(400, "Prompt must contain the word 'json' in some form to use 'response_format'.")
        if wanted in {"text", "json_object"}:
            return None
        return self.error(400, "This response_format type is unavailable now", code="invalid_request_error")


class Kimi(Chat):
    """Kimi (Moonshot), which wants its thoughts back too, and no message without words."""

    name = "kimi"
    title = "Kimi (Moonshot)"
    model = "kimi-k2.6"
    limit = "max_tokens"
    ids = "functions.note:{}"
    thoughts = "reasoning_content"
    thoughts_wanted = True
    usage = "choice"
    beside_calls = ""
    refusals = ("filter", "blocked")

    def own_rules(self) -> tuple[Rule, ...]:
        missing = "thinking is enabled but reasoning_content is missing in assistant tool call message at index"
        return (
            self.thoughts_returned(KIMI_THINKING, lambda place: self.error(400, f"{missing} {place}")),
            Rule("empty", KIMI_EMPTY, self._empty, _empty_answer),
            Rule("temperature", KIMI_TEMPERATURE, self._temperature, lambda a: a.body.update(temperature=0.2)),
            self.calls_answered(KIMI_REFERENCE),
        )

    def blocked(self) -> Refusal:
        return self.error(400, "The request was rejected because it was considered high risk", kind="content_filter")

    def _empty(self, asked: Asked) -> Refusal | None:
        for place, message in enumerate(asked.body["messages"]):
            if message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls"):
                said = f"Invalid request: the message at position {place} with role 'assistant' must not be empty"
                return self.error(400, said)
        return None

    def _temperature(self, asked: Asked) -> Refusal | None:
        if asked.body.get("temperature", 1) == 1:
            return None
        return self.error(400, "invalid temperature: only 1 is allowed for this model")


def _empty_answer(asked: Asked) -> None:
    asked.body["messages"] += [{"role": "assistant", "content": ""}, {"role": "user", "content": "And?"}]


class Groq(Chat):
    """Groq, which knows its own fields only."""

    name = "groq"
    title = "Groq"
    model = "openai/gpt-oss-120b"
    ids = "fc_{:012d}"
    thoughts = "reasoning"
    usage = "aside"
    arguments = "whole"

    def own_rules(self) -> tuple[Rule, ...]:
        return (
            self.known_fields(GROQ_FIELDS, lambda name: self.error(400, f"property '{name}' is unsupported")),
            self.known_message_fields(GROQ_MESSAGES, self._message_field),
            self.calls_answered(GROQ_REFERENCE),
        )

    def error(self, status: int, message: str, *, code=None, param=None, kind="") -> Refusal:
        error = {"message": message, "type": kind or "invalid_request_error"}
        return Refusal(status, {"error": error | ({"code": code} if code else {})})

    def broken(self) -> Iterator[bytes]:
        said = "Tool choice is auto, but the model wrote a call that cannot be read."
        error = {"message": said, "type": "invalid_request_error", "code": "tool_use_failed", "status_code": 400}
        yield event({"error": error | {"failed_generation": "<function=note{"}}, "error")

    def _message_field(self, place: int, role: str, name: str) -> Refusal:
        inner = f"('messages.{place}' : property '{name}' is unsupported)"
        said = f"'messages.{place}' : for 'role:{role}' the following must be satisfied[{inner}]"
        return self.error(400, said)


class OpenRouter(Chat):
    """OpenRouter, before a model that wants its encrypted thoughts back."""

    name = "openrouter"
    title = "OpenRouter"
    base = "/api/v1"
    model = "google/gemini-3-pro-preview"
    ids = "tool_0_note_{:012d}"
    thoughts = "reasoning_details"
    thoughts_wanted = True
    refusals = ("refusal", "filter", "blocked")
    refuses = True

    def own_rules(self) -> tuple[Rule, ...]:
        return (self.thoughts_returned(OPENROUTER_REASONING, self._missing), self.calls_answered())

    def error(self, status: int, message: str, *, code=None, param=None, kind="") -> Refusal:
        return Refusal(status, {"error": {"message": message, "code": code or status}, "user_id": "user_1"})

    def blocked(self) -> Refusal:
        metadata = {"reasons": ["violence"], "flagged_input": "Go.", "provider_name": "OpenAI"}
        said = "Your chosen model requires moderation and your input was flagged."
        return Refusal(403, {"error": {"code": 403, "message": said, "metadata": metadata}})

    def beside_message(self, ids: list[str]) -> Fields:
        detail = {"type": "reasoning.encrypted", "format": "google-gemini-v1", "index": 0, "data": signature(*ids)}
        return {"reasoning_details": [detail]}

    def thought_deltas(self, ids: list[str]) -> Iterator[Fields]:
        yield self.beside_message(ids)

    def pieces(self, turn: Turn, asked: Asked) -> Iterator[bytes]:
        yield b": OPENROUTER PROCESSING\n\n"
        yield from super().pieces(turn, asked)

    def broken(self) -> Iterator[bytes]:
        error = {"code": "server_error", "message": "Provider disconnected"}
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        yield event(self._head("chat.completion.chunk") | {"provider": "Google", "error": error, "choices": [choice]})

    def failed(self) -> Refusal:
        return Refusal(200, {"error": {"message": "Provider returned error", "code": 502}, "user_id": "user_1"})

    def _missing(self, place: int) -> Refusal:
        said = f"Function call is missing a thought_signature in functionCall parts, position {place}."
        raw = f'{{"error": {{"code": 400, "message": "{said}", "status": "INVALID_ARGUMENT"}}}}'
        error = {"message": "Provider returned error", "code": 400}
        return Refusal(400, {"error": error | {"metadata": {"raw": raw, "provider_name": "Google"}}})
