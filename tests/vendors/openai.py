"""OpenAI's Chat Completions, and Azure's of the same models."""

import re
from collections.abc import Iterator
from typing import Any

from tests.vendors.chat import OPENAI_REFERENCE, Chat, Fields
from tests.vendors.wire import Asked, Refusal, Rule, Turn, event

LIMIT = "https://github.com/ITSpecialist111/ai_automation_suggester/issues/38"
NULLS = "https://github.com/run-llama/llama_index/issues/17555"
STRICT = "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas"
SCHEMAS = "https://github.com/bytedance/trae-agent/issues/173"
NAMES = "https://github.com/microsoft/foundry-dev-tools/issues/723"
AZURE_FILTER = "https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter"
AZURE_REFERENCE = "https://learn.microsoft.com/azure/ai-foundry/openai/reference"
FORBIDDEN_AT_TOP = {"oneOf", "anyOf", "allOf", "enum", "not"}
UNSUPPORTED = {"allOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "patternProperties"}


def schema_fault(schema: Any, *, strict: bool, where: tuple[str, ...] = ()) -> str | None:
    """Return what OpenAI says against a schema."""
    if not isinstance(schema, dict):
        return f"In context={where}, schema must be an object" if strict or not isinstance(schema, bool) else None
    if not where and schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    if not where and FORBIDDEN_AT_TOP & schema.keys():
        return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    if schema.get("type") == "array" and "items" not in schema:
        return f"In context={where}, array schema missing items."
    if strict and (fault := _strict_fault(schema, where)):
        return fault
    inner = [(("properties", name), each) for name, each in schema.get("properties", {}).items()]
    inner += [(("items",), schema["items"])] if "items" in schema else []
    inner += [(("anyOf", str(place)), each) for place, each in enumerate(schema.get("anyOf", ()))]
    inner += [(("$defs", name), each) for name, each in schema.get("$defs", {}).items()]
    found = (schema_fault(each, strict=strict, where=where + step) for step, each in inner)
    return next((fault for fault in found if fault), None)


def _strict_fault(schema: Fields, where: tuple[str, ...]) -> str | None:
    if bad := UNSUPPORTED & schema.keys():
        return f"In context={where}, '{min(bad)}' is not permitted."
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            return f"In context={where}, 'additionalProperties' is required to be supplied and to be false."
        if missing := schema.get("properties", {}).keys() - set(schema.get("required", ())):
            said = "'required' is required to be supplied and to be an array including every key in properties."
            return f"In context={where}, {said} Missing '{min(missing)}'."
    return None


class OpenAI(Chat):
    """OpenAI, with a model that reasons and says nothing of it."""

    name = "openai"
    title = "OpenAI, Chat Completions"
    model = "gpt-5.4-mini"
    refuses = True
    refusals = ("refusal", "filter", "blocked")
    function_extra: Fields = {"strict": True}  # noqa: RUF012 - never changed

    def own_rules(self) -> tuple[Rule, ...]:
        return (
            Rule("limit", LIMIT, self._limit, lambda asked: asked.body.update(max_tokens=9)),
            self.known_fields(
                OPENAI_REFERENCE,
                lambda name: self.error(400, f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter"),
            ),
            self.known_message_fields(
                OPENAI_REFERENCE,
                lambda place, _, name: self.error(
                    400,
                    f"Unknown parameter: 'messages[{place}].{name}'.",
                    param=f"messages[{place}].{name}",
                    code="unknown_parameter",
                ),
            ),
            Rule("null", NULLS, self._null, lambda asked: asked.body["messages"][1].update(content=None)),
            self.calls_answered(),
            Rule("names", NAMES, self._names, lambda a: a.body["tools"][0]["function"].update(name="n" * 65)),
            Rule("schemas", SCHEMAS, self._schemas, lambda a: a.body["tools"][0]["function"].update(parameters={})),
            Rule("strict schemas", STRICT, self._schemas, _loosen),
            Rule("typed output", STRICT, self._format, _loose_format),
            Rule("JSON", STRICT, self._json, lambda a: a.body.update(response_format={"type": "json_object"})),
            Rule("how many functions", OPENAI_REFERENCE, self._many, lambda a: a.body.update(tools=[{}] * 129)),
        )

    def blocked(self) -> Refusal:
        said = "Invalid prompt: your prompt was flagged as potentially violating our usage policy."
        return self.error(400, said, code="invalid_prompt")

    def _limit(self, asked: Asked) -> Refusal | None:
        if "max_tokens" not in asked.body:
            return None
        said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
        return self.error(400, f"{said} instead.", param="max_tokens", code="unsupported_parameter")

    def _null(self, asked: Asked) -> Refusal | None:
        for place, message in enumerate(asked.body["messages"]):
            if message.get("content") is None and not (message["role"] == "assistant" and message.get("tool_calls")):
                said = "Invalid value for 'content': expected a string, got null."
                return self.error(400, said, param=f"messages.[{place}].content")
        return None

    def _names(self, asked: Asked) -> Refusal | None:
        for place, tool in enumerate(asked.body.get("tools") or ()):
            if tool and not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["function"]["name"]):
                param = f"tools[{place}].function.name"
                said = f"Invalid '{param}': string does not match pattern '^[a-zA-Z0-9_-]+$', or is longer than 64."
                return self.error(400, said, param=param, code="invalid_value")
        return None

    def _schemas(self, asked: Asked) -> Refusal | None:
        for place, tool in enumerate(asked.body.get("tools") or ()):
            function = tool.get("function", {})
            if "parameters" not in function:
                continue
            if fault := schema_fault(function["parameters"], strict=function.get("strict") is True):
                said = f"Invalid schema for function '{function['name']}': {fault}"
                param = f"tools[{place}].function.parameters"
                return self.error(400, said, param=param, code="invalid_function_parameters")
        return None

    def _format(self, asked: Asked) -> Refusal | None:
        wanted = (asked.body.get("response_format") or {}).get("json_schema")
        if wanted is None:
            return None
        fault = schema_fault(wanted["schema"], strict=wanted.get("strict") is True)
        said = f"Invalid schema for response_format '{wanted['name']}': {fault}"
        return self.error(400, said, param="response_format", code=None) if fault else None

    def _json(self, asked: Asked) -> Refusal | None:
        wanted = (asked.body.get("response_format") or {}).get("type")
        if wanted != "json_object" or "json" in str(asked.body["messages"]).lower():
            return None
        said = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        return self.error(400, said, param="messages")

    def _many(self, asked: Asked) -> Refusal | None:
        if (length := len(asked.body.get("tools") or ())) <= 128:
            return None
        said = (
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length"
        )
        return self.error(400, f"{said} {length} instead.", param="tools", code="array_above_max_length")


def _loosen(asked: Asked) -> None:
    asked.body["tools"][0]["function"]["parameters"].pop("additionalProperties")


def _loose_format(asked: Asked) -> None:
    wanted = {"name": "answer", "strict": True, "schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    asked.body["response_format"] = {"type": "json_schema", "json_schema": wanted}


class Azure(OpenAI):
    """Azure OpenAI: its own addresses, a filter before and behind the model."""

    name = "azure"
    title = "Azure OpenAI"
    base = "/openai/v1"
    model = "gpt-5.4-mini"

    def own_rules(self) -> tuple[Rule, ...]:
        key = Rule("key", AZURE_REFERENCE, self._key, lambda asked: asked.headers.clear())
        return (key, *(rule for rule in super().own_rules()))

    def correct(self) -> Asked:
        asked = super().correct()
        asked.headers["api-key"] = "key"
        return asked

    def blocked(self) -> Refusal:
        said = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
        found = {"violence": {"filtered": True, "severity": "high"}, "hate": {"filtered": False, "severity": "safe"}}
        inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": found}
        error = {"message": said, "type": None, "param": "prompt", "code": "content_filter", "status": 400}
        return Refusal(400, {"error": error | {"innererror": inner}})

    def formed(self, message: Fields, turn: Turn) -> Fields:
        return message if turn.end != "filter" else message | {"content": None}

    def pieces(self, turn: Turn, asked: Asked) -> Iterator[bytes]:
        filters = {"hate": {"filtered": False, "severity": "safe"}}
        yield event({"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": filters}]})
        yield from super().pieces(turn, asked)

    def _path(self) -> Rule:
        def refused(asked: Asked) -> Refusal | None:
            deployed = re.fullmatch(r"/openai/deployments/[\w.-]+/chat/completions", asked.path)
            if asked.path == "/openai/v1/chat/completions" or (deployed and "api-version" in asked.query):
                return None
            return Refusal(404, {"error": {"code": "404", "message": "Resource not found"}})

        deployments = "/openai/deployments/gpt/chat/completions"
        return Rule("api-version", AZURE_REFERENCE, refused, lambda asked: setattr(asked, "path", deployments))

    def _key(self, asked: Asked) -> Refusal | None:
        if "api-key" in asked.headers or asked.headers.get("authorization", "").startswith("Bearer "):
            return None
        said = "Access denied due to invalid subscription key or wrong API endpoint."
        return Refusal(401, {"error": {"code": "401", "message": said}})
