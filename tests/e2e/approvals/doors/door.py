"""Play a case through a door: look, change, look again, decide, and compare what was sent with what was shown last."""

import asyncio
import json
import re
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from backstay.task.event import Event
from tests.e2e.approvals.doors.cases import ANA, BO, Case, Edit, End
from tests.e2e.approvals.doors.comparing import compare, made_good, made_of, same
from tests.e2e.approvals.doors.decoding import Shown, read
from tests.e2e.approvals.doors.details import check_details
from tests.e2e.approvals.doors.forms import Form
from tests.e2e.approvals.doors.record import Said, check_export, check_record, check_show, events_of
from tests.e2e.approvals.doors.world import POST, STAMP, World, asked, keyed
from tests.engine import ended

KNOWN = {"desk.post": {*POST["properties"]}, "desk.stamp": {*STAMP["properties"]}}
"""The arguments of tools that have no others."""
_REPEATED = re.compile(r"(.{1,8}?)\1{30,}", re.DOTALL)
Request = dict[str, Any]
Call = tuple[str, dict[str, Any]]
Told = list[tuple[str, str]]
"""What people were told to be remembered: for what, and of which tool."""
HOLDS = {"": "nothing yet", "run": "this run", "session": "this session"} | dict.fromkeys(
    ("always", "never"), "every run of this user"
)


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

    async def fill(self, handle: Any, request: Request, form: Form, by: str) -> None:
        """Fill in a form, first with what does not fit, if it says so, which must be refused."""

    async def edit(self, handle: Any, request: Request, edit: Edit, by: str) -> None:
        """Change a call, and have it asked again."""

    async def approve(self, handle: Any, request: Request, end: End, by: str) -> Told | None:
        """Approve, as far as the end says; return what is remembered, None where it was not told."""

    async def reject(self, handle: Any, request: Request, end: End, by: str) -> Told | None:
        """Reject; return what is remembered."""

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
    decided: set[int] = field(default_factory=set)
    """Those that were decided when it was said that this is to be remembered."""
    told: Told | None = None
    """What the screen said would be remembered."""
    unasked: set[int] = field(default_factory=set)
    """The later calls that were remembered, so that nobody is asked about them."""
    first_later: int = 1000
    """From which number on the later calls are counted."""
    refused: int = 0
    late: int = 0
    pinged: int = 0
    """How many calls of the plugin an earlier run of the case made."""

    async def whole(self) -> Counter[str]:
        """Play the case, and return how it ended, and how often what was done."""
        case, handle = self.case, self.handle
        answered = await self.answer() | await self.fill()
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
        ways = self.remember()
        await self.decide_the_rest()
        await ended(handle)
        self.compared(case.end)
        if case.end.remember:
            await self.obeyed(ways)
        await check_record(self.world, handle, self.said)
        await check_export(self.world, handle, self.said)
        if self.door.shows_record:
            await check_show(self.world, handle, self.said)
        changes = sum(bool(each.changed) for each in self.said)
        counts = {"changed": changes, "refused": self.refused, "asked later": self.late, "unasked": len(self.unasked)}
        return Counter({outcome: 1, "filled in": case.form is not None, **counts})

    async def decide_the_rest(self) -> None:
        """Approve what is asked about by itself: what another rule is about, what a reference brought, what is new."""
        while late := await asked(self.handle, self.known):
            self.known.add(late[0]["id"])
            self.late += 1
            await self.see(late[0])
            assert not self.unasked & {*self.places.values()}, f"asked about what is remembered: {late[0]}"
            await self.decide(late[0], End(way=self.case.end.way))

    def compared(self, end: End) -> None:
        early = {at: call for at, call in self.wanted.items() if at < self.first_later}
        made = made_of(self.kept & early.keys(), early, end) | {at for at in self.kept if at >= self.first_later}
        compare([shown for at, shown in self.shown.items() if at in made], self.received())

    async def answer(self) -> set[str]:
        """Answer what the run asks first, if it asks anything; return the request in which it does."""
        if not self.case.answer:
            return set()
        (question,) = await asked(self.handle, set())
        await self.door.answer(self.handle, question, self.case.answer, ANA)
        self.said.append(Said(ANA, question["id"], "answer", {}))
        return {question["id"]}

    async def fill(self) -> set[str]:
        """Fill in the form that a server asks for, or decline it; return the request."""
        form = self.case.form
        if form is None:
            return set()
        known = {each.request for each in self.said}
        (question,) = await asked(self.handle, known)
        assert form.message in question["question"]
        await check_details(self.handle, [question])
        told = await self._filled(question, form)
        verdict = "answer" if "content" in told else "reject"
        self.said.append(Said(ANA, question["id"], verdict, {}))
        await asked(self.handle, {*known, question["id"]})
        (found,) = self.world.answers(form)
        assert same({"content": {}, **told}, {"content": {}, **found}), (told, found)
        return {question["id"]}

    async def _filled(self, question: Request, form: Form) -> dict[str, Any]:
        """Fill in a form, or decline what cannot all be said at the door; return what the server is to be told."""
        if not form.declined:
            with suppress(NotHere):
                await self.door.fill(self.handle, question, form, ANA)
                return {"action": "accept", "content": form.answer}
        await self.door.reject(self.handle, question, End("reject", way=self.case.end.way), ANA)
        return {"action": "decline"}

    def remember(self) -> set[tuple[str, str]]:
        """Have the run make later calls, of which some are remembered; return by how many lines, each by what it is."""
        end, token = self.case.end, self.world.handles[self.case.name]
        if not end.remember:
            return set()
        covered = [self.wanted[at] for at in sorted(self.decided)] if self.told is not None else []
        later = self.world.later[self.case.name]
        self.first_later, ways = max(self.wanted) + 1, set[tuple[str, str]]()
        for at, (tool, arguments) in enumerate(later, self.first_later):
            self.wanted[at] = (tool, keyed(arguments, token))
            line = next((which for which in map(self._line, covered) if which in self._lines(tool, arguments)), None)
            if line is not None:
                ways.add(line)
                self.unasked.add(at)
                self.shown[at] = Shown(at, tool, values=self.wanted[at][1], escaped=False)
        if end.verdict == "approve":
            self.kept |= self.unasked
        return ways

    def _prepare(self, covered: set[int]) -> None:
        """Say what the run makes later, before it can get there."""
        if self.case.end.remember and self.case.name not in self.world.later:
            made = [self.wanted[at] for at in sorted(self.wanted)]
            self.world.later[self.case.name] = later_calls(made, [self.wanted[at] for at in sorted(covered)])

    def _line(self, call: tuple[str, dict[str, Any]]) -> tuple[str, str]:
        return (call[0], "" if self.case.end.any_arguments else json.dumps(call[1], sort_keys=True))

    def _lines(self, tool: str, arguments: dict[str, Any]) -> set[tuple[str, str]]:
        return {(tool, ""), (tool, json.dumps(arguments, sort_keys=True))}

    async def obeyed(self, ways: set[tuple[str, str]]) -> None:
        """Assert that what is remembered was told as it is, is obeyed and recorded, here and where else it holds."""
        end = self.case.end
        events = await events_of(self.world, self.handle)
        lines = {event.data["line"] for event in events if event.name == "policy.remembered"}
        if self.told is not None:
            # Of a step that is not made nothing is remembered.
            tools = {self.wanted[at][0] for at in self.decided} - ({"pinger.ping"} if end.no_processes else set())
            assert {tool for _, tool in self.told} == tools, (self.told, tools)
            assert {holds for holds, _ in self.told} == {HOLDS[end.remember]}, self.told
        _check_obeyed(events, end, lines, ways)
        if end.remember == "run" or self.told is None:
            return
        pinged = sum(tool == "pinger.ping" for tool, _ in self.received())
        again = Play(self.world, self.door, self.case, await self.world.start_again(self.case), pinged=pinged)
        again.wanted = {at: call for at, call in self.wanted.items() if at >= self.first_later}
        again.first_later = self.first_later
        again.unasked = self.unasked
        again.shown = {at: self.shown[at] for at in self.unasked}
        again.kept = frozenset(self.unasked) if end.verdict == "approve" else frozenset()
        await again.decide_the_rest()
        await ended(again.handle)
        again.compared(End())
        _check_obeyed(await events_of(self.world, again.handle), end, lines, ways)
        await check_record(self.world, again.handle, again.said)
        await self.door.leave(again.handle)

    def received(self) -> list[tuple[str, dict[str, Any]]]:
        return self.world.received(self.handle, self.case, self.pinged)

    async def see(self, request: Request) -> None:
        """Look at a request, and find in what is shown the calls that the run wants."""
        seen = await self.door.look(self.handle, request, ANA)
        indexes = [shown.index for shown in seen]
        assert {call["index"] for call in request["calls"]} <= set(indexes), f"not all is shown: {indexes}"
        self.places = {}
        for shown in seen:
            left = self.wanted.keys() - self.places.values()
            # A later call may be one that was made before: what nobody has approved comes first.
            later = {at for at in left if at >= self.first_later and at not in self.kept}
            order = sorted(left, key=lambda at: (at not in later, at))
            at = next((at for at in order if self._is(request, shown, at)), None)
            assert at is not None, f"nobody wants {shown}, but {self.wanted}"
            self.places[shown.index] = at
            self.shown[at] = shown
        await check_details(self.handle, await self.handle.query("pending"))

    def _is(self, request: Request, shown: Shown, at: int) -> bool:
        if request["proposal"] is not None and shown.index != at:
            return False
        arguments = self._of_request(request, at)
        return shown.tool == self.wanted[at][0] and same(read(shown, arguments), arguments)

    def _of_request(self, request: Request, at: int) -> dict[str, Any]:
        """Return the arguments of a call as a request must show them."""
        arguments = self.wanted[at][1]
        if request["proposal"] is None and self.case.kind == "plan":
            # What references bring is known by now.
            return made_good(arguments, self.world.handles[self.case.name])
        return arguments

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
        unknown = {*edit.set} - KNOWN.get(tool, {*edit.set})
        assert not unknown, f"{tool} has no {unknown}, and it was taken"
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

    async def _again(self, within_s: float = 150) -> Request:
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
        covered = self._covered(request, end)
        self._prepare(covered)
        end = end if covered else replace(end, remember="")
        people = [ANA, BO] if _quorum(request) > 1 else [ANA]
        for number, by in enumerate(people):
            if number:
                await self.door.look(self.handle, request, by)
            mine = replace(end, change=None) if number == 0 else End(way=end.way)
            if end.verdict == "reject" or (number and end.dissents):
                return await self._rejected(request, end, by, "rejected")
            try:
                told = await self._approved(request, mine, by)
                self.told = told if mine.remember else self.told
            except NotHere:
                return await self._rejected(request, end, by, "not approved here")
            mine = mine if self.told is not None else replace(mine, remember="")
            self.said.append(_said(request, mine, by, "approve"))
        if not end.dry_run:
            self.kept |= {at for place, at in self.places.items() if place not in end.leave_out}
            self.decided = self.decided or covered
        return "dry run" if end.dry_run else "approved"

    def _covered(self, request: Request, end: End) -> set[int]:
        """Return the calls that are remembered where a decision is: no rule asks about them, and they use no secret."""
        token = self.world.handles[self.case.name]
        all_of_them = {
            call["index"]
            for call in request["calls"]
            if not any(said in str(self.wanted[self.places[call["index"]]][1]) for said in (token, "reset_token"))
        }
        # Where a rule asks by name, nothing is remembered; the default of a safety can be.
        by_default = not re.search(r"ask\[|secret use", request["rule"])
        if by_default and all_of_them and not self.case.quorum:
            assert request["may_remember"], request
        if not request["may_remember"]:
            return set()
        return {self.places[index] for index in all_of_them - end.leave_out}

    async def _approved(self, request: Request, end: End, by: str) -> Told | None:
        """Approve; where that cannot be remembered so, only approve."""
        try:
            return await self.door.approve(self.handle, request, end, by)
        except Refused:
            asked_about = {
                self.places[call["index"]] for call in request["calls"] if call["index"] not in end.leave_out
            }
            refers = any("${" in json.dumps(self.wanted[at][1]) for at in asked_about)
            assert end.remember
            assert end.no_processes or (refers, end.any_arguments) == (True, False)
            await self.door.approve(self.handle, request, replace(end, remember=""), by)
            return None

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
        covered = self._covered(request, End()) if end.remember and outcome == "rejected" else set[int]()
        self._prepare(covered)
        end = end if covered else replace(end, remember="")
        try:
            told = await self.door.reject(self.handle, request, end, by)
        except Refused:
            assert end.remember
            assert "${" in json.dumps([self.wanted[at][1] for at in self.places.values()])
            end = replace(end, remember="")
            told = await self.door.reject(self.handle, request, end, by)
        # Where a message does not hold all of a request, Slack only lets it be rejected.
        end = end if told is not None else replace(end, remember="")
        if end.remember:
            self.told, self.decided = told, covered
        self.said.append(_said(request, end, by, "reject"))
        return outcome


def later_calls(made: list[Call], covered: list[Call]) -> list[Call]:
    """Return calls that were made before, others of the same tools, and one of another tool."""
    plain = [(tool, arguments) for tool, arguments in covered if "${" not in json.dumps(arguments)][:2]
    others = [(tool, _otherwise(tool, arguments)) for tool, arguments in plain]
    tools = {tool for tool, _ in (*made, *covered)}
    left = [
        call for call in (("desk.stamp", {"title": "later"}), ("desk.file", {"to": "later"})) if call[0] not in tools
    ]
    return [*plain, *others[:1], *left[:1]]


def _otherwise(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    name = {"desk.file": "note", "pinger.ping": "who"}.get(tool, "title")
    return arguments | {name: f"{arguments[name]} too" if tool == "pinger.ping" else "otherwise"}


def _check_obeyed(events: list[Event], end: End, lines: set[str], ways: set[tuple[str, str]]) -> None:
    """Assert that a run says by which lines it permitted calls, or denied them."""
    if end.verdict == "approve":
        obeyed = [event.data["line"] for event in events if event.name == "policy.obeyed"]
        assert len(obeyed) == len({*obeyed} & lines) == len(ways), (obeyed, lines, ways)
    else:
        said = [event.text for event in events if f"by {ANA} on" in event.text and "never: " in event.text]
        assert all(any(f"never: {tool} by" in text for text in said) for tool, _ in ways), (said, ways)


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
        return Said(by, request["id"], verdict, calls, remember=end.remember)
    toggles: dict[str, Any] = {"external_processes": False} if end.no_processes else {}
    toggles |= {"limits": {"timeout_s": float(end.seconds)}} if end.seconds else {}
    return Said(by, request["id"], verdict, calls, {}, end.dry_run, out, toggles, end.remember)


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
