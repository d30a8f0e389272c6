"""The scripted model of `backstay dev --scripted`: it writes what it is told into the notes of the example server."""

import re
from typing import Any

from backstay.testing.conversation import Conversation
from backstay.testing.reply import Reply
from backstay.testing.scripted_model import ScriptedModel

_LIST, _ADD = "notes__list_notes", "notes__add_note"
_TOLD = re.compile(r"\s*(?:please\s+)?note\s+(?:down\s+)?(?:that\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_TRIES = 2


def open_example_model() -> ScriptedModel:
    """Return the model; it listens on a free loopback port while it is entered, and keeps few requests."""
    return ScriptedModel(next_reply, kept=1)


def next_reply(conversation: Conversation) -> Reply:
    """Read the notes, add one, and report; it decides by the tool answers in the conversation alone."""
    if "finish" not in conversation.tools:
        return Reply(text="I had to stop before the end.")
    if not {_LIST, _ADD} <= set(conversation.tools):
        if len(conversation.calls("search_tools")) < _TRIES:
            return Reply(text="I look for tools.", calls=[("search_tools", {"query": "list and add notes"})])
        return _finish("I am a script and know the tools of example_server.py only; they are not here.", success=False)
    if not conversation.calls(_LIST):
        return Reply(text="I read the notes that are there.", calls=[(_LIST, {})])
    added = conversation.calls(_ADD)
    text = _text_of(conversation.task)
    if not added:
        return Reply(text="I write the note.", calls=[(_ADD, {"text": text})])
    answer: Any = added[-1].answer
    if isinstance(answer, dict) and not answer.get("error"):
        return _finish(f"Noted: {text}", success=True)
    return _finish("The note was not written.", success=False)


def _text_of(task: str) -> str:
    """Return what is to be noted: what follows `Note that`, or the whole task."""
    told = _TOLD.fullmatch(task)
    text = told[1] if told else task
    return text[:1].upper() + text[1:500]


def _finish(summary: str, *, success: bool) -> Reply:
    return Reply(calls=[("finish", {"summary": summary, "outputs": {}, "success": success})])
