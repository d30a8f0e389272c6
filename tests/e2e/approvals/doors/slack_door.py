"""Decide in Slack, through its API: what stands in a message, the buttons, and the forms that they open."""

import asyncio
import html
import json
import re
from typing import Any

from tests.e2e.approvals.doors.cases import ANA, BO, Edit, End
from tests.e2e.approvals.doors.decoding import CODE, Shown, plain
from tests.e2e.approvals.doors.door import NotHere, Refused, Request, Told
from tests.e2e.approvals.doors.forms import KEPT, Field, Form, named
from tests.e2e.approvals.doors.screens import calls_in, unwrapped
from tests.e2e.approvals.doors.world import World
from tests.sizes import FULL
from tests.slack_blocks import elements_of

USERS = {ANA: "U1", BO: "U2"}
FENCE = "```"
LONGEST = 3000
LONGEST_OPTION = 70
"""What Slack takes in one field."""


class SlackDoor:
    """Read the message of a request, press its buttons, and fill in what opens."""

    at_once = False
    shows_record = FULL

    def __init__(self, world: World) -> None:
        self.slack = world.slack
        self._one_looks = asyncio.Lock()
        """What shows all of a request does not say which one that is."""

    async def _message(self, handle: Any, request: Request):
        """Wait for the message of a request with buttons."""

        def found():
            return next((each for each in self.slack.standing() if _is_about(each, handle.id, request["id"])), None)

        return await self.slack.until(found, 60)

    async def look(self, handle: Any, request: Request, by: str) -> list[Shown]:
        message = await self._message(handle, request)
        if "backstay.approve" in message.buttons:
            return _calls(message.blocks)
        # What a message leaves out is looked at behind a button, and approved elsewhere.
        async with self._one_looks:
            await self.slack.press(message, "backstay.more", user=USERS[by])
            view = await self.slack.view(" characters in all", user=USERS[by])
            self.slack.views.pop(view.id)
        shown = calls_in(_lines(view.body["blocks"]), head=0, body=4, bare=True)
        # What was changed stands in the message.
        changed = {call.index: call for call in _calls(message.blocks)}
        for each in shown:
            if each.index in changed:
                each.changed, each.changed_by = changed[each.index].changed, changed[each.index].changed_by
        return shown

    async def answer(self, handle: Any, request: Request, text: str, by: str) -> None:
        message = await self._message(handle, request)
        await self._sent(await self._opened(message, "backstay.answer", by), {"answer": text})

    async def fill(self, handle: Any, request: Request, form: Form, by: str) -> None:
        message = await self._message(handle, request)
        view = await self._opened(message, "backstay.answer", by)
        try:
            values = dict(_filled(view, field) for field in form.fields)
        except NotHere:
            self.slack.views.pop(view.id)
            raise
        values = {name: value for name, value in values.items() if value is not KEPT}
        if form.wrong is not None and form.fields[form.wrong[0]].kind != "boolean":
            block, _ = _filled(view, form.fields[form.wrong[0]])
            delivery = await self.slack.submit(view, values | {block: form.wrong[1]})
            assert delivery.answer["response_action"] == "errors", delivery.answer
            assert [*delivery.answer["errors"]] == [block]
        await self._sent(view, values)

    async def edit(self, handle: Any, request: Request, edit: Edit, by: str) -> None:
        message = await self._message(handle, request)
        view = await self._opened(message, "backstay.edit", by)
        if len(request["calls"]) > 1:
            delivery = await self.slack.submit(view, {"call": str(edit.call)})
            assert delivery.answer["response_action"] == "update", delivery.answer
            (view,) = [
                each
                for each in self.slack.views.values()
                if each.body["callback_id"] == "backstay.edit" and _key(each) == _key(view)
            ]
        try:
            await self._sent(view, _typed(view, edit))
        except NotHere:
            self.slack.views.pop(view.id)
            raise

    async def approve(self, handle: Any, request: Request, end: End, by: str) -> Told | None:
        message = await self._message(handle, request)
        if "backstay.approve" not in message.buttons or (
            end.remember and (end.leave_out or end.no_processes or end.seconds)
        ):
            raise NotHere
        if end.remember:
            return await self._remembered(message, request, end, by)
        if end.dry_run:
            await self.slack.press(message, "backstay.dry_run", user=USERS[by])
        elif end.leave_out or end.no_processes or end.seconds:
            view = await self._opened(message, "backstay.choose", by)
            values: dict[str, Any] = {"leave_out": [str(index) for index in sorted(end.leave_out)]}
            values |= {"processes": "no"} if end.no_processes else {}
            values |= {"timeout_s": str(end.seconds)} if end.seconds else {}
            names = {each["action_id"] for block in view.body["blocks"] for each in elements_of(block)}
            await self._sent(view, {name: value for name, value in values.items() if name in names})
            return None
        else:
            await self.slack.press(message, "backstay.approve", user=USERS[by])
        await self._decided(handle, request, by)
        return None

    async def _remembered(self, message: Any, request: Request, end: End, by: str) -> Told:
        """Say for how long a decision holds, and for which calls; what is told is what the person hears then."""
        view = await self._opened(message, "backstay.always", by)
        (choice,) = [each for block in view.body["blocks"] for each in elements_of(block) if _picks(each, "remember")]
        (said,) = [each["text"]["text"] for each in choice["options"] if each["value"] == end.remember]
        assert said.partition(",")[0] == ("Reject" if end.verdict == "reject" else "Approve")
        which = "any" if end.any_arguments else "these"
        await self._sent(view, {"remember": end.remember, "arguments": which})
        named = f"{_value(message, 'backstay.always')['w']} {request['id']}"
        told = await self.slack.message(f"{named}: remembered for", within_s=150)
        assert told.to == USERS[by]
        return re.findall(r"remembered for (.+?): ([\w.]+)", html.unescape(told.shown))

    async def reject(self, handle: Any, request: Request, end: End, by: str) -> Told | None:
        message = await self._message(handle, request)
        if end.remember and "backstay.always" in message.buttons:
            return await self._remembered(message, request, end, by)
        view = await self._opened(message, "backstay.reject", by)
        await self._sent(view, {"comment": "not so"})
        return None

    async def leave(self, handle: Any) -> None:
        pass

    async def _opened(self, message: Any, action: str, by: str):
        """Press a button, and wait for the form that it opens."""
        before = set(self.slack.views)
        about = _value(message, action)
        await self.slack.press(message, action, user=USERS[by])

        def opened():
            views = [view for number, view in self.slack.views.items() if number not in before]
            return next((view for view in views if _named(about) == _named(_key(view))), None)

        return await self.slack.until(opened, 60)

    async def _sent(self, view: Any, values: dict[str, Any]) -> None:
        delivery = await self.slack.submit(view, values)
        if (delivery.answer or {}).get("response_action") == "errors":
            self.slack.views.pop(view.id)
            raise Refused(str(delivery.answer["errors"]))

    async def _decided(self, handle: Any, request: Request, by: str, within_s: float = 150) -> None:
        """Wait until a press has counted: the request waits no more, or has this person's vote."""
        async with asyncio.timeout(within_s):
            while True:
                waits = [each for each in await handle.query("pending") if each["id"] == request["id"]]
                votes = (
                    waits[0]["decided"]
                    + [
                        vote
                        for part in (waits[0]["proposal"] or {}).get("parts", ())
                        for vote in part.get("decided", ())
                    ]
                    if waits
                    else []
                )
                if not waits or any(vote["by"] == by for vote in votes):
                    return
                await asyncio.sleep(0.1)


def _picks(element: dict[str, Any], name: str) -> bool:
    return element.get("action_id") == name


def _filled(view: Any, field: Field) -> tuple[str, Any]:
    """Return the block of a field of a form, and what a person puts there; KEPT for what stands there."""
    blocks = [block for block in view.body["blocks"] if block["type"] == "input"]
    (block,) = [block for block in blocks if named(html.unescape(block["label"]["text"]), field)]
    name, element = block["block_id"], block["element"]
    if field.kind in {"choice", "choices", "boolean"}:
        return name, _picked(element, field)
    default = field.schema.get("default", "")
    standing = element.get("initial_value", "")
    assert standing == (default if isinstance(default, str) else json.dumps(default)), (standing, field)
    if field.filled is KEPT:
        if standing != standing.strip():
            raise NotHere
        return name, KEPT
    typed = field.filled if isinstance(field.filled, str) else json.dumps(field.filled)
    if len(typed) > LONGEST or typed != typed.strip() or not typed:
        raise NotHere
    return name, typed


def _picked(element: dict[str, Any], field: Field) -> Any:
    """Return the options that a person picks by what they are called."""
    words = {"Yes": True, "No": False} if field.kind == "boolean" else {}
    values = {str(title): value for value, title in field.choices} | words
    shown = {plain(each["text"]["text"]): each["value"] for each in element["options"]}
    if any(len(said) > LONGEST_OPTION for said in values):
        # What an option has no room for stands in the hint; whoever would not read that decides elsewhere.
        raise NotHere
    assert shown.keys() == values.keys(), (shown, values)
    if field.filled is KEPT:
        marked = element.get("initial_options", [element["initial_option"]] if "initial_option" in element else [])
        standing = [values[plain(each["text"]["text"])] for each in marked]
        default = field.schema.get("default", KEPT)
        assert standing == (default if isinstance(default, list) else [] if default is KEPT else [default])
        return KEPT
    picked = [shown[said] for said, value in values.items() if value == field.filled]
    return (
        [shown[said] for said, value in values.items() if value in field.filled]
        if field.kind == "choices"
        else picked[0]
    )


def _key(view: Any) -> dict[str, str]:
    return json.loads(view.body["private_metadata"] or '{"key": {}}')["key"]


def _named(key: dict[str, str]) -> tuple[str | None, str | None]:
    return key.get("workflow_id"), key.get("request_id")


def _value(message: Any, action: str) -> dict[str, str]:
    for block in message.blocks:
        for each in block.get("elements", ()):
            if each.get("type") == "button" and each.get("action_id") == action:
                return json.loads(each["value"])
    raise NotHere


def _is_about(message: Any, workflow_id: str, request_id: str) -> bool:
    """Return whether the buttons of a message are about a request."""
    buttons = [each for block in message.blocks for each in block.get("elements", ()) if each.get("type") == "button"]
    keys = [json.loads(each["value"]) for each in buttons if each.get("value")]
    return any(_named(key) == (workflow_id, request_id) for key in keys)


def _lines(blocks: list[dict[str, Any]]) -> list[str]:
    """Return the lines that stand as code in blocks, as people read them."""
    texts = [block["text"]["text"] for block in blocks if block["type"] == "section"]
    codes = [text for text in texts if text.startswith(f"{FENCE}\n")]
    lines = [line for text in codes for line in text.removeprefix(f"{FENCE}\n").removesuffix(f"\n{FENCE}").split("\n")]
    return unwrapped([html.unescape(line) for line in lines], (0, 4, 6))


def _calls(blocks: list[dict[str, Any]]) -> list[Shown]:
    return calls_in(_lines(blocks), head=0, body=4)


def _typed(view: Any, edit: Edit) -> dict[str, str]:
    """Return what a person types into the form of a call; raises NotHere for what it has no field for."""
    values = {}
    for name, value in edit.set.items():
        block = next((block for block in view.body["blocks"] if block["block_id"] == f"argument.{name}"), None)
        if block is None or edit.drop:
            raise NotHere
        as_json = "hint" in block
        if not as_json and (not isinstance(value, str) or CODE.search(value)):
            raise NotHere
        typed = json.dumps(value) if as_json else value
        if len(typed) > LONGEST or typed != typed.strip():
            # Slack cuts white space off the ends of what is typed.
            raise NotHere
        values[f"argument.{name}"] = typed
    if not values:
        raise NotHere
    return values
