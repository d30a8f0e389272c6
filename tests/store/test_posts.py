"""Where things stand in a chat: claimed by one process at a time, taken over from one that died, and caught up with."""

from dataclasses import dataclass

import pytest

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.notice import DecisionNotice, NoticeDraft, NoticeKind
from backstay.task.event import Event
from store.notices.posts import LEASE_S, ChatPost
from store.opening import open_store
from tests.requirements import promise

RUN = ("task-1/first", "task-1", "first")
CHAT = "slack-T1-C1"


@dataclass
class Time:
    now: float = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request):
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def post(name="request/task-1/first/r1", **fields):
    values = {"kind": "request", "workflow_id": "task-1", "run_id": "first", "request_id": "r1", **fields}
    return ChatPost(receiver=CHAT, name=name, run=RUN[0], **values)


def asked(sequence, request_id="r1"):
    request = ApprovalRequest(id=request_id, kind=RequestKind.CALL, question="May I?")
    return NoticeDraft(sequence=sequence, event=NoticeKind.ASKED, at=f"t{sequence}", request=request)


@promise("slack:racing")
async def test_one_process_at_a_time_may_write_a_post_and_the_next_knows_that_another_tried(
    tmp_path, time, database_url
):
    async with open_store(home=tmp_path, database_url=database_url, clock=time) as store:
        first = await store.posts.claim(post())
        assert (first.tries, first.ts) == (0, "")
        assert await store.posts.claim(post()) is None
        time.now += LEASE_S + 1
        second = await store.posts.claim(post())
        assert (second.tries, second.ts) == (1, "")
        # The one that was thought dead cannot record its place any more.
        await store.posts.release(first, channel="C1", ts="1.0")
        assert (await store.posts.get(CHAT, first.name)).ts == ""
        await store.posts.release(second, channel="C1", ts="2.0", drawn=5.0)
        third = await store.posts.claim(post())
        assert (third.ts, third.drawn) == ("2.0", 5.0)
        await store.posts.release(third)
        time.now += 100
        assert await store.posts.forget(time.now - 50) == 1
        assert await store.posts.get(CHAT, first.name) is None


@promise("slack:behind")
async def test_a_chat_learns_which_requests_it_shows_wrongly_and_which_not_at_all(tmp_path, time, database_url):
    async with open_store(home=tmp_path, database_url=database_url, clock=time) as store:
        await store.outbox.write(*RUN, [asked(1), asked(2, "r2")])
        assert await store.posts.behind(CHAT, 0) == [("task-1", "first", "r1"), ("task-1", "first", "r2")]
        assert await store.posts.behind(CHAT, time.now + 1) == []
        claimed = await store.posts.claim(post())
        await store.posts.release(claimed, channel="C1", ts="1.0", drawn=time.now)
        assert await store.posts.behind(CHAT, 0) == [("task-1", "first", "r2")]
        assert len(await store.posts.behind("slack-T1-C2", 0)) == 2
        time.now += 10
        decision = DecisionNotice(verdict="approve", by="ana")
        draft = NoticeDraft(sequence=3, event=NoticeKind.DECIDED, at="t3", request_id="r1", decision=decision)
        withdrawn = NoticeDraft(sequence=4, event=NoticeKind.WITHDRAWN, at="t4", request_id="r2")
        await store.outbox.write(*RUN, [draft, withdrawn])
        # What was never shown and waits no more is not shown any more.
        assert await store.posts.behind(CHAT, 0) == [("task-1", "first", "r1")]


@promise("slack:steps")
async def test_a_chat_learns_which_runs_have_steps_that_it_does_not_show(tmp_path, time, database_url):
    async with open_store(home=tmp_path, database_url=database_url, clock=time) as store:
        head = post("run/task-1/first", kind="run", request_id="")
        claimed = await store.posts.claim(head)
        await store.events.append(RUN[0], [Event(n=1, name="run.started", at="t1")])
        assert await store.posts.following(CHAT) == []
        await store.posts.release(claimed, channel="C1", ts="1.0")
        (found,) = await store.posts.following(CHAT)
        assert (found.name, found.event) == (head.name, 0)
        claimed = await store.posts.claim(head)
        await store.posts.release(claimed, event=1)
        assert await store.posts.following(CHAT) == []
