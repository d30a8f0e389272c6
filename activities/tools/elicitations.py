"""Ask people what servers ask, and tell the servers what they said."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from activities.records import PERSON, Records
from backstay.errors import ArgumentsInvalid
from backstay.redaction.handles import belongs_to, handles_in, replace_handles
from backstay.requests import CallTool, CheckCall, FollowTask
from backstay.shown import one_line
from backstay.tools.tool import Elicitation
from toolbox.providers.elicitation import InputRequired, InputResponse, input_required_of

_FORM_BYTES = 16 * 1024
_MESSAGE = 2000
_LINE = 500
_ONLY_READ = frozenset({"title", "description"})
"""What a form says to people only."""


class Elicitations:
    """Seal what servers ask, show it without secrets, and check answers before they are sent."""

    def __init__(self, records: Records) -> None:
        """Store and show through `records`."""
        self.records = records

    async def keep(self, run: str, provider: str, question: InputRequired) -> Elicitation:
        """Store a question and return the part that people may see; raises ArgumentsInvalid when it is too long."""
        sealed = await self.records.store.blobs.of(run).seal_json(question.to_keep())
        shown: Any = (await self.records.show(run, question.plain(), provider)).payload
        form = _form(shown["asked"])
        if len(json.dumps(form)) > _FORM_BYTES:
            raise ArgumentsInvalid("the server asks for more than a person can be shown")
        url = next((question["url"] for question in shown["asked"] if question["url"]), None)
        return Elicitation(
            message=one_line("; ".join(question["message"] for question in shown["asked"]), _MESSAGE),
            url=None if url is None else one_line(url, _MESSAGE),
            form=form,
            sealed=sealed,
            said=None if shown["said"] is None else one_line(shown["said"], _LINE),
        )

    async def reply(self, ask: CallTool | CheckCall | FollowTask) -> InputResponse | None:
        """Return the answer to send with a call; raises ArgumentsInvalid when it does not fit the question."""
        if not ask.question:
            return None
        question = input_required_of(await self.records.store.blobs.of(ask.run).unseal_json(ask.question))
        declined = ask.reply is None
        reply = _as_asked(question, await self._revealed(ask.run, ask.reply))
        fault = None if declined else await asyncio.to_thread(question.fault, reply)
        if fault is not None:
            raise ArgumentsInvalid(await self.records.text(ask.run, fault))
        return InputResponse(question, reply, declined=declined)

    async def _revealed(self, run: str, reply: Any) -> Any:
        """Return an answer with the secrets that its person typed; those of tools stay handles."""
        typed = [handle for handle in handles_in(reply) if belongs_to(handle, PERSON)]
        known = await self.records.store.secrets.reveal(run, typed)
        return replace_handles(reply, {handle: secret.value for handle, secret in known.items()})

    async def again(self, ask: CallTool | FollowTask, provider: str) -> Elicitation:
        """Show the question of a call again, so that a person can give another answer."""
        question = input_required_of(await self.records.store.blobs.of(ask.run).unseal_json(ask.question))
        return await self.keep(ask.run, provider, question)


def _form(asked: list[dict[str, Any]]) -> dict[str, Any] | None:
    if len(asked) == 1:
        return _lines(asked[0]["form"])
    properties = {question["key"]: _lines(question["form"]) or {"type": "null"} for question in asked}
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def _lines(value: Any, limit: int = _FORM_BYTES) -> Any:
    """Return a form with each text on one line, so that none can imitate another part of the screen.

    Names and values are whole, because people choose or take them.
    """
    match value:
        case dict():
            return {
                _line(str(key)): _lines(item, _LINE if key in _ONLY_READ else _FORM_BYTES)
                for key, item in value.items()
            }
        case list():
            return [_lines(item, limit) for item in value]
        case str():
            return _line(value, limit)
        case _:
            return value


def _line(text: str, limit: int = _FORM_BYTES) -> str:
    return one_line(text, limit)


def _as_asked(question: InputRequired, reply: Any) -> Any:
    """Return an answer with its names, choices and defaults as the server wrote them, not as people were shown them."""
    if reply is None:
        return None
    answers = [_unwritten(asked.form, given) for asked, given in question.pair(reply)]
    if len(question.requests) == 1:
        return answers[0]
    known = {asked.key: answer for asked, answer in zip(question.requests, answers, strict=True)}
    return reply | known if isinstance(reply, dict) else reply


def _unwritten(form: Any, given: Any) -> Any:
    """Return a value with each text that is in its form written as it is there."""
    form = form if isinstance(form, dict) else {}
    match given:
        case dict():
            fields = form.get("properties")
            named = {_line(name): name for name in fields} if isinstance(fields, dict) else {}
            return {
                named.get(name, name): _unwritten(fields[named[name]] if name in named else None, item)
                for name, item in given.items()
            }
        case list():
            held = form.get("default")
            return [_unwritten({**_items(form), "default": held}, item) for item in given]
        case str():
            return next((value for value in _offered(form) if given == _line(value)), given)
        case _:
            return given


def _items(form: dict[str, Any]) -> dict[str, Any]:
    items = form.get("items")
    return items if isinstance(items, dict) else {}


def _offered(form: dict[str, Any]) -> Iterator[str]:
    """Yield the texts that people can take from a form: its choices and its default."""
    for word in ("enum", "const", "default"):
        held = form.get(word)
        yield from (value for value in (held if isinstance(held, list) else [held]) if isinstance(value, str))
    for word in ("oneOf", "anyOf"):
        options = form.get(word)
        for option in options if isinstance(options, list) else ():
            if isinstance(option, dict):
                yield from _offered(option)
