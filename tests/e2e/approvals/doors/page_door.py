"""Decide on the page, over HTTP: what a browser without scripts shows, and the forms that it sends."""

import json
from typing import Any
from urllib.parse import quote

from tests.e2e.approvals.doors.cases import Edit, End
from tests.e2e.approvals.doors.decoding import CODE, Shown
from tests.e2e.approvals.doors.door import Refused, Request
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

    async def _send(self, handle: Any, request: Request, by: str, fields: dict[str, str]) -> None:
        async with self.world.page.person(by) as person:
            answer = await person.post(f"{self._path(handle, request)}/decide", data=fields, follow_redirects=True)
        if answer.status_code != 200:
            raise Refused(answer.text.partition('role="alert">')[2][:300] or answer.text[:2000])

    async def look(self, handle: Any, request: Request, by: str) -> list[Shown]:
        return (await self._page(handle, request, by)).calls

    async def answer(self, handle: Any, request: Request, text: str, by: str) -> None:
        page = await self._page(handle, request, by)
        await self._send(handle, request, by, {**page.fields, "verdict": "answer", "answer": text})

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

    async def approve(self, handle: Any, request: Request, end: End, by: str) -> None:
        page = await self._page(handle, request, by)
        verdict = "dry_run" if end.dry_run else "approve"
        assert verdict in page.buttons, "all of it stands there, and it cannot be approved"
        fields = {**page.fields, "verdict": verdict}
        for index in end.leave_out:
            assert f"call.{index}=reject" in page.boxes
            fields[f"call.{index}"] = "reject"
        if end.no_processes:
            assert "no_processes=1" in page.boxes
            fields["no_processes"] = "1"
        if end.seconds:
            assert "step_timeout" in page.fields
            fields["step_timeout"] = str(end.seconds)
        await self._send(handle, request, by, fields)

    async def reject(self, handle: Any, request: Request, end: End, by: str) -> None:
        page = await self._page(handle, request, by)
        await self._send(handle, request, by, {**page.fields, "verdict": "reject", "comment": "not so"})

    async def leave(self, handle: Any) -> None:
        pass


def _label(name: str) -> str:
    """Return the label of an argument's field, as far as the cases have such names."""
    return "".join(_sign(sign) for sign in name).strip()


def _sign(sign: str) -> str:
    return {"\n": "⏎", "\u202e": "<U+202E>", "\u0430": "<U+0430>"}.get(sign, sign)


def _typable(value: Any) -> bool:
    """Return whether a person can type a value into a field for text."""
    return isinstance(value, str) and "\r" not in value and not CODE.search(value)
