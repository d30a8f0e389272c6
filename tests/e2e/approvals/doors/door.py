"""Play a case through a door: look, change, look again, decide, and compare what was sent with what was shown last."""

import asyncio
import re
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tests.e2e.approvals.doors.cases import ANA, BO, Case, Edit, End
from tests.e2e.approvals.doors.comparing import compare, made_good, made_of, same
from tests.e2e.approvals.doors.decoding import Shown, read
from tests.e2e.approvals.doors.record import Said, check_export, check_record, check_show
from tests.e2e.approvals.doors.world import World, asked, keyed
from tests.engine import ended

_REPEATED = re.compile(r"(.{1,8}?)\1{30,}", re.DOTALL)
Request = dict[str, Any]


class NotHere(Exception):
    """A door does not offer this; nothing was done."""


class Refused(Exception):
    """What a person did was refused, and they were told why."""


class Door(Protocol):
    """A place where people decide; calls are named by their place in the request."""

    at_once: bool
    """Whether people can change a call and approve all of them in one breath."""
    shows_record: bool
    """Whether they look at the record with a command."""

    async def look(self, handle: Any, request: Request, by: str) -> list[Shown]:
        """Return what a person sees of the calls of a request."""

    async def answer(self, handle: Any, request: Request, text: str, by: str) -> None:
        """Answer a question."""

    async def edit(self, handle: Any, request: Request, edit: Edit, by: str) -> None:
        """Change a call, and have it asked again."""

    async def approve(self, handle: Any, request: Request, end: End, by: str) -> None:
        """Approve, as far as the end says."""

    async def reject(self, handle: Any, request: Request, end: End, by: str) -> None:
        """Reject."""

    async def leave(self, handle: Any) -> None:
        """Leave the place, at the end of a case."""


@dataclass
class Play:
    """Hold how far a case has come."""

    world: World
    door: Door
    case: Case
    handle: Any
    wanted: dict[int, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """The calls that the run wants to make, as people have changed them."""
    shown: dict[int, Shown] = field(default_factory=dict)
    """What stood of each on the last screen that showed it."""
    places: dict[int, int] = field(default_factory=dict)
    """Which of them each call of the request is that waits."""
    said: list[Said] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    kept: frozenset[int] = frozenset()
    """The calls that were approved."""
    refused: int = 0
    late: int = 0

    async def whole(self) -> Counter[str]:
        """Play the case, and return how it ended, and how often what was done."""
        case, handle = self.case, self.handle
        answered = await self.answer()
        requests = await asked(handle, answered, 1 if case.other is None else 2)
        if not requests:
            await ended(handle)
            assert self.received() == []
            return Counter({"refused by the engine": 1})
        request = _chosen(requests, case)
        self.known = {request["id"]} if case.other is None else {each["id"] for each in requests}
        steps = (case.other if case.picks_other else None) or case.calls
        token = self.world.handles[case.name]
        self.known |= answered
        self.wanted = {at: (tool, keyed(given, token, case.answer)) for at, (tool, given) in enumerate(steps)}
        await self.see(request)
        for edit in case.edits:
            request = await self.edit(request, edit)
        outcome = await self.decide(request, case.end)
        if case.other is not None and "reject" in self.said[-1].verdict:
            # The other plan may still be approved.
            for left in await handle.query("pending"):
                await self._rejected(left, case.end, ANA, "")
        while late := await asked(handle, self.known):
            # Another rule, or what a reference brought, is asked about by itself.
            self.known.add(late[0]["id"])
            self.late += 1
            await self.see(late[0])
            await self.decide(late[0], End(way=case.end.way))
        result = await ended(handle)
        made = made_of(self.kept, self.wanted, case.end)
        compare([shown for at, shown in self.shown.items() if at in made], self.received())
        await check_record(self.world, handle, self.said, result)
        await check_export(self.world, handle, self.said)
        if self.door.shows_record:
            await check_show(self.world, handle, self.said)
        changes = sum(bool(each.changed) for each in self.said)
        return Counter({outcome: 1, "changed": changes, "refused": self.refused, "asked later": self.late})

    async def answer(self) -> set[str]:
        """Answer what the run asks first, if it asks anything; return the request in which it does."""
        if not self.case.answer:
            return set()
        (question,) = await asked(self.handle, set())
        await self.door.answer(self.handle, question, self.case.answer, ANA)
        self.said.append(Said(ANA, question["id"], "answer", {}))
        return {question["id"]}

    def received(self) -> list[tuple[str, dict[str, Any]]]:
        return self.world.received(self.handle, self.case)

    async def see(self, request: Request) -> None:
        """Look at a request, and find in what is shown the calls that the run wants."""
        seen = await self.door.look(self.handle, request, ANA)
        indexes = [shown.index for shown in seen]
        assert {call["index"] for call in request["calls"]} <= set(indexes), f"not all is shown: {indexes}"
        self.places = {}
        for shown in seen:
            left = self.wanted.keys() - self.places.values()
            at = next((at for at in sorted(left) if self._is(request, shown, at)), None)
            assert at is not None, f"nobody wants {shown}, but {self.wanted}"
            self.places[shown.index] = at
            self.shown[at] = shown

    def _is(self, request: Request, shown: Shown, at: int) -> bool:
        if request["proposal"] is not None and shown.index != at:
            return False
        tool, arguments = self.wanted[at]
        if request["proposal"] is None and self.case.kind == "plan":
            # What references bring is known by now.
            arguments = made_good(arguments, self.world.handles[self.case.name])
        return shown.tool == tool and same(read(shown, arguments), arguments)

    async def edit(self, request: Request, edit: Edit) -> Request:
        """Change a call as a person does; it stands before them again before anything is sent."""
        place = next((place for place, at in self.places.items() if at == edit.call), None)
        if place not in {call["index"] for call in request["calls"]}:
            return request
        edit = replace(edit, call=place, set=keyed(edit.set, self.world.handles[self.case.name]))
        at = self.places[place]
        tool, before = self.wanted[at]
        after = edit.applied(before)
        if same(after, before):
            return request
        try:
            await self.door.edit(self.handle, request, edit, ANA)
        except (Refused, NotHere):
            (still,) = [each for each in await self.handle.query("pending") if each["id"] == request["id"]]
            assert still["digest"] == request["digest"]
            self.refused += 1
            return request
        again = await self._again()
        assert self.received() == []
        self.known.add(again["id"])
        self.wanted[at] = (tool, after)
        await self.see(again)
        if again["proposal"] is None:
            assert self.shown[at].changed, f"the change is not shown: {self.shown[at]}"
            assert ANA in self.shown[at].changed_by
        names = tuple(name for name in before | after if not same(before.get(name, ...), after.get(name, ...)))
        changed = {place: (names, next(c["args_digest"] for c in again["calls"] if self.places[c["index"]] == at))}
        self.said.append(Said(ANA, request["id"], "modify", {place: "modify"}, changed))
        return again

    async def _again(self, within_s: float = 30) -> Request:
        """Wait for the request in which a change is shown."""
        async with asyncio.timeout(within_s):
            while True:
                for request in await asked(self.handle, self.known):
                    if request["proposal"] is not None or any(call.get("changed") for call in request["calls"]):
                        return request
                await asyncio.sleep(0.05)

    async def decide(self, request: Request, end: End) -> str:
        """Have one or two people decide; return what came of it."""
        out = frozenset(place for place, at in self.places.items() if at in end.leave_out)
        end = replace(end, leave_out=out & {call["index"] for call in request["calls"]})
        if len(end.leave_out) == len(request["calls"]):
            end = replace(end, leave_out=frozenset())
        if (change := await self._with_change(request, end)) is not None:
            return change
        people = [ANA, BO] if _quorum(request) > 1 else [ANA]
        for number, by in enumerate(people):
            if number:
                await self.door.look(self.handle, request, by)
            mine = replace(end, change=None) if number == 0 else End(way=end.way)
            if end.verdict == "reject" or (number and end.dissents):
                return await self._rejected(request, end, by, "rejected")
            try:
                await self.door.approve(self.handle, request, mine, by)
            except NotHere:
                return await self._rejected(request, end, by, "not approved here")
            self.said.append(_said(request, mine, by, "approve"))
        if not end.dry_run:
            self.kept |= {at for place, at in self.places.items() if place not in end.leave_out}
        return "dry run" if end.dry_run else "approved"

    async def _with_change(self, request: Request, end: End) -> str | None:
        """Approve with a change that the same decision names, if the case wants that, and it is taken."""
        place = next((place for place, at in self.places.items() if end.change and at == end.change.call), None)
        if end.change is None or place is None or not self.door.at_once or place in end.leave_out:
            return None
        at = self.places[place]
        change = replace(end.change, call=place, set=keyed(end.change.set, self.world.handles[self.case.name]))
        (tool, before), after = self.wanted[at], change.applied(self.wanted[at][1])
        if same(after, before):
            return None
        try:
            await self.door.approve(self.handle, request, replace(end, change=change), ANA)
        except (Refused, NotHere):
            self.refused += 1
            return None
        names = tuple(name for name in before | after if not same(before.get(name, ...), after.get(name, ...)))
        said = _said(request, end, ANA, "approve")
        self.said.append(
            replace(said, verdict="modify", calls=said.calls | {place: "modify"}, changed={place: (names, "")})
        )
        self.wanted[at], self.shown[at] = (tool, after), Shown(place, tool, values=after, escaped=False)
        self.kept |= {self.places[index] for index in said.calls if index not in end.leave_out}
        return "approved with a change"

    async def _rejected(self, request: Request, end: End, by: str, outcome: str) -> str:
        await self.door.reject(self.handle, request, end, by)
        self.said.append(_said(request, end, by, "reject"))
        return outcome


def _chosen(requests: list[Request], case: Case) -> Request:
    """Return the request that the case decides."""
    if case.other is None:
        return requests[0]
    begins = "other plan" if case.picks_other else "plan"
    return next(each for each in requests if each["proposal"]["title"].startswith(begins))


def _quorum(request: Request) -> int:
    parts = (request["proposal"] or {}).get("parts", [])
    return max([request["quorum"], *(part["quorum"] for part in parts)])


def _said(request: Request, end: End, by: str, verdict: str) -> Said:
    """Return a decision as the record must have it."""
    asked_about = sorted(call["index"] for call in request["calls"])
    out = tuple(sorted(end.leave_out)) if verdict == "approve" else ()
    calls = {index: "reject" if index in out else verdict for index in asked_about}
    if request["proposal"] is None or verdict == "reject":
        return Said(by, request["id"], verdict, calls)
    toggles: dict[str, Any] = {"external_processes": False} if end.no_processes else {}
    toggles |= {"limits": {"timeout_s": float(end.seconds)}} if end.seconds else {}
    return Said(by, request["id"], verdict, calls, {}, end.dry_run, out, toggles)


async def play(world: World, door: Door, case: Case) -> Counter[str]:
    """Play a case, and return how it ended; raises AssertionError for what was not as it was shown."""
    played = Play(world, door, case, await world.start(case))
    try:
        return await played.whole()
    except Exception as error:
        where = "; ".join(f"{at.name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)[-3:])
        seen = "\n".join(map(str, played.shown.values()))
        said = f"{error!r} at {where}\n{case}\nshown last: {seen}\nsaid: {played.said}\nreceived: {played.received()}"
        raise AssertionError(_REPEATED.sub(r"\1(and so on)", said)) from error
    finally:
        await door.leave(played.handle)


async def at_once(plays: list[Any], most: int) -> list[Any]:
    """Play cases side by side, at most so many at once, to the end of all; raises all faults."""
    gate = asyncio.Semaphore(most)

    async def alone(playing):
        async with gate:
            return await playing

    done = await asyncio.gather(*map(alone, plays), return_exceptions=True)
    faults = [each for each in done if isinstance(each, BaseException)]
    if faults:
        raise AssertionError(f"{len(faults)} of {len(done)} cases fail:\n" + "\n\n".join(map(str, faults)))
    return done
