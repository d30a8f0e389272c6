"""OpenAI's Responses."""

import itertools
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.vendors.chat import NOTE, OPENAI_REFERENCE, Fields
from tests.vendors.openai import SCHEMAS, STRICT, schema_fault
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

PAIRS = "https://github.com/continuedev/continue/issues/11994"
FOLLOWED = "https://github.com/vercel/ai/issues/7099"
REASONING = "https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items"
CALLS = "https://platform.openai.com/docs/guides/function-calling"


def error(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> Refusal:
    """Return a refusal."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return Refusal(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


class Responses(Vendor):
    """OpenAI's Responses, with a model whose reasoning comes encrypted and must come back."""

    name = "responses"
    title = "OpenAI, Responses"
    api = "responses"
    base = "/v1"
    model = "gpt-5.4-mini"
    refusals = ("refusal", "filter", "blocked")

    def __init__(self) -> None:
        self.rules = (
            Rule("path", OPENAI_REFERENCE, self._path, lambda asked: setattr(asked, "path", "/v1/chat/completions")),
            Rule("unknown field", OPENAI_REFERENCE, self._unknown, lambda asked: asked.body.update(max_tokens=9)),
            Rule("ids", OPENAI_REFERENCE, self._ids, lambda asked: asked.body["input"][2].update(id="call_1")),
            Rule("calls answered", CALLS, self._answered, lambda asked: asked.body["input"].pop()),
            Rule("answers called", CALLS, self._called, lambda asked: asked.body["input"].pop(2)),
            Rule("reasoning before calls", PAIRS, self._reasoned, lambda asked: asked.body["input"].pop(1)),
            Rule("something behind reasoning", FOLLOWED, self._followed, _alone),
            Rule("reasoning kept", REASONING, self._kept, lambda a: a.body["input"][1].pop("encrypted_content")),
            Rule("reasoning unchanged", REASONING, self._unchanged, _change),
            Rule("schemas", SCHEMAS, self._schemas, lambda asked: asked.body["tools"][0].update(parameters={})),
            Rule("strict schemas", STRICT, self._schemas, _loosen),
        )

    def correct(self) -> Asked:
        first = number()
        calls = [
            {"type": "function_call", "id": f"fc_{first}_{place}", "call_id": f"call_{first}_{place}", "name": "note"}
            | {"arguments": f'{{"number": {place}}}'}
            for place in range(2)
        ]
        outputs = [{"type": "function_call_output", "call_id": each["call_id"], "output": "noted"} for each in calls]
        given = [{"role": "user", "content": "Go."}, _reasoning(first), *calls, *outputs]
        function = {"type": "function", "name": "note", "description": "Note.", "strict": True}
        body = {
            "model": self.model,
            "instructions": "Note.",
            "input": given,
            "tools": [function | {"parameters": deepcopy(NOTE)}],
            "max_output_tokens": 900,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        return Asked("/v1/responses", body)

    def hear(self, asked: Asked) -> Heard:
        given = _input(asked)
        told = [asked.body.get("instructions") or ""]
        told += [_text(each.get("content")) for each in given if each.get("role", "assistant") != "assistant"]
        told += [_text(each["output"]) for each in given if each.get("type") == "function_call_output"]
        form = (asked.body.get("text") or {}).get("format") or {}
        spoken = [
            each.get("type") in {"function_call", "reasoning"} or each.get("role") == "assistant" for each in given
        ]
        return Heard(
            "\n".join(told),
            sum(now and not before for before, now in zip([False, *spoken], spoken, strict=False)),
            sum(each.get("type") == "function_call_output" for each in given),
            {tool["name"]: tool.get("parameters") for tool in asked.body.get("tools") or () if "name" in tool},
            form.get("schema"),
        )

    def blocked(self) -> Refusal:
        said = "Invalid prompt: your prompt was flagged as potentially violating our usage policy."
        return error(said, code="invalid_prompt")

    def whole(self, turn: Turn, asked: Asked) -> Refusal:
        if turn.end == "broken":
            return error("The server had an error while processing your request.", status=500)
        return Refusal(200, self._response(turn, asked, self._output(turn)))

    def pieces(self, turn: Turn, asked: Asked) -> Iterator[bytes]:
        for place, (kind, data) in enumerate(self._events(turn, asked)):
            yield event({"type": kind, "sequence_number": place, **data}, kind)

    def _events(self, turn: Turn, asked: Asked) -> Iterator[tuple[str, Fields]]:
        begun = self._response(turn, asked, []) | {"status": "in_progress", "usage": None, "incomplete_details": None}
        yield "response.created", {"response": begun}
        yield "response.in_progress", {"response": begun}
        output = self._output(turn)
        for place, item in enumerate(output):
            at = {"output_index": place, "item_id": item["id"]}
            yield "response.output_item.added", {"output_index": place, "item": _begun(item)}
            for kind, data in _item_events(item, turn):
                yield kind, at | data
                if turn.end == "broken" and kind.endswith(".delta"):
                    said = "The server had an error while processing your request."
                    yield "error", {"code": "server_error", "message": said, "param": None}
                    return
            yield "response.output_item.done", {"output_index": place, "item": item}
        response = self._response(turn, asked, output)
        yield f"response.{response['status']}", {"response": response}

    def _output(self, turn: Turn) -> list[Fields]:
        first = number()
        output: list[Fields] = [_reasoning(first)] if turn.thought or turn.calls else []
        part = {"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}
        if turn.end == "refusal":
            part = {"type": "refusal", "refusal": turn.text}
        if turn.text:
            status = "incomplete" if turn.end in {"length", "filter"} else "completed"
            head = {"type": "message", "id": f"msg_{first}", "role": "assistant", "status": status}
            output.append(head | {"content": [part]})
        for place, (name, _) in enumerate(turn.calls):
            ids = {"id": f"fc_{first}_{place}", "call_id": f"call_{first}_{place}"}
            call = {"type": "function_call", "name": name, "arguments": turn.arguments(place), "status": "completed"}
            output.append(ids | call)
        return output

    def _response(self, turn: Turn, asked: Asked, output: list[Fields]) -> Fields:
        tokens = spent(turn, asked)
        reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(turn.end)
        usage = {
            "input_tokens": tokens.read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": tokens.written,
            "output_tokens_details": {"reasoning_tokens": tokens.thought},
            "total_tokens": tokens.read + tokens.written,
        }
        return {
            "id": f"resp_{number()}",
            "object": "response",
            "created_at": 1_790_000_000,
            "model": self.model,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": None,
            "metadata": {},
            "output": output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": usage,
        }

    def _path(self, asked: Asked) -> Refusal | None:
        return None if asked.path == "/v1/responses" else error(f"Invalid URL (POST {asked.path})", status=404)

    def _unknown(self, asked: Asked) -> Refusal | None:
        found = next(unknown(asked.body, FIELDS["responses.request"]), None)
        return error(f"Unknown parameter: '{found}'.", found, "unknown_parameter") if found else None

    def _ids(self, asked: Asked) -> Refusal | None:
        begins = {"function_call": "fc", "reasoning": "rs", "message": "msg"}
        for place, item in enumerate(_input(asked)):
            begin = begins.get(item.get("type", ""), "")
            if "id" in item and not str(item["id"]).startswith(begin):
                param = f"input[{place}].id"
                return error(f"Invalid '{param}': '{item['id']}'. Expected an ID that begins with '{begin}'.", param)
        return None

    def _answered(self, asked: Asked) -> Refusal | None:
        outputs = {each["call_id"] for each in _input(asked) if each.get("type") == "function_call_output"}
        calls = [each["call_id"] for each in _input(asked) if each.get("type") == "function_call"]
        missing = [each for each in calls if each not in outputs]
        return error(f"No tool output found for function call {missing[0]}.", "input") if missing else None

    def _called(self, asked: Asked) -> Refusal | None:
        calls = {each["call_id"] for each in _input(asked) if each.get("type") == "function_call"}
        outputs = [each["call_id"] for each in _input(asked) if each.get("type") == "function_call_output"]
        missing = [each for each in outputs if each not in calls]
        said = "No tool call found for function call output with call_id"
        return error(f"{said} {missing[0]}.", "input") if missing else None

    def _reasoned(self, asked: Asked) -> Refusal | None:
        given = _input(asked)
        reasoned = {each.get("id", "").removeprefix("rs_") for each in given if each.get("type") == "reasoning"}
        for each in given:
            wanted = each.get("id", "").removeprefix("fc_").split("_")[0]
            if each.get("type") == "function_call" and wanted and wanted not in reasoned:
                said = "of type 'function_call' was provided without its required 'reasoning' item"
                return error(f"Item '{each['id']}' {said}: 'rs_{wanted}'.", "input")
        return None

    def _followed(self, asked: Asked) -> Refusal | None:
        given = [*_input(asked), {"type": "end"}]
        for each, after in itertools.pairwise(given):
            said = after.get("type") in {"function_call", "reasoning"} or after.get("role") == "assistant"
            if each.get("type") == "reasoning" and not said:
                begin = f"Item '{each.get('id')}' of type 'reasoning' was provided without its required following item."
                return error(begin, "input")
        return None

    def _kept(self, asked: Asked) -> Refusal | None:
        if asked.body.get("store") is not False:
            return None
        for each in _input(asked):
            if each.get("type") == "reasoning" and not each.get("encrypted_content"):
                said = "not found. Items are not persisted when `store` is set to false."
                return error(f"Item with id '{each.get('id')}' {said}", "input", status=404)
        return None

    def _unchanged(self, asked: Asked) -> Refusal | None:
        for each in _input(asked):
            kept = each.get("encrypted_content")
            if each.get("type") == "reasoning" and kept and kept != signature(each.get("id")):
                said = "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted"
                return error(f"{said} or parsed.", code="invalid_encrypted_content")
        return None

    def _schemas(self, asked: Asked) -> Refusal | None:
        for place, tool in enumerate(asked.body.get("tools") or ()):
            fault = schema_fault(tool.get("parameters") or {}, strict=tool.get("strict") is True)
            if fault:
                param = f"tools[{place}].parameters"
                said = f"Invalid schema for function '{tool['name']}': {fault}"
                return error(said, param, "invalid_function_parameters")
        return None


def _input(asked: Asked) -> list[Fields]:
    given = asked.body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _text(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content or ())


def _reasoning(first: int) -> Fields:
    return {"type": "reasoning", "id": f"rs_{first}", "summary": [], "encrypted_content": signature(f"rs_{first}")}


def _begun(item: Fields) -> Fields:
    empty = {"message": {"content": [], "status": "in_progress"}, "function_call": {"arguments": ""}}
    return item | empty.get(item["type"], {})


def _item_events(item: Fields, turn: Turn) -> Iterator[tuple[str, Fields]]:
    if item["type"] == "function_call":
        for start in range(0, len(item["arguments"]), 9):
            yield "response.function_call_arguments.delta", {"delta": item["arguments"][start : start + 9]}
        yield "response.function_call_arguments.done", {"arguments": item["arguments"], "name": item["name"]}
    if item["type"] == "message":
        part = item["content"][0]
        kind = "response.refusal" if part["type"] == "refusal" else "response.output_text"
        name = "refusal" if part["type"] == "refusal" else "text"
        yield "response.content_part.added", {"content_index": 0, "part": part | {name: ""}}
        for word in turn.words():
            yield f"{kind}.delta", {"content_index": 0, "delta": word, "logprobs": []}
        yield f"{kind}.done", {"content_index": 0, name: part[name], "logprobs": []}
        yield "response.content_part.done", {"content_index": 0, "part": part}


def _alone(asked: Asked) -> None:
    asked.body["input"].append(_reasoning(number()))


def _change(asked: Asked) -> None:
    asked.body["input"][1]["encrypted_content"] += "."


def _loosen(asked: Asked) -> None:
    asked.body["tools"][0]["parameters"].pop("additionalProperties")
