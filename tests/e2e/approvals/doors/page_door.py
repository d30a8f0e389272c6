"""Decide on the page, over HTTP: what a browser without scripts shows, and the forms that it sends."""

import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.approvals.doors.cases import Edit, End
from tests.e2e.approvals.doors.decoding import CODE, Shown, plain
from tests.e2e.approvals.doors.door import Refused, Request, Told
from tests.e2e.approvals.doors.forms import KEPT, Field, Form
from tests.e2e.approvals.doors.pages import Page
from tests.e2e.approvals.doors.world import World
from tests.sizes import FULL


class PageDoor:
    """Open the page of a request, and send its forms."""

    at_once = False
    shows_record = FULL

    def __init__(self, world: World) -> None:
        self.world = world

    def _path(self, handle: Any, request: Request) -> str:
        return f"/requests/{quote(handle.id, safe='')}/{request['id']}"

    async def _page(self, handle: Any, request: Request, by: str, query: str = "") -> Page:
        async with self.world.page.person(by) as person:
            answer = await person.get(self._path(handle, request) + query)
        assert answer.status_code == 200, answer.text
        return Page(answer.text)

    async def _send(self, handle: Any, request: Request, by: str, fields: dict[str, Any]) -> str:
        async with self.world.page.person(by) as person:
            answer = await person.post(f"{self._path(handle, request)}/decide", data=fields, follow_redirects=True)
        if answer.status_code != 200:
            raise Refused(answer.text.partition('role="alert">')[2][:300] or answer.text[:2000])
        return answer.text

    async def look(self, handle: Any, request: Request, by: str) -> list[Shown]:
        return (await self._page(handle, request, by)).calls

    async def answer(self, handle: Any, request: Request, text: str, by: str) -> None:
        page = await self._page(handle, request, by)
        await self._send(handle, request, by, {**page.fields, "verdict": "answer", "answer": text})

    async def fill(self, handle: Any, request: Request, form: Form, by: str) -> None:
        page = await self._page(handle, request, by)
        fields: dict[str, Any] = {**page.fields, "verdict": "answer"}
        for field in form.fields:
            name = page.named(field)
            given = _filled(page, name, field)
            if given is not KEPT:
                fields[name] = given
        if form.wrong is not None:
            name = page.named(form.fields[form.wrong[0]])
            with pytest.raises(Refused):
                await self._send(handle, request, by, fields | {name: form.wrong[1]})
        await self._send(handle, request, by, fields)

    async def edit(self, handle: Any, request: Request, edit: Edit, by: str) -> None:
        page = await self._page(handle, request, by, f"?edit={edit.call}")
        fields = {**page.fields, "verdict": "modify"}
        named = {label.removesuffix(" (JSON)"): name for name, label in page.labels.items() if name.startswith("v.")}
        as_json = {name for name, label in page.labels.items() if label.endswith(" (JSON)")}
        for name in edit.drop:
            field = named[_label(name)]
            assert f"drop{field[1:]}=1" in page.boxes
            fields[f"drop{field[1:]}"] = "1"
        more = {}
        for name, value in edit.set.items():
            field = named.get(_label(name))
            if field is None or (field not in as_json and not _typable(value)):
                more[name] = value
            else:
                fields[field] = json.dumps(value) if field in as_json else value.replace("\n", "\r\n")
        if more:
            fields[f"more.{edit.call}"] = json.dumps(more)
        await self._send(handle, request, by, fields)

    async def approve(self, handle: Any, request: Request, end: End, by: str) -> Told:
        page = await self._page(handle, request, by)
        verdict = "dry_run" if end.dry_run else "approve"
        assert verdict in page.buttons, "all of it stands there, and it cannot be approved"
        fields = {**page.fields, "verdict": verdict}
        for index in end.leave_out:
            assert f"take.{index}=1" in page.boxes
            del fields[f"take.{index}"]
        if end.no_processes:
            assert "no_processes=1" in page.boxes
            fields["no_processes"] = "1"
        if end.seconds:
            assert "step_timeout" in page.fields
            fields["step_timeout"] = str(end.seconds)
        if end.remember:
            fields |= page.chosen(
                "remember", {"session": "in this session", "run": "in this run"}.get(end.remember, "")
            )
        return _told(await self._send(handle, request, by, fields | _which(page, end)))

    async def reject(self, handle: Any, request: Request, end: End, by: str) -> Told:
        page = await self._page(handle, request, by)
        verdict = "reject_never" if end.remember else "reject"
        assert verdict in page.buttons
        fields = {**page.fields, "verdict": verdict, "comment": "not so"}
        return _told(await self._send(handle, request, by, fields | _which(page, end)))

    async def leave(self, handle: Any) -> None:
        pass


def _which(page: Page, end: End) -> dict[str, str]:
    words = "any arguments" if end.any_arguments else "exactly the same arguments"
    return page.chosen("remember_arguments", words) if end.remember else {}


def _told(page: str) -> Told:
    return re.findall(r"remembered for (.+?): ([\w.]+)", Page(page).said)


def _filled(page: Page, name: str, field: Field) -> Any:
    """Return what is sent for a field of a form; KEPT for what stands there, which must be what it says."""
    if field.kind in {"choice", "choices", "boolean"}:
        return _picked(page, name, field)
    if field.filled is KEPT:
        default = field.schema.get("default", "")
        standing = page.fields[name].replace("\r\n", "\n")
        assert standing == (default if isinstance(default, str) else json.dumps(default)), (standing, field)
        return KEPT
    typed = field.filled if isinstance(field.filled, str) else json.dumps(field.filled)
    return typed.replace("\n", "\r\n") or '""'


def _picked(page: Page, name: str, field: Field) -> Any:
    """Return the options that a person picks by what they are called."""
    words = {"yes": True, "no": False} if field.kind == "boolean" else {}
    # A browser leaves out the blanks around the words of a choice.
    values = {str(title).strip(): value for value, title in field.choices} | words
    shown = {plain(option.said): option for option in page.options[name] if option.value or field.kind == "choices"}
    assert shown.keys() == values.keys(), (shown.keys(), values)
    if field.filled is KEPT:
        standing = [values[said] for said, option in shown.items() if option.marked]
        default = field.schema.get("default", KEPT)
        wanted = default if isinstance(default, list) else [] if default is KEPT else [default]
        assert standing == wanted, (standing, wanted)
    picked = field.value if isinstance(field.value, list) else [] if field.value is KEPT else [field.value]
    return [shown[said].value for said, value in values.items() if value in picked]


def _label(name: str) -> str:
    """Return the label of an argument's field, as far as the cases have such names."""
    return "".join(_sign(sign) for sign in name).strip()


def _sign(sign: str) -> str:
    return {"\n": "⏎", "\u202e": "<U+202E>", "\u0430": "<U+0430>"}.get(sign, sign)


def _typable(value: Any) -> bool:
    """Return whether a person can type a value into a field for text."""
    return isinstance(value, str) and "\r" not in value and not CODE.search(value)
