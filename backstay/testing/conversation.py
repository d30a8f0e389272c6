"""The part of a request that a script can see."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from backstay.digests.told import read_told


class Call(BaseModel):
    """Hold one function call of the model and what came back."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Empty when the arguments were no JSON object."""
    answered: bool = False
    answer: Any = None
    """The tool message as JSON, with its texts in their places; a string that is not JSON stays a string."""


class Conversation:
    """Read one Chat Completions request as a conversation."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = dict(body)
        self.model = str(self.body.get("model", ""))
        self.messages = [message for message in _list(self.body.get("messages")) if isinstance(message, dict)]

    @property
    def tools(self) -> list[str]:
        """Return the names of the functions that may be called, in order."""
        functions = (_dict(_dict(tool).get("function")) for tool in _list(self.body.get("tools")))
        return [str(function["name"]) for function in functions if "name" in function]

    @property
    def task(self) -> str:
        """Return the text of the first message from the user; empty when there is none."""
        return next((_text(message) for message in self.messages if message.get("role") == "user"), "")

    @property
    def last_text(self) -> str:
        """Return the text of the last message, whoever wrote it."""
        return _text(self.messages[-1]) if self.messages else ""

    def calls(self, name: str | None = None) -> list[Call]:
        """Return the calls made so far, of one function or of all, in order."""
        made: list[Call] = []
        for message in self.messages:
            if message.get("role") == "assistant":
                made.extend(_call(_dict(item)) for item in _list(message.get("tool_calls")))
            elif message.get("role") == "tool":
                made = [_answered(call, message) for call in made]
        return [call for call in made if name in (None, call.name)]

    def answers(self, name: str | None = None) -> list[Any]:
        """Return the answers to those calls that were answered, in the order of the calls."""
        return [call.answer for call in self.calls(name) if call.answered]


def payload_of(answer: Any) -> Any:
    """Return the payload of a tool answer when it came whole, else None: then read it in parts.

    A small payload comes as `{"data": ..., "ref": ...}`, a part of a stored one as `{"data": [...], ...}`, and a large
    one as a digest, with a sample instead of the data.
    """
    return answer.get("data") if isinstance(answer, dict) and not answer.get("truncated") else None


def _call(item: dict[str, Any]) -> Call:
    function = _dict(item.get("function"))
    arguments = _dict(_json(str(function.get("arguments", ""))))
    return Call(id=str(item.get("id", "")), name=str(function.get("name", "")), arguments=arguments)


def _answered(call: Call, message: dict[str, Any]) -> Call:
    if call.answered or call.id != message.get("tool_call_id"):
        return call
    return call.model_copy(update={"answered": True, "answer": read_told(_text(message))})


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(str(_dict(part).get("text", "")) for part in _list(content))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
