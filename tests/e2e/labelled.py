"""Scripts for several runs that share one engine: the label in a run's task says which script is its own."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from backstay.testing import Conversation, Reply

Script = Callable[[Conversation], Reply] | Sequence[Reply]
DONE = Reply(calls=[("finish", {"summary": "done"})])


class Labelled:
    """Answer each run from its own script; of a list, the last reply is for all further requests."""

    def __init__(self, **scripts: Script) -> None:
        self.scripts = scripts
        self.asked: Counter[str] = Counter()
        self.heard: dict[str, str] = {}
        """By label: all that the model was last told."""

    def __call__(self, conversation: Conversation) -> Reply:
        label = next(label for label in self.scripts if f"<{label}>" in conversation.task)
        script = self.scripts[label]
        self.asked[label] += 1
        self.heard[label] = told(conversation)
        if callable(script):
            return script(conversation)
        return script[min(self.asked[label], len(script)) - 1]


def raw(message: dict[str, Any] | None = None, *, usage: Any = None, **more: Any) -> Reply:
    """Return an answer with exactly this message, whatever it holds; surrogates and NaN included."""
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage, **more}
    return Reply(body=json.dumps(whole).encode())


def call(name: str, arguments: Any, call_id: Any = "c1") -> dict[str, Any]:
    """Return one function call as the wire holds it; arguments that are a text are sent as they are."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def calls(*made: dict[str, Any], usage: Any = None) -> Reply:
    """Return an answer of several function calls."""
    return raw({"role": "assistant", "content": None, "tool_calls": list(made)}, usage=usage)


def told(conversation: Conversation) -> str:
    """Return all that the model was told, as one text."""
    return json.dumps(conversation.messages, ensure_ascii=False)
