"""A scripted model that reads or writes as often as the task says, under whatever engine asks it."""

import json
import os
from pathlib import Path
from typing import Any

from backstay.testing import Conversation, Reply

BODIES = "BENCHMARK_BODIES"
"""The variable with the path of the file that keeps requests."""
PAGE = {"offset": 0, "limit": 2}
TARGET = {"message_id": "msg_0001"}


class Script:
    """Read the word and the number of steps from the text of the task; keep the requests of tasks that count."""

    def __init__(self) -> None:
        self.bodies = Path(os.environ[BODIES])  # noqa: TID251  # the benchmark starts it as a process of its own

    def __call__(self, conversation: Conversation) -> Reply:
        word, wanted = conversation.task.split()[:2]
        if word == "count":
            self._keep(conversation.body)
        match word:
            case "park":
                return _call(conversation, "delete_message", TARGET)
            case "write":
                return _repeat(conversation, int(wanted), "send_email")
            case _:
                return _repeat(conversation, int(wanted), "list_customers")

    def _keep(self, body: dict[str, Any]) -> None:
        with self.bodies.open("a", encoding="utf-8") as file:
            file.write(json.dumps(body, ensure_ascii=False, separators=(",", ":")) + "\n")


def _repeat(conversation: Conversation, wanted: int, tool: str) -> Reply:
    """Call the tool at each step but the last, in which the task ends in the way of the engine."""
    made = len(conversation.answers(_offered(conversation, tool)))
    if made < wanted - 1:
        letter = {"to": "a@example.com", "subject": f"Letter {made}", "body": "b"}
        return _call(conversation, tool, letter if tool == "send_email" else PAGE)
    if "finish" in conversation.tools:
        return Reply(calls=[("finish", {"summary": "done"})])
    return Reply(text="done")


def _call(conversation: Conversation, tool: str, arguments: dict[str, Any]) -> Reply:
    return Reply(calls=[(_offered(conversation, tool), arguments)])


def _offered(conversation: Conversation, tool: str) -> str:
    """Return the name under which the engine offers a tool of the mailbox."""
    return next(name for name in conversation.tools if name.endswith(tool))
