"""Requests as the inbox needs them: of whom they concern, which are alike, and who is looking."""

from datetime import UTC, datetime

import pytest

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.notice import DecisionNotice, NoticeDraft, NoticeKind
from backstay.approvals.proposal import Proposal, ProposalPart
from backstay.provenance.source import Source
from store.notices.looks import LOOK_S
from store.opening import open_store
from tests.requirements import promise

ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"


def request(number, kind="call", **more):
    plain = {"index": 0, "tool": "mail.send", "arguments": {}, "safety": "write_safe", "undoable": True}
    call = RequestedCall(**plain | {"args_digest": more.pop("same", "d")} | more.pop("shown", {}))
    return ApprovalRequest(id=f"r{number}", kind=kind, question="May it?", user_id="kim", calls=(call,), **more)


async def ask(store, number, asked, workflow="task-1", reminder=0):
    at = f"2026-01-01T00:00:{number:02}+00:00"
    draft = NoticeDraft(sequence=number, event=NoticeKind.ASKED, at=at, request=asked, reminder=reminder)
    await store.outbox.write(f"{workflow}/first", workflow, "first", [draft])


async def decide(store, number, request_id, workflow="task-1"):
    decision = DecisionNotice(verdict="approve", by=ANA, verified=True)
    draft = NoticeDraft(
        sequence=number, event=NoticeKind.DECIDED, at="2026-01-02T00:00:00", request_id=request_id, decision=decision
    )
    await store.outbox.write(f"{workflow}/first", workflow, "first", [draft])


@pytest.fixture
def opened(tmp_path, database_url):
    return lambda **more: open_store(database_url=database_url, home=tmp_path / "home", **more)


def part(number, *approvers, **more):
    return ProposalPart(part=number, steps=(number,), approvers=approvers, **more)


def plan(*parts):
    return {"proposal": Proposal(plan_id="p1", version=1, hash="h", steps=(), parts=parts)}


@promise("page:who-sees-what")
async def test_a_request_concerns_who_may_decide_it_and_the_user_of_its_run(opened):
    async with opened() as store:
        await ask(store, 1, request(1))
        await ask(store, 2, request(2, approvers=(ANA,)))
        await ask(store, 3, request(3, approvers=(BO,), escalated_to=(CY,)))
        await ask(store, 4, request(4, "plan", **plan(part(0, ANA), part(1, BO, escalate_to=(CY,)))))
        await ask(store, 5, request(5, "plan", **plan(part(0, ANA), part(1))))
        await ask(store, 6, request(6, approvers=(f"x{ANA}", ANA.upper(), "%", "_na@example.com")))
        seen = {
            by: [row.request_id for row in await store.requests.page(seen_by=by)]
            for by in (ANA, BO, CY, "kim", "eve@example.com", "%")
        }
        counted = {by: await store.requests.count_open(by) for by in seen}
    assert seen == {
        ANA: ["r5", "r4", "r2", "r1"],
        BO: ["r5", "r4", "r3", "r1"],
        CY: ["r5", "r4", "r3", "r1"],
        "kim": ["r6", "r5", "r4", "r3", "r2", "r1"],
        "eve@example.com": ["r5", "r1"],
        "%": ["r6", "r5", "r1"],
    }
    assert counted == {by: len(rows) for by, rows in seen.items()}


@promise("page:alike")
async def test_requests_about_the_very_same_calls_are_counted_until_they_are_decided(opened):
    async with opened() as store:
        for number in (1, 2, 3):
            await ask(store, number, request(number))
        await ask(store, 4, request(4, same="other"))
        await ask(store, 5, request(5, "outcome"))
        await ask(store, 6, request(6, approvers=(BO,)))
        await ask(store, 7, request(7, same=""))
        rows = {row.request_id: row for row in await store.requests.page()}
        same = rows["r1"].alike
        assert [rows[name].alike == same for name in ("r2", "r3", "r4", "r6")] == [True, True, False, True]
        assert (rows["r5"].alike, rows["r7"].alike) == ("", "")
        assert await store.requests.count_alike([same, ""], ANA) == {same: 3}
        assert await store.requests.count_alike([same], BO) == {same: 4}
        await decide(store, 8, "r2")
        assert await store.requests.count_alike([same], ANA) == {same: 2}
        assert [row.request_id for row in await store.requests.of_alike(same, ANA)] == ["r1", "r3"]
        assert [row.request_id for row in await store.requests.page(kind="outcome")] == ["r5"]


@promise("page:alike")
async def test_requests_of_whose_calls_people_are_shown_something_else_are_not_alike(opened):
    shown = [
        {"diff": "-red\n+blue"},
        {"side_effects": ("mail",)},
        {"repeats": "made before, in step 1"},
        {"undoable": False},
        {"undo_how": "recall it"},
        {"sources": {"/to": (Source(kind="task"),)}},
        {"safety": "read_only"},
        {"clipped": 7},
    ]
    async with opened() as store:
        for number, more in enumerate([{}, {"index": 3}, *shown], 1):
            await ask(store, number, request(number, shown=more))
        alike = [row.alike for row in await store.requests.page()][::-1]
    assert alike[0] == alike[1]
    assert "" not in alike
    assert len(set(alike)) == 1 + len(shown)


@promise("page:marks")
async def test_a_mark_differs_whenever_something_has_changed(opened):
    now = [1000.0]
    async with opened(clock=lambda: now[0]) as store:
        marks = [await store.requests.mark()]
        for work in (ask(store, 1, request(1)), ask(store, 2, request(2)), decide(store, 3, "r1")):
            now[0] += 1
            await work
            marks.append(await store.requests.mark())
        assert await store.requests.mark() == marks[-1]
    assert len(set(marks)) == 4


@promise("page:reminders-kept")
async def test_how_often_and_when_people_were_reminded_outlives_the_notices_of_it(opened):
    known = []
    async with opened(clock=lambda: 1000.0) as store:

        async def after(work, forgotten=1):
            await work
            # The last notice of what waits stays.
            assert await store.outbox.forget(1001.0) == forgotten
            row = await store.requests.get("task-1", "r1")
            known.append((row.state, row.reminded, row.reminded_at))

        await after(ask(store, 1, request(1)), 0)
        await after(ask(store, 2, request(1), reminder=1))
        await after(ask(store, 3, request(1), reminder=2))
        await after(ask(store, 4, request(1, escalated=True, escalated_to=(BO,))))
        await after(decide(store, 5, "r1"), 2)
        # A reset has the run ask again from the beginning.
        await after(ask(store, 2, request(1)), 0)
    first, last = (datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC).timestamp() for second in (2, 3))
    assert known == [
        ("open", 0, None),
        ("open", 1, first),
        ("open", 2, last),
        ("open", 2, last),
        ("decided", 2, last),
        ("open", 0, None),
    ]


@promise("page:lookers")
async def test_who_looks_is_seen_by_others_until_they_leave_or_are_gone_for_long(opened, monkeypatch):
    async with opened() as store, opened() as other:
        await store.looks.look("task-1", "r1", ANA, "tab 1")
        await store.looks.look("task-1", "r1", ANA, "tab 2")
        await other.looks.look("task-1", "r1", BO, "tab 3")
        both = [("task-1", "r1"), ("task-1", "r2")]
        assert await other.looks.people(both) == {("task-1", "r1"): [ANA, BO]}
        await store.looks.leave("tab 1")
        await other.looks.leave("tab 3")
        assert await store.looks.people(both) == {("task-1", "r1"): [ANA]}
        monkeypatch.setattr("store.notices.looks.LOOK_S", -LOOK_S)
        await store.looks.look("task-1", "r1", ANA, "tab 2")
        assert await store.looks.people(both) == {}
