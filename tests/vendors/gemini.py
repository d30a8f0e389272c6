"""Gemini: its own `generateContent`, and its endpoint in OpenAI's form."""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.vendors.chat import NOTE, Chat, Fields, thought_of
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

SIGNATURES = "https://ai.google.dev/gemini-api/docs/thought-signatures"
REFERENCE = "https://ai.google.dev/api/generate-content"
FUNCTIONS = "https://ai.google.dev/gemini-api/docs/function-calling"
COMPATIBLE = "https://ai.google.dev/gemini-api/docs/openai"
NAMES = "https://github.com/cline/cline/issues/7339"
SCHEMAS = "https://github.com/Laisky/one-api/issues/60"
OVERLOADED = {"code": 503, "message": "The model is overloaded. Please try again later.", "status": "UNAVAILABLE"}
MISSING = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work"
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
SIGNED_CALL_ID = re.compile(r"function-call-\d+")


def signed(call_id: object) -> str:
    """Return a signature as JSON holds bytes."""
    return b64encode(signature(call_id).encode()).decode()


def _bytes(text: str) -> bytes:
    """Read bytes in either of the two alphabets, as Google's JSON does."""
    return b64decode(text.replace("-", "+").replace("_", "/") + "==")


def invalid(message: str) -> dict[str, Any]:
    """Return what is said of a request that is not valid."""
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


class GeminiCompatible(Chat):
    """Gemini 3 behind its endpoint in OpenAI's form."""

    name = "gemini-openai"
    title = "Gemini, OpenAI-compatible"
    base = "/v1beta/openai"
    model = "gemini-3-flash-preview"
    ids = "function-call-{}"
    thoughts_wanted = True
    stream_calls_end = "stop"
    arguments = "whole"
    index = "none"
    beside_calls = None
    refusals = ("filter",)
    ends: dict[str, str] = {"stop": "stop", "length": "length", "filter": "content_filter: SAFETY"}  # noqa: RUF012 - never changed

    def own_rules(self) -> tuple[Rule, ...]:
        said = 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'
        return (
            self.known_fields(COMPATIBLE, lambda name: self.error(400, said.format(name))),
            Rule("names", NAMES, self._names, lambda a: a.body["tools"][0]["function"].update(name="1.note")),
            Rule("signatures", SIGNATURES, self._signed, _unsigned),
            self.calls_answered(FUNCTIONS),
        )

    def error(self, status: int, message: str, *, code=None, param=None, kind="") -> Refusal:
        found = invalid(message)["error"] | {"code": status}
        return Refusal(status, [{"error": found | ({"status": kind} if kind else {})}])

    def broken(self) -> Iterator[bytes]:
        yield event([{"error": OVERLOADED}])

    def failed(self) -> Refusal:
        return Refusal(503, [{"error": OVERLOADED}])

    def whole(self, turn: Turn, asked: Asked) -> Refusal:
        found = super().whole(turn, asked)
        if turn.end == "filter":
            # https://github.com/openai/openai-agents-python/issues/744: nothing is left of the message
            found.body["choices"][0].pop("message")
        return found

    def beside_call(self, place: int, call_id: str) -> Fields:
        return {} if place else {"extra_content": {"google": {"thought_signature": signature(call_id)}}}

    def _names(self, asked: Asked) -> Refusal | None:
        names = [tool["function"]["name"] for tool in asked.body.get("tools") or ()]
        bad = [place for place, name in enumerate(names) if not NAME.fullmatch(name)]
        said = "GenerateContentRequest.tools[0].function_declarations[{}].name: Invalid function name."
        return self.error(400, said.format(bad[0])) if bad else None

    def _signed(self, asked: Asked) -> Refusal | None:
        messages = asked.body["messages"]
        turn = max((place for place, each in enumerate(messages) if each["role"] == "user"), default=0)
        for place, message in enumerate(messages[turn:]):
            for first in (message.get("tool_calls") or ())[:1]:
                wanted = self.beside_call(0, first["id"])
                if first.get("extra_content") != wanted["extra_content"]:
                    where = f" Additional data, function call `{first['function']['name']}` , position {place}."
                    return self.error(400, f"{MISSING} correctly.{where} Please refer to {SIGNATURES}")
        return None


def _unsigned(asked: Asked) -> None:
    asked.body["messages"][2]["tool_calls"][0].pop("extra_content")


class Gemini(Vendor):
    """Gemini 3 by its own API."""

    name = "gemini"
    title = "Gemini, `generateContent`"
    api = "gemini"
    base = ""
    model = "gemini-3-pro-preview"
    refusals = ("filter", "blocked")

    def __init__(self) -> None:
        self.rules = (
            Rule("path", REFERENCE, self._path, lambda asked: setattr(asked, "path", "/v1/chat/completions")),
            Rule("unknown field", REFERENCE, self._unknown, lambda asked: asked.body.update(maxTokens=9)),
            Rule("roles", REFERENCE, self._roles, lambda asked: asked.body["contents"][0].update(role="system")),
            Rule("empty", REFERENCE, self._empty, lambda asked: asked.body["contents"][0].update(parts=[])),
            Rule("names", NAMES, self._names, lambda asked: _function(asked).update(name="1 note")),
            Rule("schemas", SCHEMAS, self._schemas, lambda asked: _function(asked).update(parameters=deepcopy(NOTE))),
            Rule("calls answered", FUNCTIONS, self._answered, lambda asked: asked.body["contents"][2]["parts"].pop()),
            Rule("signatures", SIGNATURES, self._signed, _without_signature),
        )

    def correct(self) -> Asked:
        schema = {name: value for name, value in NOTE.items() if name != "additionalProperties"}
        first = number()
        calls = [
            {"functionCall": {"name": "note", "args": {"number": place}, "id": f"c{first}-{place}"}}
            for place in range(2)
        ]
        calls[0]["thoughtSignature"] = signed(f"c{first}-0")
        answers = [
            {"functionResponse": {"name": "note", "id": f"c{first}-{place}", "response": {"output": "noted"}}}
            for place in range(2)
        ]
        contents = [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": calls},
            {"role": "user", "parts": answers},
        ]
        body = {
            "contents": contents,
            "systemInstruction": {"parts": [{"text": "Note."}]},
            "tools": [{"functionDeclarations": [{"name": "note", "description": "Note.", "parameters": schema}]}],
            "generationConfig": {"maxOutputTokens": 900},
        }
        return Asked(f"/v1beta/models/{self.model}:generateContent", body)

    def hear(self, asked: Asked) -> Heard:
        body = asked.body
        system = body.get("systemInstruction") or {}
        parts = [*system.get("parts", ()), *(part for each in body["contents"] for part in each.get("parts", ()))]
        told = "\n".join(part.get("text", "") or str(part.get("functionResponse", "")) for part in parts)
        config = body.get("generationConfig") or {}
        return Heard(
            told,
            sum(each.get("role") == "model" for each in body["contents"]),
            sum("functionResponse" in part for part in parts),
            {each["name"]: each.get("parametersJsonSchema") or each.get("parameters") for each in _functions(asked)},
            config.get("responseJsonSchema") or config.get("responseSchema"),
        )

    def blocked(self) -> Refusal:
        counted = {"promptTokenCount": 9, "totalTokenCount": 9}
        return Refusal(200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": counted})

    def whole(self, turn: Turn, asked: Asked) -> Refusal:
        if turn.end == "broken":
            return Refusal(503, {"error": OVERLOADED})
        return Refusal(200, self._answer(self._parts(turn), self._end(turn), turn, asked))

    def pieces(self, turn: Turn, asked: Asked) -> Iterator[bytes]:
        parts = [part for part in self._parts(turn) if "text" not in part or part.get("thought")]
        for part in [*({"text": word} for word in turn.words()), *parts]:
            yield event(self._answer([part], None, turn, asked))
            if turn.end == "broken":
                yield event({"error": OVERLOADED})
                return
        yield event(self._answer([{"text": ""}], self._end(turn), turn, asked))

    def _parts(self, turn: Turn) -> list[Fields]:
        parts: list[Fields] = [{"text": thought_of(["gemini"]), "thought": True}] if turn.thought else []
        parts += [{"text": turn.text}] if turn.text and turn.end != "filter" else []
        for place, (name, arguments) in enumerate(turn.calls):
            call_id = f"c{number()}-{place}"
            call: Fields = {"functionCall": {"name": name, "args": arguments, "id": call_id}}
            parts.append(call if place else call | {"thoughtSignature": signed(call_id)})
        return parts

    def _answer(self, parts: list[Fields], end: str | None, turn: Turn, asked: Asked) -> Fields:
        tokens = spent(turn, asked)
        counted = {
            "promptTokenCount": tokens.read,
            "candidatesTokenCount": tokens.written - tokens.thought,
            "thoughtsTokenCount": tokens.thought,
            "totalTokenCount": tokens.read + tokens.written,
        }
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0} | ({"finishReason": end} if end else {})
        return {"candidates": [candidate], "usageMetadata": counted, "modelVersion": self.model, "responseId": "r"}

    def _end(self, turn: Turn) -> str:
        return {"length": "MAX_TOKENS", "filter": "SAFETY"}.get(turn.end, "STOP")

    def _path(self, asked: Asked) -> Refusal | None:
        if re.fullmatch(r"/v1beta/models/[\w.-]+:(generateContent|streamGenerateContent)", asked.path):
            return None
        return Refusal(
            404, {"error": {"code": 404, "message": "Requested entity was not found.", "status": "NOT_FOUND"}}
        )

    def _unknown(self, asked: Asked) -> Refusal | None:
        places = {"": asked.body, "generation_config": asked.body.get("generationConfig") or {}}
        for place, fields in places.items():
            for name in unknown(fields, FIELDS["gemini." + (place or "request")]):
                where = f" at '{place}'" if place else ""
                return Refusal(
                    400, invalid(f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')
                )
        return None

    def _roles(self, asked: Asked) -> Refusal | None:
        odd = {each.get("role", "user") for each in asked.body["contents"]} - {"user", "model"}
        return Refusal(400, invalid("Please use a valid role: user, model.")) if odd else None

    def _empty(self, asked: Asked) -> Refusal | None:
        if asked.body["contents"] and all(each.get("parts") for each in asked.body["contents"]):
            return None
        return Refusal(400, invalid("* GenerateContentRequest.contents[0].parts: contents.parts must not be empty."))

    def _names(self, asked: Asked) -> Refusal | None:
        bad = [place for place, each in enumerate(_functions(asked)) if not NAME.fullmatch(each["name"])]
        said = "* GenerateContentRequest.tools[0].function_declarations[{}].name: Invalid function name."
        return Refusal(400, invalid(said.format(bad[0]))) if bad else None

    def _schemas(self, asked: Asked) -> Refusal | None:
        for place, each in enumerate(_functions(asked)):
            if found := next(_foreign(each.get("parameters") or {}), None):
                where = f"tools[0].function_declarations[{place}].parameters"
                said = f"Invalid JSON payload received. Unknown name \"{found}\" at '{where}': Cannot find field."
                return Refusal(400, invalid(said))
        return None

    def _answered(self, asked: Asked) -> Refusal | None:
        contents = asked.body["contents"]
        for place, each in enumerate(contents):
            calls = sum("functionCall" in part for part in each["parts"])
            after = contents[place + 1]["parts"] if place + 1 < len(contents) else []
            if calls and calls != sum("functionResponse" in part for part in after):
                said = "the number of function response parts is equal to the number of function call parts"
                return Refusal(400, invalid(f"Please ensure that {said} of the function call turn."))
        return None

    def _signed(self, asked: Asked) -> Refusal | None:
        contents = asked.body["contents"]
        said = [place for place, each in enumerate(contents) if any("text" in part for part in each["parts"])]
        people = [place for place in said if contents[place].get("role", "user") == "user"]
        for place in range(max(people, default=0), len(contents)):
            for first in [part for part in contents[place]["parts"] if "functionCall" in part][:1]:
                if _bytes(first.get("thoughtSignature", "")) != _bytes(signed(first["functionCall"].get("id"))):
                    where = f" Additional data, function call `{first['functionCall']['name']}` , position {place}."
                    return Refusal(400, invalid(f"{MISSING} correctly.{where} Please refer to {SIGNATURES}"))
        return None


def _functions(asked: Asked) -> list[Fields]:
    return [each for tool in asked.body.get("tools") or () for each in tool.get("functionDeclarations") or ()]


def _function(asked: Asked) -> Fields:
    return _functions(asked)[0]


def _foreign(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from unknown(schema, FIELDS["gemini.schema"])
        for each in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), schema.get("items")):
            yield from _foreign(each)


def _without_signature(asked: Asked) -> None:
    asked.body["contents"][1]["parts"][0].pop("thoughtSignature")
