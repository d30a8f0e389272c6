"""Scripts for runs that follow each other: what a model answers depends on the task that stands last."""

import re
from collections.abc import Callable
from typing import Any

from backstay.testing import Conversation, Reply

DONE = Reply(calls=[("finish", {"summary": "done", "outputs": {}, "success": True})])
Script = Reply | Callable[[Conversation], Reply]
_TURN = re.compile(r"turn \d{4}")


class Turns:
    """Play one script per task text; after a script's last reply comes finish."""

    def __init__(self) -> None:
        self._scripts: dict[str, tuple[Script, ...]] = {}

    def text(self, *replies: Script) -> str:
        """Return the text of a task whose model answers with these replies, one per step."""
        text = f"turn {len(self._scripts):04}"
        self._scripts[text] = replies
        return text

    def task(self, *replies: Script, **fields: Any) -> dict[str, Any]:
        """Return a task whose model answers with these replies."""
        return {"text": self.text(*replies), **fields}

    def __call__(self, conversation: Conversation) -> Reply:
        if "finish" not in conversation.tools:
            return Reply(text="closing words")
        text, said = turn_of(conversation)
        replies = self._scripts[text]
        if said >= len(replies):
            return DONE
        reply = replies[said]
        return reply(conversation) if callable(reply) else reply


def turn_of(conversation: Conversation) -> tuple[str, int]:
    """Return the text of the task that stands last, and how often the model has spoken since."""
    asked = [
        (place, found.group())
        for place, message in enumerate(conversation.messages)
        if message.get("role") == "user" and (found := _TURN.match(str(message["content"])))
    ]
    place, text = asked[-1]
    return text, sum(1 for message in conversation.messages[place:] if message.get("role") == "assistant")


def calls(*made: tuple[str, dict[str, Any]]) -> Reply:
    """Return a reply that makes calls."""
    return Reply(calls=list(made))


def finished(summary: str, **outputs: Any) -> Reply:
    """Return a reply that finishes."""
    return Reply(calls=[("finish", {"summary": summary, "outputs": outputs, "success": True})])


def assert_well_formed(request: dict[str, Any]) -> None:
    """Assert what every endpoint demands: each call is answered once, before anything else is said."""
    waiting: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, request["messages"]
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == [], request["messages"]
        waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert waiting == [], request["messages"]
