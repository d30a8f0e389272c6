"""Store what a tool's server asks people, and return what a person answered."""

import asyncio
import json
from typing import Any

from activities.records import Records
from backstay.errors import ArgumentsInvalid
from backstay.requests import CallTool, CheckCall
from backstay.shown import one_line
from backstay.tools.tool import Elicitation
from toolbox.providers.elicitation import InputRequired, InputResponse, input_required_of

_FORM_BYTES = 16 * 1024
_MESSAGE = 2000
_LINE = 500


class Elicitations:
    """Seal what servers ask, show it without secrets, and check answers before they are sent."""

    def __init__(self, records: Records) -> None:
        """Store and show through `records`."""
        self.records = records

    async def keep(self, run: str, provider: str, question: InputRequired) -> Elicitation:
        """Store a question and return the part that people may see; raises ArgumentsInvalid when it is too long."""
        sealed = await self.records.store.blobs.of(run).seal_json(question.plain())
        shown: Any = (await self.records.show(run, question.plain(), provider)).payload
        forms = [question["form"] for question in shown["asked"]]
        if len(json.dumps(forms)) > _FORM_BYTES:
            raise ArgumentsInvalid("the server asks for more than a person can be shown")
        url = next((question["url"] for question in shown["asked"] if question["url"]), None)
        return Elicitation(
            message=one_line("; ".join(question["message"] for question in shown["asked"]), _MESSAGE),
            url=None if url is None else one_line(url, _MESSAGE),
            form=_form(shown["asked"]),
            sealed=sealed,
            said=None if shown["said"] is None else one_line(shown["said"], _LINE),
        )

    async def reply(self, ask: CallTool | CheckCall) -> InputResponse | None:
        """Return the answer to send with a call; raises ArgumentsInvalid when it does not fit the question."""
        if not ask.question:
            return None
        question = input_required_of(await self.records.store.blobs.of(ask.run).unseal_json(ask.question))
        declined = ask.reply is None
        fault = None if declined else await asyncio.to_thread(question.fault, ask.reply)
        if fault is not None:
            raise ArgumentsInvalid(fault)
        return InputResponse(question, ask.reply, declined=declined)

    async def again(self, ask: CallTool, provider: str) -> Elicitation:
        """Show the question of a call again, so that a person can give another answer."""
        question = input_required_of(await self.records.store.blobs.of(ask.run).unseal_json(ask.question))
        return await self.keep(ask.run, provider, question)


def _form(asked: list[dict[str, Any]]) -> dict[str, Any] | None:
    if len(asked) == 1:
        return _lines(asked[0]["form"])
    properties = {question["key"]: _lines(question["form"]) or {"type": "null"} for question in asked}
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def _lines(value: Any) -> Any:
    """Return a form with each text on one line, so that none can imitate another part of the screen."""
    match value:
        case dict():
            return {one_line(str(key), _LINE): _lines(item) for key, item in value.items()}
        case list():
            return [_lines(item) for item in value]
        case str():
            return one_line(value, _LINE)
        case _:
            return value
