"""Servers that people run themselves: Ollama, vLLM, llama.cpp and LM Studio."""

import re
from collections.abc import Iterator
from typing import Any

from tests.vendors.chat import OPENAI_REFERENCE, Chat, Fields
from tests.vendors.wire import Asked, Refusal, Rule, Turn, event

OLLAMA_SOURCE = "https://github.com/ollama/ollama/blob/main/openai/openai.go"
OLLAMA_STREAMS = "https://github.com/ollama/ollama/blob/main/middleware/openai.go"
OLLAMA_TOOLS = "https://github.com/Pasta-Devs/Marinara-Engine/issues/1704"
VLLM_TEMPLATES = "https://github.com/microsoft/autogen/issues/1037"
VLLM_TOOLS = "https://docs.vllm.ai/en/latest/features/tool_calling.html"
VLLM_STREAMS = "https://github.com/BerriAI/litellm/issues/40578"
VLLM_ENDS = "https://github.com/vllm-project/vllm/issues/58228"
LLAMA_TEMPLATES = "https://github.com/SWE-agent/mini-swe-agent/issues/759"
LLAMA_JINJA = "https://github.com/defilantech/LLMKube/issues/126"
LLAMA_SCHEMAS = "https://github.com/ggml-org/llama.cpp/blob/master/common/json-schema-to-grammar.cpp"
LLAMA_GRAMMARS = "https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md"
LLAMA_STREAMS = "https://github.com/ggml-org/llama.cpp/issues/14566"
LM_STUDIO_CHOICE = "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670"
LM_STUDIO_FORMAT = "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189"
LM_STUDIO_NULLS = "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/261"
LM_STUDIO_STREAMS = "https://github.com/zendev-sh/goai/pull/110"
ALTERNATE = "After the optional system message, conversation roles must alternate user and assistant roles except for"


def alternates(asked: Asked) -> bool:
    """Return whether roles follow each other as templates of Mistral's and Google's open models want it."""
    turns = asked.body["messages"]
    turns = turns[1:] if turns and turns[0]["role"] == "system" else turns
    plain = [each["role"] for each in turns if each["role"] != "tool" and not each.get("tool_calls")]
    return all(role == ("user", "assistant")[place % 2] for place, role in enumerate(plain))


def second_user(asked: Asked) -> None:
    """Let a person speak behind tools, as templates refuse it."""
    asked.body["messages"].append({"role": "user", "content": "And?"})


class Ollama(Chat):
    """Ollama: it ignores what it does not know, `max_completion_tokens` too."""

    name = "ollama"
    title = "Ollama"
    model = "qwen3"
    limit = "max_tokens"
    ids = "call_{:08d}"
    thoughts = "reasoning"
    arguments = "whole"
    index = "zero"
    beside_calls = ""

    def own_rules(self) -> tuple[Rule, ...]:
        return (
            Rule("null", OLLAMA_SOURCE, self._null, lambda asked: asked.body["messages"][1].update(content=None)),
            Rule("arguments", OLLAMA_SOURCE, self._arguments, _bad_arguments),
        )

    def error(self, status: int, message: str, *, code=None, param=None, kind="") -> Refusal:
        kind = {400: "invalid_request_error", 404: "not_found_error"}.get(status, "api_error")
        return super().error(status, message, kind=kind)

    def broken(self) -> Iterator[bytes]:
        # What went wrong is lost on the way into this form: an empty chunk, and no end.
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        yield event(self._head("chat.completion.chunk") | {"choices": [choice]})

    def bill(self, turn, asked) -> Fields:
        whole = super().bill(turn, asked)
        return {name: whole[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}

    def _null(self, asked: Asked) -> Refusal | None:
        odd = (each for each in asked.body["messages"] if each.get("content") is None and not each.get("tool_calls"))
        return self.error(400, "invalid message content type: <nil>") if any(True for _ in odd) else None

    def _arguments(self, asked: Asked) -> Refusal | None:
        calls = [call for each in asked.body["messages"] for call in each.get("tool_calls") or ()]
        bad = [call for call in calls if not call["function"]["arguments"].startswith("{")]
        return self.error(400, "invalid tool call arguments") if bad else None


def _bad_arguments(asked: Asked) -> None:
    asked.body["messages"][2]["tool_calls"][0]["function"]["arguments"] = ""


class VLLM(Chat):
    """vLLM with a reader of calls and a template that wants roles to alternate."""

    name = "vllm"
    title = "vLLM"
    model = "mistralai/Devstral-Small"
    ids = "chatcmpl-tool-{:032d}"
    thoughts = "reasoning"

    def own_rules(self) -> tuple[Rule, ...]:
        rules = [Rule("template", VLLM_TEMPLATES, self._template, second_user)]
        if not self.functions:
            rules.append(Rule("functions", VLLM_TOOLS, self._functions, lambda asked: None))
        return tuple(rules)

    def error(self, status: int, message: str, *, code=None, param=None, kind="") -> Refusal:
        kind = {400: "BadRequestError", 404: "NotFoundError"}.get(status, "InternalServerError")
        return super().error(status, message, code=status, param=param, kind=kind)

    def broken(self) -> Iterator[bytes]:
        yield event(self.error(500, "EngineCore encountered an issue.").body)
        yield event("[DONE]")

    def bill(self, turn, asked) -> Fields:
        whole, most = super().bill(turn, asked), asked.body[self.limit]
        if turn.end != "length":
            return whole
        return whole | {"completion_tokens": most, "total_tokens": whole["prompt_tokens"] + most}

    def _end(self, turn: Turn) -> str:
        # VLLM_ENDS: a call that was read hides that the answer was cut off.
        return "tool_calls" if turn.calls else super()._end(turn)

    def _template(self, asked: Asked) -> Refusal | None:
        return None if alternates(asked) else self.error(400, f"{ALTERNATE} tool calls and results.")

    def _functions(self, asked: Asked) -> Refusal | None:
        if not asked.body.get("tools") or asked.body.get("tool_choice", "auto") == "none":
            return None
        return self.error(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')


class PlainVLLM(VLLM):
    """vLLM as it starts without options."""

    name = "vllm-plain"
    title = ""
    functions = False


class LlamaCpp(Chat):
    """llama.cpp's server, with templates as it has them by default."""

    name = "llama.cpp"
    title = "llama.cpp server"
    model = "devstral-small-2"
    ids = "{:032d}"
    thoughts = "reasoning_content"

    def own_rules(self) -> tuple[Rule, ...]:
        rules = [
            Rule("template", LLAMA_TEMPLATES, self._template, second_user),
            Rule("patterns", LLAMA_SCHEMAS, self._patterns, _open_pattern),
            Rule("repetitions", LLAMA_GRAMMARS, self._repetitions, _long_text),
            Rule("one grammar", LLAMA_GRAMMARS, self._grammar, _format_beside),
        ]
        if not self.functions:
            rules.append(Rule("functions", LLAMA_JINJA, self._functions, lambda asked: None))
        return tuple(rules)

    def error(self, status: int, message: str, *, code=None, param=None, kind="") -> Refusal:
        kind = {400: "invalid_request_error", 404: "not_found_error"}.get(status, "server_error")
        return Refusal(status, {"error": {"code": status, "message": message, "type": kind}})

    def broken(self) -> Iterator[bytes]:
        yield event(self.error(500, "Compute error.").body)

    def _template(self, asked: Asked) -> Refusal | None:
        return (
            None
            if alternates(asked)
            else self.error(500, f"Error: Jinja Exception: {ALTERNATE} tool calls and results.")
        )

    def _functions(self, asked: Asked) -> Refusal | None:
        return self.error(500, "tools param requires --jinja flag") if asked.body.get("tools") else None

    def _patterns(self, asked: Asked) -> Refusal | None:
        found = re.findall(r"'pattern': '([^']*)'", str(schemas(asked)))
        if all(each.startswith("^") and each.endswith("$") for each in found):
            return None
        return self.error(400, "JSON schema conversion failed:\nPattern must start with '^' and end with '$'")

    def _repetitions(self, asked: Asked) -> Refusal | None:
        found = re.findall(r"'(?:maxLength|minLength|maxItems|minItems)': (\d+)", str(schemas(asked)))
        if all(int(each) <= 2000 for each in found):
            return None
        return self.error(400, "Failed to initialize samplers: failed to parse grammar")

    def _grammar(self, asked: Asked) -> Refusal | None:
        wanted = (asked.body.get("response_format") or {}).get("type", "text")
        both = wanted != "text" and asked.body.get("tools")
        return self.error(400, "Cannot use custom grammar constraints with tools.") if both else None


class PlainLlamaCpp(LlamaCpp):
    """llama.cpp's server without `--jinja`, as it was by default until 2025."""

    name = "llama.cpp-plain"
    title = ""
    functions = False


def schemas(asked: Asked) -> Any:
    """Return all schemas of a request."""
    functions = [tool["function"].get("parameters") for tool in asked.body.get("tools") or ()]
    return [*functions, (asked.body.get("response_format") or {}).get("json_schema")]


def _open_pattern(asked: Asked) -> None:
    asked.body["tools"][0]["function"]["parameters"]["properties"]["code"] = {"type": "string", "pattern": "[a-z]+"}


def _long_text(asked: Asked) -> None:
    asked.body["tools"][0]["function"]["parameters"]["properties"]["code"] = {"type": "string", "maxLength": 9000}


def _format_beside(asked: Asked) -> None:
    asked.body["response_format"] = {"type": "json_object"}


class LMStudio(Chat):
    """LM Studio."""

    name = "lmstudio"
    title = "LM Studio"
    model = "qwen/qwen3-30b-a3b"
    limit = "max_tokens"
    ids = "{:09d}"
    thoughts = "reasoning_content"
    beside_calls = ""

    def own_rules(self) -> tuple[Rule, ...]:
        return (
            Rule(
                "tool_choice", LM_STUDIO_CHOICE, self._choice, lambda a: a.body.update(tool_choice={"type": "function"})
            ),
            Rule(
                "typed output",
                LM_STUDIO_FORMAT,
                self._format,
                lambda asked: asked.body.update(response_format={"type": "json_object"}),
            ),
            Rule("null", LM_STUDIO_NULLS, self._null, lambda asked: asked.body["messages"][2].update(content=None)),
        )

    def error(self, status: int, message: str, *, code=None, param=None, kind="") -> Refusal:
        return Refusal(status, {"error": message})

    def broken(self) -> Iterator[bytes]:
        yield event({"error": {"message": "Compute error."}, "message": "Compute error."}, "error")

    def _choice(self, asked: Asked) -> Refusal | None:
        choice = asked.body.get("tool_choice", "auto")
        if choice in ("none", "auto", "required"):
            return None
        return self.error(400, "Invalid tool_choice type: 'object'. Supported string values: none, auto, required")

    def _format(self, asked: Asked) -> Refusal | None:
        if (asked.body.get("response_format") or {}).get("type", "text") in {"text", "json_schema"}:
            return None
        return self.error(400, "'response_format.type' must be 'json_schema' or 'text'")

    def _null(self, asked: Asked) -> Refusal | None:
        if all(isinstance(message.get("content"), str | list) for message in asked.body["messages"]):
            return None
        return self.error(400, "Invalid 'content': 'content' field must be a string or an array of objects.")


__all__ = ["OPENAI_REFERENCE", "VLLM", "LMStudio", "LlamaCpp", "Ollama", "PlainLlamaCpp", "PlainVLLM"]
