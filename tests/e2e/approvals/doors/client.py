"""Decide through the client, as a service does: what it was given is what it shows."""

from typing import Any

import pytest

from backstay.approvals.approval import CallVerdict
from backstay.errors import BackstayError
from tests.e2e.approvals.doors.cases import Edit, End
from tests.e2e.approvals.doors.decoding import Shown, plain_all
from tests.e2e.approvals.doors.door import HOLDS, Refused, Request, Told
from tests.e2e.approvals.doors.forms import Form
from tests.e2e.approvals.doors.world import World
from tests.sizes import FULL


class Client:
    """Look at requests as the client returns them, whole where they are cut."""

    at_once = True
    shows_record = FULL

    def __init__(self, world: World) -> None:
        self.world = world

    def _run(self, handle: Any):
        return self.world.backstay.run(handle.id)

    async def _request(self, handle: Any, request: Request):
        run = self._run(handle)
        return run, next(each for each in await run.pending() if each.id == request["id"])

    async def look(self, handle: Any, request: Request, by: str) -> list[Shown]:
        run, found = await self._request(handle, request)
        whole = {index: call.arguments for index, call in (await run.whole(found)).items()}
        calls = {call.index: call for call in found.calls}
        shown = [Shown(call.index, call.tool, values=call.arguments) for call in found.calls]
        if found.proposal is not None:
            steps = [Shown(step.idx, step.action, values=step.arguments) for step in found.proposal.steps]
            shown += [step for step in steps if step.index not in calls]
        for each in shown:
            if each.index in whole:
                each.values, each.escaped = whole[each.index], False
            if each.index in calls:
                each.changed = list(calls[each.index].changed)
                each.changed_by = calls[each.index].changed_by
        return shown

    async def answer(self, handle: Any, request: Request, text: str, by: str) -> None:
        await self._run(handle).answer(request["id"], text, by=by)

    async def fill(self, handle: Any, request: Request, form: Form, by: str) -> None:
        run, found = await self._request(handle, request)
        assert plain_all(found.answer_schema) == form.schema
        if form.wrong is not None:
            at, said = form.wrong
            with pytest.raises(BackstayError, match="answer"):
                await run.answer(found, form.answer | {form.fields[at].name: said}, by=by)
        await run.answer(found, form.answer, by=by)

    async def edit(self, handle: Any, request: Request, edit: Edit, by: str) -> None:
        run, found = await self._request(handle, request)
        more: dict[str, Any] = {} if found.proposal is not None else {"ask_again": True}
        try:
            answer = await run.modify(found, {edit.call: edit.set}, by=by, without={edit.call: edit.drop}, **more)
        except BackstayError as error:
            raise Refused(str(error)) from None
        assert found.proposal is not None or answer["asked_again"]

    async def approve(self, handle: Any, request: Request, end: End, by: str) -> Told:
        run, found = await self._request(handle, request)
        more: dict[str, Any] = {}
        if end.change is not None:
            try:
                await run.decide(changed_at_once(request, end, by))
            except BackstayError as error:
                raise Refused(str(error)) from None
            return []
        if out := [call.index for call in found.calls if call.index in end.leave_out]:
            more["calls"] = {index: CallVerdict(verdict="reject") for index in out}
        if found.proposal is not None:
            more |= {"option": "approve_per_step"} if out else {}
            more |= {"option": "dry_run_only"} if end.dry_run else {}
            toggles: dict[str, Any] = {"external_processes": False} if end.no_processes else {}
            toggles |= {"limits": {"timeout_s": end.seconds}} if end.seconds else {}
            more |= {"toggles": toggles} if toggles else {}
        try:
            return told_of(await run.approve(found, by=by, **more, **remembered(end)))
        except BackstayError as error:
            raise Refused(str(error)) from None

    async def reject(self, handle: Any, request: Request, end: End, by: str) -> Told:
        answer = await self._run(handle).reject(request["id"], by=by, comment="not so", **remembered(end))
        return told_of(answer)

    async def leave(self, handle: Any) -> None:
        pass


def remembered(end: End) -> dict[str, str]:
    """Return what a decision says of remembering it."""
    which = "any" if end.any_arguments else "these"
    return {"remember": end.remember, "remember_arguments": which} if end.remember else {}


def told_of(answer: dict[str, Any]) -> Told:
    return [(HOLDS[line["holds"]], line["tool"]) for line in answer.get("remembered", ())]


def verdicts(request: Request, end: End) -> dict[str, Any]:
    """Return a verdict for every call of a request: one is changed, and the others are approved or left out."""
    said: dict[str, Any] = {
        str(call["index"]): {"verdict": "reject" if call["index"] in end.leave_out else "approve"}
        for call in request["calls"]
    }
    if end.change is not None:
        change = {"verdict": "modify", "arguments": end.change.set}
        said[str(end.change.call)] = change | ({"without": list(end.change.drop)} if end.change.drop else {})
    return said


def changed_at_once(request: Request, end: End, by: str) -> dict[str, Any]:
    """Return the decision that names every call."""
    digest = {"args_digest": request["args_digest"]} if request["args_digest"] else {}
    return {"request_id": request["id"], "verdict": "modify", "by": by, "calls": verdicts(request, end), **digest}
