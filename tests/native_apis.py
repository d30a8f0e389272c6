"""Small strict endpoints of the native APIs: they refuse what the vendors' references say is refused.

An endpoint answers by a script: what a turn says, calls and thinks. What it signs must come back unchanged beside the
calls that it belongs to, each call has its answer at once, and keys stand where the API looks for them.
"""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.serving import served

KEY = "key-of-the-native-endpoint"
MODELS = {"responses": "gpt-5.4-mini", "anthropic": "claude-sonnet-4-6", "gemini": "gemini-3.1-pro-preview"}
USED = {"prompt": 1000, "cached": 640, "written": 100, "output": 200, "reasoning": 150}


@dataclass(frozen=True)
class Says:
    """One answer of an endpoint."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    thought: str = ""
    end: str = ""
    """How it ends, in the vendor's words; empty for the usual ones."""
    status: int = 200
    body: Any = None
    """What stands in place of an answer."""
    headers: dict[str, str] = field(default_factory=dict)
    used: dict[str, int] | None = field(default_factory=lambda: dict(USED))
    after: int | None = None
    """A stream is cut off after so many events."""
    held: asyncio.Event | None = None
    """The last event of a stream waits for this."""
    then: Any = None
    """The last event of a stream that was cut off."""


class Refused(Exception):
    """The request is not as the API wants it."""


def need(holds: object, why: str) -> None:
    if not holds:
        raise Refused(why)


@dataclass
class Vendor:
    """An endpoint of one API."""

    api: str
    script: Callable[[int, dict[str, Any]], Says]
    """Tells the answer to a request by how many answers of tools it holds, and its body."""
    key: str | None = KEY
    requests: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    streamed: int = 0
    signed: dict[str, Any] = field(default_factory=dict)
    """What must come back, by the call that it stands beside."""
    turn: int = 0
    address: str = ""

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1beta" if self.api == "gemini" else f"{self.address}/v1"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Vendor"]:
        routes = [
            Route("/v1/responses", self._asked, methods=["POST"]),
            Route("/v1/messages", self._asked, methods=["POST"]),
            Route("/v1beta/models/{call:path}", self._asked, methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/v1beta/models", self._models),
        ]
        async with served(Starlette(routes=routes)) as address:
            self.address = address
            yield self

    async def _models(self, request: Request) -> Response:
        try:
            self._authorized(request)
        except Refused as why:
            return self._error(401, str(why))
        if self.api == "gemini":
            return JSONResponse({"models": [{"name": f"models/{MODELS['gemini']}"}]})
        return JSONResponse({"data": [{"id": MODELS[self.api], "type": "model"}]})

    def _authorized(self, request: Request) -> None:
        names = {"responses": "authorization", "anthropic": "x-api-key", "gemini": "x-goog-api-key"}
        sent = {name: value for name in names.values() if (value := request.headers.get(name)) is not None}
        name = names[self.api]
        bearer = "Bearer " if name == "authorization" else ""
        need(sent == ({} if self.key is None else {name: f"{bearer}{self.key}"}), "invalid x-api-key")
        need(self.api != "anthropic" or request.headers.get("anthropic-version"), "anthropic-version: required")

    async def _asked(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.requests.append(body)
        try:
            self._authorized(request)
        except Refused as why:
            return self._error(401, str(why))
        try:
            answered = {"responses": self._responses, "anthropic": self._anthropic, "gemini": self._gemini}[self.api](
                body
            )
        except Refused as why:
            self.refused.append(str(why))
            return self._error(400, str(why))
        says = self.script(answered, body)
        if says.body is not None or says.status != 200:
            if isinstance(says.body, str):
                return Response(says.body, says.status, says.headers, "text/html")
            return JSONResponse(says.body, says.status, says.headers)
        self.turn += 1
        streams = body.get("stream") is True or "streamGenerateContent" in request.url.path
        render = {"responses": self._say_responses, "anthropic": self._say_anthropic, "gemini": self._say_gemini}
        whole, events = render[self.api](says)
        if not streams:
            return JSONResponse(whole, headers=says.headers)
        self.streamed += 1
        if says.after is not None:
            events = [*events[: says.after], *([says.then] if says.then is not None else [])]
        return StreamingResponse(self._events(events, says.held), headers=says.headers, media_type="text/event-stream")

    async def _events(self, events: list[dict[str, Any]], held: asyncio.Event | None) -> AsyncIterator[bytes]:
        for place, event in enumerate(events, 1):
            if held is not None and place == len(events):
                await asyncio.wait_for(held.wait(), 60)
            name = f"event: {event['type']}\n" if "type" in event else ""
            yield f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()

    def _error(self, status: int, why: str) -> Response:
        if self.api == "gemini":
            return JSONResponse({"error": {"code": status, "message": why, "status": "INVALID_ARGUMENT"}}, status)
        kind = "invalid_request_error"
        if self.api == "anthropic":
            return JSONResponse({"type": "error", "error": {"type": kind, "message": why}}, status)
        return JSONResponse({"error": {"message": why, "type": kind, "param": None, "code": None}}, status)

    # https://platform.openai.com/docs/guides/reasoning: reasoning items stand before the calls that they led to
    def _responses(self, body: dict[str, Any]) -> int:
        need(body.get("store") is False, "store: must be false, as nothing is kept for this organization")
        need(body.get("max_output_tokens", 16) >= 16, "max_output_tokens: below the minimum value 16")
        need(body["model"] == MODELS["responses"], f"The requested model '{body['model']}' does not exist.")
        self._tools([(tool["name"], tool["parameters"]) for tool in body.get("tools", ())])
        items = body["input"]
        made = [item["call_id"] for item in items if item.get("type") == "function_call"]
        answered = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
        need(sorted(made) == sorted(answered), "No tool output found for function call")
        for place, item in enumerate(items):
            if item.get("type") == "function_call" and (signed := self.signed.get(item["call_id"])) is not None:
                need(signed in items[:place], f"function_call {item['call_id']} without its required reasoning item")
            if item.get("type") == "reasoning":
                need(items[place + 1 :], f"Item '{item['id']}' of type 'reasoning' without its following item")
        return len(answered)

    def _say_responses(self, says: Says) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        output: list[dict[str, Any]] = []
        reasoning = {
            "type": "reasoning",
            "id": f"rs_{self.turn}",
            "summary": [{"type": "summary_text", "text": says.thought}],
            "encrypted_content": f"enc-{self.turn}",
        }
        output += [reasoning] if says.thought else []
        refusal = says.end == "refusal"
        if says.text:
            part = {"type": "output_text", "text": says.text, "annotations": []}
            part = {"type": "refusal", "refusal": says.text} if refusal else part
            output.append(
                {
                    "type": "message",
                    "id": f"msg_{self.turn}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        for index, (name, arguments) in enumerate(says.calls):
            call = f"call_r{self.turn}_{index}"
            if says.thought:
                self.signed[call] = reasoning
            given = json.dumps(arguments)
            output.append(
                {"type": "function_call", "id": f"fc_{self.turn}_{index}", "call_id": call, "name": name}
                | {"arguments": given, "status": "completed"}
            )
        cut = says.end if says.end not in {"", "refusal"} else ""
        usage = says.used and {
            "input_tokens": says.used["prompt"],
            "input_tokens_details": {"cached_tokens": says.used["cached"], "cache_write_tokens": says.used["written"]},
            "output_tokens": says.used["output"],
            "output_tokens_details": {"reasoning_tokens": says.used["reasoning"]},
            "total_tokens": says.used["prompt"] + says.used["output"],
        }
        whole = {
            "id": f"resp_{self.turn}",
            "object": "response",
            "created_at": 1,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": cut} if cut else None,
            "model": MODELS["responses"],
            "error": None,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage,
        }
        begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
        for place, item in enumerate(output):
            at = {"output_index": place}
            empty = {**item, "summary": []} if item["type"] == "reasoning" else {**item, "content": []}
            if item["type"] == "function_call":
                empty = {**item, "arguments": ""}
            events.append({"type": "response.output_item.added", "item": empty, **at})
            match item["type"]:
                case "reasoning":
                    where = {**at, "item_id": item["id"], "summary_index": 0}
                    events += [
                        {"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}}
                        | where,
                        {"type": "response.reasoning_summary_text.delta", "delta": says.thought} | where,
                        {"type": "response.reasoning_summary_text.done", "text": says.thought} | where,
                    ]
                case "message":
                    where = {**at, "item_id": item["id"], "content_index": 0}
                    kind = "refusal" if refusal else "output_text"
                    blank = (
                        {"type": "refusal", "refusal": ""} if refusal else {"type": kind, "text": "", "annotations": []}
                    )
                    events.append({"type": "response.content_part.added", "part": blank} | where)
                    events += [
                        {"type": f"response.{kind}.delta", "delta": piece, "logprobs": []} | where
                        for piece in re.findall(r"\S+\s*", says.text)
                    ]
                    done = {"refusal": says.text} if refusal else {"text": says.text, "logprobs": []}
                    events.append({"type": f"response.{kind}.done"} | done | where)
                case _:
                    where = {**at, "item_id": item["id"]}
                    events += [
                        {"type": "response.function_call_arguments.delta", "delta": piece} | where
                        for piece in re.findall(r".{1,7}", item["arguments"], re.DOTALL)
                    ]
                    events.append(
                        {
                            "type": "response.function_call_arguments.done",
                            "arguments": item["arguments"],
                            "name": item["name"],
                        }
                        | where
                    )
            events.append({"type": "response.output_item.done", "item": item, **at})
        events.append({"type": "response.incomplete" if cut else "response.completed", "response": whole})
        return whole, [{**event, "sequence_number": number} for number, event in enumerate(events)]

    # https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking and /tool-use
    def _anthropic(self, body: dict[str, Any]) -> int:
        need(body.get("max_tokens", 0) >= 1, "max_tokens: Field required")
        need(body["model"] == MODELS["anthropic"], f"model: {body['model']} was not found")
        self._tools([(tool["name"], tool["input_schema"]) for tool in body.get("tools", ())])
        known = {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "output_config"}
        need(body.keys() <= known, f"{sorted(body.keys() - known)}: Extra inputs are not permitted")
        messages = body["messages"]
        need(messages[0]["role"] == "user", "messages: first message must use the user role")
        answered = 0
        for place, message in enumerate(messages):
            blocks = (
                message["content"]
                if isinstance(message["content"], list)
                else [{"type": "text", "text": message["content"]}]
            )
            need(
                all(block.get("text", "x").strip() for block in blocks),
                "messages: text content blocks must be non-empty",
            )
            calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            need(
                all(re.fullmatch(r"[a-zA-Z0-9_-]+", call) for call in calls), "tool_use.id: String should match pattern"
            )
            if message["role"] == "assistant":
                signed = [signed for call in calls if (signed := self.signed.get(call)) is not None]
                thoughts = [block for block in blocks if "thinking" in block["type"]]
                need(not signed or thoughts == signed[0], "thinking blocks cannot be modified")
                need(not calls or place + 1 < len(messages), "tool_use ids without tool_result blocks")
            if calls:
                after = messages[place + 1]["content"]
                results = [block["tool_use_id"] for block in after[: len(calls)] if block["type"] == "tool_result"]
                need(
                    sorted(results) == sorted(calls),
                    "tool_use ids were found without tool_result blocks immediately after",
                )
                answered += len(calls)
        return answered

    def _say_anthropic(self, says: Says) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        thoughts: list[dict[str, Any]] = []
        if says.thought:
            thoughts = [
                {"type": "thinking", "thinking": says.thought, "signature": f"sig-{self.turn}=="},
                {"type": "redacted_thinking", "data": f"red-{self.turn}=="},
            ]
        content = [*thoughts, *([{"type": "text", "text": says.text}] if says.text else [])]
        for index, (name, arguments) in enumerate(says.calls):
            call = f"toolu_{self.turn}_{index}"
            if thoughts:
                self.signed[call] = thoughts
            content.append({"type": "tool_use", "id": call, "name": name, "input": arguments})
        end = says.end or ("tool_use" if says.calls else "end_turn")
        new = says.used and {
            "input_tokens": says.used["prompt"] - says.used["cached"] - says.used["written"],
            "cache_read_input_tokens": says.used["cached"],
            "cache_creation_input_tokens": says.used["written"],
        }
        used = new and {**new, "output_tokens": says.used["output"]}
        whole: dict[str, Any] = {
            "id": f"msg_{self.turn}",
            "type": "message",
            "role": "assistant",
            "model": MODELS["anthropic"],
            "content": content,
            "stop_reason": end,
            "stop_sequence": None,
        } | ({"usage": used} if used else {})
        begun = {**whole, "content": [], "stop_reason": None} | ({"usage": {**new, "output_tokens": 1}} if new else {})
        events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
        for index, block in enumerate(content):
            empties = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}
            events.append(
                {
                    "type": "content_block_start",
                    "index": index,
                    "content_block": {**block, **empties.get(block["type"], {})},
                }
            )
            deltas: list[dict[str, Any]] = []
            match block["type"]:
                case "thinking":
                    deltas = [
                        {"type": "thinking_delta", "thinking": block["thinking"]},
                        {"type": "signature_delta", "signature": block["signature"]},
                    ]
                case "text":
                    deltas = [{"type": "text_delta", "text": piece} for piece in re.findall(r"\S+\s*", block["text"])]
                case "tool_use":
                    given = json.dumps(block["input"])
                    pieces = re.findall(r".{1,7}", given, re.DOTALL)
                    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        events.append(
            {"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": None}}
            | ({"usage": {"output_tokens": says.used["output"]}} if says.used else {})
        )
        return whole, [*events, {"type": "message_stop"}]

    # https://ai.google.dev/gemini-api/docs/thought-signatures and /function-calling
    def _gemini(self, body: dict[str, Any]) -> int:
        need(body["generationConfig"].get("maxOutputTokens", 0) >= 1, "max_output_tokens must be positive")
        declared = [each for tool in body.get("tools", ()) for each in tool["functionDeclarations"]]
        self._tools(
            [(each["name"], each.get("parameters_json_schema", each.get("parametersJsonSchema"))) for each in declared]
        )
        contents, answered = body["contents"], 0
        issued = {call: list(found) for call, found in self.signed.get(_begun(body), {}).items()}
        need(contents[0]["role"] == "user", "contents must begin with a user turn")
        for place, content in enumerate(contents):
            calls = [part for part in content["parts"] if "functionCall" in part]
            if not calls:
                continue
            made = [(part["functionCall"]["name"], part["functionCall"].get("id")) for part in calls]
            after = contents[place + 1]["parts"] if place + 1 < len(contents) else []
            results = [part["functionResponse"] for part in after if "functionResponse" in part]
            told = [(result["name"], result.get("id")) for result in results]
            need(told == made, "the number of function response parts is not equal to that of the function call parts")
            first = calls[0]
            signature = first.get("thoughtSignature")
            known = issued.get(_called(first["functionCall"]))
            skipped = base64.b64encode(b"skip_thought_signature_validator").decode()
            need(
                signature == (known.pop(0) if known else skipped),
                "Function call is missing a thought_signature in functionCall parts",
            )
            answered += len(results)
        return answered

    def _say_gemini(self, says: Says) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        parts: list[dict[str, Any]] = [{"text": says.thought, "thought": True}] if says.thought else []
        for index, (name, arguments) in enumerate(says.calls):
            part: dict[str, Any] = {"functionCall": {"name": name, "args": arguments}}
            if index == 0 and says.thought:
                part["thoughtSignature"] = base64.b64encode(f"sig-{self.turn}".encode()).decode()
                own = self.signed.setdefault(_begun(self.requests[-1]), {})
                own.setdefault(_called(part["functionCall"]), []).append(part["thoughtSignature"])
            parts.append(part)
        words = re.findall(r"\S+\s*", says.text)
        at = 1 if says.thought else 0
        used = says.used and {
            "promptTokenCount": says.used["prompt"],
            "cachedContentTokenCount": says.used["cached"],
            "candidatesTokenCount": says.used["output"] - says.used["reasoning"],
            "thoughtsTokenCount": says.used["reasoning"],
        }
        more = {"modelVersion": MODELS["gemini"], "responseId": f"r{self.turn}"} | (
            {"usageMetadata": used} if used else {}
        )
        end = says.end or "STOP"
        if end == "blocked":
            blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **more}
            return blocked, [blocked]

        def candidate(*given: dict[str, Any], **ended: str) -> dict[str, Any]:
            return {"candidates": [{"content": {"role": "model", "parts": list(given)}, "index": 0, **ended}], **more}

        text = [{"text": says.text}] if says.text else []
        whole = candidate(*parts[:at], *text, *parts[at:], finishReason=end)
        pieces = [*parts[:at], *({"text": word} for word in words), *parts[at:]]
        return whole, [*(candidate(piece) for piece in pieces), candidate({"text": ""}, finishReason=end)]

    def _tools(self, tools: list[tuple[str, Any]]) -> None:
        for name, schema in tools:
            need(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name), f"tools: {name}: String should match pattern")
            need(
                isinstance(schema, dict) and schema.get("type") == "object",
                f"tools: {name}: input_schema must be an object",
            )


def _called(call: dict[str, Any]) -> str:
    """By what a call is known again that has no id."""
    return f"{call['name']} {json.dumps(call['args'], sort_keys=True)}"


def _begun(body: dict[str, Any]) -> str:
    """By what a conversation is known again."""
    return json.dumps(body["contents"][0]["parts"][0])
