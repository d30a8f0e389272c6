"""The outbox: every notice reaches every receiver, in the order of its run, whatever dies on the way."""

import asyncio
import sqlite3
from dataclasses import dataclass, field
from functools import partial

import pytest
from sqlalchemy import event

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.notice import DecisionNotice, NoticeDraft, NoticeKind
from backstay.settings import Settings
from gateways.webhooks import open_webhooks
from people.notices.delivering import NotTaken, deliver_due, delivering
from store.notices.outbox import Lost
from store.opening import open_store
from tests.requirements import promise
from tests.sizes import sized, spread
from tests.webhooks import troubled_receiver

HOUR = 3600.0
RUN = ("task-1/first", "task-1", "first")


@dataclass
class Time:
    now: float = 1_000_000.0

    def __call__(self):
        return self.now


@dataclass
class Receiver:
    """Take notices and count them by id; `fail` refuses, `lose` takes and then says nothing, `passes` lets wait."""

    name: str = "webhook-1"
    fail: bool = False
    passes: frozenset[int] = frozenset()
    lose: int = 0
    bugs: int = 0
    taken: list = field(default_factory=list)

    async def send(self, notice):
        if self.fail:
            raise NotTaken("ConnectError")
        if self.bugs:
            self.bugs -= 1
            raise ValueError("a bug")
        if notice.sequence in self.passes:
            raise NotTaken("mailbox full", holds=False)
        self.taken.append((notice.workflow_id, notice.sequence, notice.id))
        if self.lose:
            self.lose -= 1
            raise NotTaken("ReadTimeout")

    def first_seen(self, workflow_id):
        numbers = [number for name, number, _ in dict.fromkeys(self.taken) if name == workflow_id]
        assert numbers == sorted(numbers), numbers
        return numbers


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def opened(tmp_path, database_url, time):
    def store():
        return open_store(database_url=database_url, home=tmp_path / "home", clock=time)

    return store


def asked(number, **more):
    request = ApprovalRequest(kind=RequestKind.QUESTION, question="Which one?", id=f"r{number}", **more)
    return NoticeDraft(sequence=number, event=NoticeKind.ASKED, at=f"2026-01-01T00:00:{number:02}", request=request)


def ended(number):
    return NoticeDraft(sequence=number, event=NoticeKind.ENDED, at="2026-01-01T00:01:00")


def told(number, event, **more):
    return NoticeDraft(sequence=number, event=event, at="2026-01-01T00:00:30", **more)


ONE_OF_EACH = (
    asked(1),
    told(2, NoticeKind.DECIDED, request_id="r1", decision=DecisionNotice(verdict="approve", by="cy")),
    asked(3),
    told(4, NoticeKind.EXPIRED, request_id="r3"),
    told(5, NoticeKind.EFFECT_UNKNOWN, data={"id": "e1", "what": "mail.send_email", "why": "its answer was lost"}),
    told(6, NoticeKind.BUDGET_OVERSHOT, data={"model": "m", "billed_usd": 2.0, "reserved_usd": 1.0}),
    asked(7),
    told(8, NoticeKind.WITHDRAWN, request_id="r7"),
    ended(9),
)


async def through(store, time, receiver, hours=0.0, step_s=30.0):
    """Let so much time pass, with a sender that looks twice a minute."""
    end = time.now + hours * HOUR
    while True:
        while await deliver_due(store.outbox, receiver):
            pass
        if time.now >= end:
            return
        time.now += step_s


@promise("approvals:outbox")
async def test_a_receiver_that_is_down_for_an_hour_gets_everything_in_order(opened, time):
    receiver = Receiver(fail=True)
    async with opened() as store:
        await store.outbox.subscribe(receiver.name)
        for number in range(1, 6):
            await store.outbox.write(*RUN, [asked(number)])
            await store.outbox.write("task-2/f", "task-2", "f", [asked(number)])
            await through(store, time, receiver, hours=0.2)
        assert receiver.taken == []
        receiver.fail = False
        await through(store, time, receiver, hours=0.2)
        assert receiver.first_seen("task-1") == receiver.first_seen("task-2") == [1, 2, 3, 4, 5]
        assert len(receiver.taken) == 10
        assert await store.outbox.waiting(receiver.name) == 0


@promise("approvals:outbox-passed")
async def test_what_a_receiver_lets_pass_holds_nothing_back_and_is_sent_when_it_is_taken(opened, time):
    receiver = Receiver(passes=frozenset({1}))
    async with opened() as store:
        await store.outbox.subscribe(receiver.name)
        await store.outbox.write(*RUN, [asked(1), asked(2), asked(3)])
        await through(store, time, receiver, hours=0.1)
        assert [number for _, number, _ in receiver.taken] == [2, 3]
        await store.outbox.forget(time.now + HOUR)
        assert await store.outbox.waiting(receiver.name) == 1
        receiver.passes = frozenset()
        await through(store, time, receiver, hours=0.2)
        assert [number for _, number, _ in receiver.taken] == [2, 3, 1]
        assert await store.outbox.waiting(receiver.name) == 0


@promise("approvals:outbox-passed")
@pytest.mark.parametrize("trouble", [{"fail": True}, {"bugs": 1}])
async def test_what_was_let_pass_holds_nothing_back_however_it_fails_later(opened, time, trouble):
    receiver = Receiver(passes=frozenset({1}))
    async with opened() as store:
        await store.outbox.subscribe(receiver.name)
        await store.outbox.write(*RUN, [asked(1)])
        await through(store, time, receiver)
        time.now += 30
        troubled = Receiver(**trouble)
        await deliver_due(store.outbox, troubled)
        await store.outbox.write(*RUN, [asked(2)])
        await through(store, time, receiver)
    assert [number for _, number, _ in receiver.taken] == [2]


@promise("approvals:outbox-pile")
async def test_of_a_pile_that_is_due_only_what_is_claimed_is_looked_at(tmp_path):
    asked_ = []
    async with open_store(database_url=None, home=tmp_path) as store:
        event.listen(store._database._engine, "before_cursor_execute", lambda *given: asked_.append(given[2:4]))
        await store.outbox.claim(["webhook-1"])
        looks = [each for each in asked_ if "FROM deliveries" in each[0]]
        plans = [await store._database.read(partial(plan_of, *look)) for look in looks]
    assert len(plans) == 2
    for plan in plans:
        assert "SEARCH deliveries USING INDEX deliveries_due (state=? AND receiver=? AND due_at<?)" in plan[0]
        # What is due at the same moment may be sorted, but not all that is due.
        assert "USE TEMP B-TREE FOR ORDER BY" not in plan


def plan_of(statement, values, connection):
    return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]


@promise("approvals:outbox-pile")
async def test_what_was_let_pass_and_what_comes_after_it_are_claimed_by_how_long_they_have_been_due(opened, time):
    receiver = Receiver(passes=frozenset({1}))
    async with opened() as store:
        await store.outbox.subscribe(receiver.name)
        for run in range(3):
            await store.outbox.write(f"task-{run}/f", f"task-{run}", "f", [asked(1), asked(2)])
        await deliver_due(store.outbox, receiver)
        time.now += 30
        await store.outbox.write("task-3/f", "task-3", "f", [asked(2)])
        claims = await store.outbox.claim([receiver.name], limit=5)
    assert [(claim.notice.workflow_id, claim.notice.sequence) for claim in claims] == [
        ("task-0", 2),
        ("task-1", 2),
        ("task-2", 2),
        ("task-0", 1),
        ("task-1", 1),
    ]


@promise("approvals:outbox-killed")
async def test_what_a_killed_sender_had_claimed_is_sent_by_another_one(opened, time):
    receiver = Receiver()
    async with opened() as store, opened() as other:
        await store.outbox.subscribe(receiver.name)
        await store.outbox.write(*RUN, [asked(1), asked(2)])
        claimed = await store.outbox.claim([receiver.name])
        assert [claim.notice.sequence for claim in claimed] == [1]
        # The process that claimed it is gone; until its lease is over nobody sends it, nor what comes after it.
        assert await deliver_due(other.outbox, receiver) == 0
        time.now += 61
        await through(other, time, receiver)
        assert receiver.first_seen("task-1") == [1, 2]
        # The one that was thought dead comes back: it settles nothing.
        assert await store.outbox.failed(claimed[0]) is False
        assert await store.outbox.waiting(receiver.name) == 0


@promise("approvals:outbox-lost-answer")
async def test_a_lost_answer_brings_the_notice_again_under_the_same_id_and_before_the_next(opened, time):
    receiver = Receiver(lose=2)
    async with opened() as store:
        await store.outbox.subscribe(receiver.name)
        await store.outbox.write(*RUN, [asked(1), asked(2)])
        await through(store, time, receiver, hours=0.1)
    assert [number for _, number, _ in receiver.taken] == [1, 1, 1, 2]
    assert len({name for _, _, name in receiver.taken}) == 2


@promise("approvals:outbox-given-up")
@pytest.mark.parametrize(("down_h", "seen"), spread([(24.1, [2]), (23.9, [1, 2])], 1))
async def test_a_notice_is_tried_for_a_day_then_given_up_and_the_next_one_is_tried(opened, time, down_h, seen):
    receiver = Receiver(fail=True)
    async with opened() as store:
        await store.outbox.subscribe(receiver.name)
        await store.outbox.write(*RUN, [asked(1)])
        await through(store, time, receiver, hours=23, step_s=sized(180, 360))
        await store.outbox.write(*RUN, [asked(2)])
        await through(store, time, receiver, hours=down_h - 23, step_s=sized(180, 360))
        receiver.fail = False
        await through(store, time, receiver, hours=0.2)
        assert await store.outbox.waiting(receiver.name) == 0
    assert receiver.first_seen("task-1") == seen


@promise("approvals:outbox-kinds")
async def test_every_kind_of_notice_reaches_a_webhook_in_order_and_counts_once_through_every_trouble(opened, time):
    async with troubled_receiver() as site, opened() as store, opened() as other:
        settings = Settings.load(None, notify_urls=[site.address])
        async with open_webhooks(settings) as (webhook,):
            await store.outbox.subscribe(webhook.name)
            site.down = True
            for draft in ONE_OF_EACH:
                await store.outbox.write(*RUN, [draft], result={"outcome": "completed"})
                await through(store, time, webhook, hours=1 / len(ONE_OF_EACH))
            assert site.taken == []
            assert site.refused > 1
            site.down, site.losing = False, {1, 6}
            time.now += HOUR
            # One process claims the first and dies before it sends; another takes over when the lease is over.
            assert [claim.notice.sequence for claim in await store.outbox.claim([webhook.name])] == [1]
            await through(other, time, webhook, hours=0.2)
            assert await other.outbox.waiting(webhook.name) == 0
    counted = dict(site.taken)
    numbers = [notice["sequence"] for notice in counted.values()]
    kinds = [notice["event"] for notice in counted.values()]
    assert numbers == list(range(1, len(ONE_OF_EACH) + 1))
    assert kinds == [draft.event for draft in ONE_OF_EACH]
    assert set(kinds) == set(NoticeKind)
    assert [notice["id"] for notice in counted.values()] == list(counted)
    # What was taken, but not answered, came again at once, under the same id.
    assert [notice["sequence"] for _, notice in site.taken] == sorted([*numbers, 1, 6])


@promise("approvals:outbox-senders")
async def test_many_senders_at_once_send_each_notice_once(opened, time):
    receiver = Receiver()
    async with opened() as store, opened() as other:
        await store.outbox.subscribe(receiver.name)
        for run in range(10):
            name = f"task-{run}"
            await store.outbox.write(f"{name}/f", name, "f", [asked(number) for number in range(1, 6)])

        async def sender(outbox):
            while await store.outbox.waiting(receiver.name):
                await deliver_due(outbox, receiver)

        async with asyncio.timeout(150):
            await asyncio.gather(*(sender(outbox) for outbox in (store.outbox, other.outbox, store.outbox)))
    assert len(receiver.taken) == len(set(receiver.taken)) == 50
    for run in range(10):
        assert receiver.first_seen(f"task-{run}") == [1, 2, 3, 4, 5]


@promise("approvals:outbox-written-again")
async def test_a_repeated_write_tells_nothing_twice_and_one_after_a_reset_does(opened, time):
    async with opened() as store:
        assert len(await store.outbox.write(*RUN, [asked(1)])) == 1
        assert len(await store.outbox.write(*RUN, [asked(1), asked(2)])) == 1
        later = asked(2).model_copy(update={"at": "2026-01-01T00:09:00"})
        assert [notice.sequence for notice in await store.outbox.write(*RUN, [later])] == [2]
        assert await store.outbox.write(*RUN, [later]) == []


@promise("approvals:lost-speaks-again")
async def test_a_run_that_speaks_again_after_its_end_was_told_is_looked_at_again(opened, time):
    run, workflow_id, run_id = RUN
    result = {"outcome": "failed", "success": False, "error": {"type": "RunTerminated", "message": "by hand"}}
    async with opened() as store:
        row = {"user_id": "ana", "text": "write", "opened": {}, "workflow_id": workflow_id, "workflow_run_id": run_id}
        await store.runs.opened(run=run, **row)
        receiver = Receiver()
        await store.outbox.subscribe(receiver.name)
        await store.outbox.write(*RUN, [asked(1)])
        assert [found.run for found in await store.runs.unchecked()] == [run]
        told_ = [await store.outbox.lost(Lost(*RUN, result, "default")) for _ in range(2)]
        assert (told_, await store.runs.unchecked()) == ([True, False], [])

        # An undo of it says nothing of the run itself.
        await store.outbox.write(run, f"undo-{workflow_id}", "u", [asked(1)])
        assert await store.runs.unchecked() == []
        time.now += 60
        await store.outbox.write(*RUN, [asked(3)])
        assert [found.run for found in await store.runs.unchecked()] == [run]
        assert (await store.requests.get(workflow_id, "r3")).state == "open"
        while await deliver_due(store.outbox, receiver):
            pass
        assert receiver.first_seen(workflow_id) == [1, 2, 3]


@promise("approvals:lost-undo")
async def test_the_end_of_an_undo_is_told_once_where_something_of_it_waits(opened):
    run, workflow_id, _ = RUN
    undo, receiver = f"undo-{workflow_id}", Receiver()
    lost = Lost(run, undo, "u", {"outcome": "failed", "success": False}, "default")
    async with opened() as store:
        await store.outbox.subscribe(receiver.name)
        assert await store.outbox.lost(lost) is False
        await store.outbox.write(run, undo, "u", [asked(1)])
        assert [await store.outbox.lost(lost) for _ in range(2)] == [True, False]
        assert (await store.requests.get(undo, "r1")).state == "ended"
        while await deliver_due(store.outbox, receiver):
            pass
    assert receiver.first_seen(undo) == [1, 2]


@promise("approvals:found")
async def test_requests_are_found_by_state_words_and_page(opened, time):
    async with opened() as store:
        for number in range(1, 8):
            time.now += 1
            draft = asked(number, task=f"Pay invoice {number}", user_id="ana" if number % 2 else "bo")
            await store.outbox.write(f"task-{number}/f", f"task-{number}", "f", [draft])
        decision = DecisionNotice(verdict="reject", by="cy", comment="no")
        await store.outbox.write(
            "task-3/f", "task-3", "f", [told(8, NoticeKind.DECIDED, request_id="r3", decision=decision)]
        )
        await store.outbox.write("task-4/f", "task-4", "f", [ended(9)])
        assert await store.requests.count_open() == 5
        first = await store.requests.page(limit=3)
        assert [row.workflow_id for row in first] == ["task-7", "task-6", "task-5"]
        rest = await store.requests.page(limit=3, before=first[-1].position)
        assert [row.workflow_id for row in rest] == ["task-2", "task-1"]
        assert [row.workflow_id for row in await store.requests.page(words="INVOICE 6")] == ["task-6"]
        assert await store.requests.page(words="%") == await store.requests.page(words="_x") == []
        assert {row.user_id for row in await store.requests.page(user_id="bo")} == {"bo"}
        closed = await store.requests.page(closed=True)
        assert [(row.state, row.decision and row.decision.by) for row in closed] == [("ended", None), ("decided", "cy")]
        assert await store.requests.forget(time.now - 100) == 0
        assert await store.requests.forget(time.now + 1) == 2
        assert await store.requests.get("task-3", "r3") is None
        assert (await store.requests.get("task-5", "r5")).request["task"] == "Pay invoice 5"


@promise("approvals:outbox-forgotten")
async def test_old_notices_are_forgotten_unless_somebody_still_waits_for_them(opened, time):
    receiver = Receiver(fail=True)
    async with opened() as store:
        await store.outbox.write(*RUN, [asked(1)])
        await store.outbox.subscribe(receiver.name)
        await store.outbox.write(*RUN, [asked(2)])
        assert await store.outbox.forget(time.now + 1) == 1
        assert await store.outbox.waiting(receiver.name) == 1
        # Nobody has served it for two days: nothing more is kept for it.
        time.now += 49 * HOUR
        await store.outbox.write(*RUN, [asked(3)])
        assert await store.outbox.waiting(receiver.name) == 1


@promise("approvals:outbox-grows")
@pytest.mark.parametrize("undo", [False, True])
async def test_the_end_of_a_run_that_was_silent_for_weeks_is_numbered_after_what_it_told_before(opened, time, undo):
    run, workflow_id, run_id = RUN
    stream = (run, f"undo-{workflow_id}", "u") if undo else RUN
    async with opened() as store:
        row = {"user_id": "ana", "text": "write", "opened": {}, "workflow_id": workflow_id, "workflow_run_id": run_id}
        await store.runs.opened(run=run, **row)
        decided = told(2, NoticeKind.DECIDED, request_id="r1", decision=DecisionNotice(verdict="approve", by="cy"))
        # After the reset the run tells anew what became of the first request.
        again = decided.model_copy(update={"at": "2026-01-01T00:09:00"})
        await store.outbox.write(*stream, [asked(1), decided, asked(3)])
        await store.outbox.write(*stream, [again])
        time.now += 21 * 24 * HOUR
        assert await store.outbox.forget(time.now) == 3
        receiver = Receiver()
        await store.outbox.subscribe(receiver.name)
        assert await store.outbox.lost(Lost(*stream, {"outcome": "failed", "success": False}, "default"))
        while await deliver_due(store.outbox, receiver):
            pass
        assert receiver.first_seen(stream[1]) == [4]
        # It has ended: no notice of it is needed any more.
        assert await store.outbox.forget(time.now + 1) == 2


@promise("approvals:hostile-receivers")
async def test_a_receiver_that_is_gone_keeps_no_notice_for_ever(opened, time):
    gone, here = Receiver("webhook-before", fail=True), Receiver("webhook-now", fail=True)
    async with opened() as store:
        await store.outbox.subscribe(gone.name)
        await store.outbox.write(*RUN, [asked(1)])
        time.now += 49 * HOUR
        await store.outbox.subscribe(here.name)
        await store.outbox.write(*RUN, [asked(2)])
        assert await store.outbox.forget(time.now + 1) == 1
        assert await store.outbox.waiting(gone.name) == 0
        assert await store.outbox.waiting(here.name) == 1


@promise("approvals:hostile-receivers")
async def test_a_notice_that_only_a_newer_version_can_read_holds_up_nobody_else_and_is_given_up_after_a_day(
    tmp_path, time
):
    def rename(sequence, event):
        with sqlite3.connect(tmp_path / "backstay.db") as database:
            change = (
                "UPDATE outbox SET body = json_set(body, '$.event', ?) WHERE stream = 'task-1/first' AND sequence = ?"
            )
            database.execute(change, [event, sequence])

    receiver = Receiver()
    async with open_store(database_url=None, home=tmp_path, clock=time) as store:
        await store.outbox.subscribe(receiver.name)
        await store.outbox.write(*RUN, [asked(1), asked(2), asked(3)])
        rename(1, "run.sold")
        await store.outbox.write("task-2/f", "task-2", "f", [asked(1)])
        async with delivering(store.outbox, [receiver]), asyncio.timeout(150):
            while not receiver.taken:
                await asyncio.sleep(0.05)
        assert receiver.first_seen("task-2") == [1]
        assert receiver.first_seen("task-1") == []
        rename(1, "asked")
        rename(2, "run.sold")
        await through(store, time, receiver, hours=0.2)
        assert receiver.first_seen("task-1") == [1]
        time.now += 24 * HOUR
        await through(store, time, receiver, hours=0.1)
        assert receiver.first_seen("task-1") == [1, 3]


@promise("approvals:hostile-receivers")
async def test_a_receiver_that_hangs_does_not_hold_up_a_worker_that_stops(tmp_path):
    began = asyncio.Event()

    @dataclass
    class Hanging(Receiver):
        async def send(self, notice):
            began.set()
            await asyncio.Event().wait()

    async with open_store(database_url=None, home=tmp_path) as store:
        await store.outbox.subscribe("webhook-1")
        await store.outbox.write(*RUN, [asked(1)])
        async with asyncio.timeout(150), delivering(store.outbox, [Hanging()]):
            await began.wait()
        assert await store.outbox.waiting("webhook-1") == 1
