"""The scripted model of `backstay dev --scripted`: it writes what it is told into the notes of the example server."""

import re
from typing import Any

from backstay.testing.conversation import Conversation
from backstay.testing.reply import Reply
from backstay.testing.scripted_model import ScriptedModel

_LIST, _ADD = "notes__list_notes", "notes__add_note"
_PLANNED = "notes.add_note"
_EARLIER = "The messages above are from earlier in the same session"
"""So begins the message that parts what earlier runs of a session were told from the task of this one."""
_TOLD = re.compile(r"\s*(?:please\s+)?note\s+(?:down\s+)?(?:that\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_TRIES = 2


def open_example_model() -> ScriptedModel:
    """Return the model; it listens on a free loopback port while it is entered, and keeps few requests."""
    return ScriptedModel(next_reply, kept=1)


def next_reply(conversation: Conversation) -> Reply:
    """Read the notes, add one, and report; it decides by the tool answers to the present task alone."""
    conversation = _present(conversation)
    if "finish" not in conversation.tools:
        return Reply(text="I had to stop before the end.")
    text = _text_of(conversation.task)
    if plans := conversation.calls("propose_plan"):
        return _report(text, noted=any(step.get("status") == "success" for step in _steps_of(plans[-1].answer)))
    if not {_LIST, _ADD} <= set(conversation.tools):
        return _look(conversation, text)
    if not conversation.calls(_LIST):
        return Reply(text="I read the notes that are there.", calls=[(_LIST, {})])
    added = conversation.calls(_ADD)
    if not added:
        return Reply(text="I write the note.", calls=[(_ADD, {"text": text})])
    answer: Any = added[-1].answer
    return _report(text, noted=isinstance(answer, dict) and not answer.get("error"))


def _present(conversation: Conversation) -> Conversation:
    """Return the conversation without what earlier runs of the session have said."""
    begins = [
        place
        for place, message in enumerate(conversation.messages)
        if message.get("role") == "user" and str(message.get("content")).startswith(_EARLIER)
    ]
    first = begins[-1] + 1 if begins else 0
    return Conversation({**conversation.body, "messages": conversation.messages[first:]})


def _look(conversation: Conversation, text: str) -> Reply:
    """Look for the tools; where they are found and may not be called, the run plans first."""
    searches = conversation.calls("search_tools")
    if any(_PLANNED in str(search.answer) for search in searches):
        step = {"tool": _PLANNED, "arguments": {"text": text}}
        return Reply(text="I propose a plan.", calls=[("propose_plan", {"plan": {"title": "A note", "steps": [step]}})])
    if len(searches) < _TRIES:
        return Reply(text="I look for tools.", calls=[("search_tools", {"query": "list and add notes"})])
    return _finish("I am a script and know the tools of example_server.py only; they are not here.", success=False)


def _text_of(task: str) -> str:
    """Return what is to be noted: what follows `Note that`, or the whole task."""
    told = _TOLD.fullmatch(task)
    text = told[1] if told else task
    return text[:1].upper() + text[1:500]


def _steps_of(answer: Any) -> list[dict[str, Any]]:
    """Return what became of each step of a plan; one that was left out or only rehearsed did not succeed."""
    return answer.get("steps", []) if isinstance(answer, dict) else []


def _report(text: str, *, noted: bool) -> Reply:
    return _finish(f"Noted: {text}" if noted else "The note was not written.", success=noted)


def _finish(summary: str, *, success: bool) -> Reply:
    return Reply(calls=[("finish", {"summary": summary, "outputs": {}, "success": success})])
