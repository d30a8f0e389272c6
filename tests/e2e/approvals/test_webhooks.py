"""Webhooks: what becomes of a run goes to the receivers, redacted, signed and in order; none ever holds a run."""

import asyncio
import hashlib
import hmac
import json
import socket
from contextlib import suppress

import pytest
from jsonschema import Draft202012Validator

import opening
from backstay import connect
from backstay.approvals.notice import Notice, NoticeKind
from backstay.errors import DecisionRefused, QuorumPending, Rejected, StoreUnavailable
from backstay.settings import Settings
from backstay.testing import Reply, Tokens
from gateways.webhooks import open_webhooks
from people.notices.delivering import NotTaken, close_lost
from store.runs.runs import Runs
from tests.engine import ROOT, differing, ended, pending
from tests.requirements import promise
from tests.webhooks import receiver

KEY = "a key for announcements"
FINISH = Reply(calls=[("finish", {"summary": "done"})])
YES = {"request_id": "r1", "verdict": "approve", "by": "ana"}
# Readers ignore fields that they do not know; what is sent today has none that the schema does not name.
SCHEMA = json.loads((ROOT / "docs/schemas/notice.json").read_text(encoding="utf-8")) | {"additionalProperties": False}


def mail(**arguments):
    call = {"to": "a@x.example", "subject": "s", "body": "b", **arguments}
    return Reply(calls=[("mail__send_email", call)])


async def notices(taken, count):
    """Wait for so many requests of one receiver, and return their bodies, which fit the schema."""
    return [valid((await asyncio.wait_for(taken.get(), 150))[2]) for _ in range(count)]


def valid(body):
    """Return the notice of a body, which fits the schema that is published."""
    notice = json.loads(body)
    Draft202012Validator(SCHEMA).validate(notice)
    return notice


@promise("approvals:told-terminated")
async def test_a_run_that_temporal_ended_is_told_to_have_ended_once_with_what_it_left_open(open_engine):
    options = {"webhook_key": KEY, "url": "https://approve.example"}
    async with receiver() as (url, taken), open_engine([mail()], notify_urls=[f"{url}/take"], **options) as engine:
        asking = await engine.start("write")
        assert [notice["event"] for notice in await notices(taken, 1)] == ["asked"]
        await asking.terminate(reason="the operator stopped it")
        async with opening.open_store(engine.settings) as store, connect(client=engine.client) as backstay:
            # Every worker does so each minute, and several may at once.
            told = await asyncio.gather(*(close_lost(store, backstay, engine.settings.url) for _ in range(3)))
            again = await close_lost(store, backstay)
        (ended_,) = await notices(taken, 1)
        assert taken.empty()
    assert (sum(told), again) == (1, 0)
    assert (ended_["event"], ended_["sequence"], ended_["workflow_id"]) == ("ended", 2, asking.id)
    assert (ended_["result"]["outcome"], ended_["result"]["success"]) == ("failed", False)
    assert ended_["result"]["error"]["type"] == "RunTerminated"
    assert "the operator stopped it" in ended_["result"]["error"]["message"]
    assert ended_["links"]["page"] == f"https://approve.example/runs/{asking.id}"


@promise("approvals:told-terminated")
async def test_a_run_that_temporal_ended_before_it_asked_anything_is_told_to_have_ended(open_engine):
    silent = [Reply(then="hang")]
    async with receiver() as (url, taken), open_engine(silent, notify_urls=[f"{url}/take"]) as engine:
        working = await engine.start("write")
        await engine.model.asked()
        await working.terminate()
        async with opening.open_store(engine.settings) as store, connect(client=engine.client) as backstay:
            assert await close_lost(store, backstay) == 1
        (ended_,) = await notices(taken, 1)
    assert (ended_["event"], ended_["sequence"], ended_["result"]["outcome"]) == ("ended", 1, "failed")


@promise("approvals:webhooks")
async def test_a_request_is_told_redacted_and_signed_and_so_is_what_becomes_of_it(open_engine):
    secret = "gh" + "p_" + "k3Jx9QpL2mN8vB5tR7wY4zA6cD1eF0gH2iJ3"
    script = [mail(subject=f"the token is {secret}"), FINISH]
    more = {"webhook_key": KEY, "url": "https://approve.example"}
    async with receiver() as (url, taken), open_engine(script, notify_urls=[f"{url}/take"], **more) as engine:
        handle = await engine.start({"text": "write", "metadata": {"ticket": 7}, "session_id": "s1"})
        _, headers, body = await asyncio.wait_for(taken.get(), 150)
        message = b".".join([headers["backstay-timestamp"].encode(), body])
        assert headers["backstay-signature"] == hmac.new(KEY.encode(), message, hashlib.sha256).hexdigest()
        assert headers["content-type"] == "application/json"
        asked = valid(body)
        assert asked["id"] == headers["backstay-id"]
        assert (asked["version"], asked["event"], asked["sequence"]) == (2, "asked", 1)
        assert (asked["workflow_id"], asked["run_id"]) == (handle.id, handle.first_execution_run_id)
        assert (asked["task"], asked["metadata"], asked["session_id"]) == ("write", {"ticket": 7}, "s1")
        assert asked["links"]["page"] == f"https://approve.example/requests/{handle.id}/r1"
        assert differing([asked["request"]], await pending(handle)) == []
        assert secret not in body.decode()
        assert "⟦secret:" in asked["request"]["calls"][0]["arguments"]["subject"]
        await handle.execute_update("decide", YES | {"comment": "fine"})
        result = await ended(handle)
        decided, end = await notices(taken, 2)
    assert (decided["event"], decided["sequence"], decided["request"]["id"]) == ("decided", 2, "r1")
    assert decided["decision"] == {
        "verdict": "approve",
        "by": "ana",
        "verified": False,
        "comment": "fine",
        "option": "",
    }
    assert (end["event"], end["sequence"], end["result"]["outcome"]) == ("ended", 3, result["outcome"])
    assert end["links"]["page"] == f"https://approve.example/runs/{handle.id}"


@promise("approvals:webhooks")
@pytest.mark.thorough
async def test_an_expired_request_and_one_that_a_cancelled_run_leaves_are_told(open_engine):
    policy = "default: {write_safe: allow}\nask: [{tool: mail.send_email, timeout: 1s}]\n"
    script = [mail(), Reply(calls=[("ask_person", {"question": "Which one?"})]), FINISH]
    async with receiver() as (url, taken), open_engine(script, policy=policy, notify_urls=[f"{url}/take"]) as engine:
        handle = await engine.start("write")
        told = await notices(taken, 3)
        assert [(notice["event"], notice["request"]["id"]) for notice in told] == [
            ("asked", "r1"),
            ("expired", "r1"),
            ("asked", "r2"),
        ]
        await handle.cancel()
        told = await notices(taken, 2)
    assert [notice["event"] for notice in told] == ["withdrawn", "ended"]
    assert [notice["sequence"] for notice in told] == [4, 5]
    assert told[1]["result"]["outcome"] == "cancelled"


@promise("approvals:reminders")
async def test_people_are_reminded_and_then_others_are_asked_too(open_engine):
    policy = """
    default: {write_safe: allow}
    groups: {"@boss": [cy@example.com]}
    ask:
      - {tool: mail.send_email, approvers: [ana@example.com], timeout: 8s, remind_after: 2s, on_expiry: escalate,
         escalate_to: ["@boss"]}
    """
    key = "a key of approvers"
    async with (
        receiver() as (url, taken),
        open_engine([mail(), FINISH], policy=policy, notify_urls=[f"{url}/take"], approver_key=key) as engine,
        connect(client=engine.client, approver_key=key) as backstay,
    ):
        handle = await engine.start("write")
        told = await notices(taken, 2)
        assert [(notice["event"], notice["reminder"]) for notice in told] == [("asked", 0), ("asked", 1)]
        with pytest.raises(DecisionRefused, match=r"cy@example\.com"):
            await backstay.run(handle.id).approve("r1", by="cy@example.com")
        while not (last := (await notices(taken, 1))[0])["request"]["escalated_to"]:
            assert last["event"] == "asked"
        assert last["request"]["approvers"] == ["ana@example.com", "cy@example.com"]
        await backstay.run(handle.id).approve("r1", by="cy@example.com")
        assert (await ended(handle))["outcome"] == "completed"


@promise("approvals:webhooks-of-no-request")
async def test_a_call_whose_answer_was_lost_is_told_also_where_a_check_finds_out_what_became_of_it(open_engine):
    more = {"env": {"MAILBOX_HANG_ON_SEND": "1"}, "request_deadline_seconds": 1, "policy": "allow: ['mail.*']"}
    async with receiver() as (url, taken), open_engine([mail(), FINISH], notify_urls=[f"{url}/take"], **more) as engine:
        handle = await engine.start({"text": "write", "metadata": {"ticket": 7}})
        result = await ended(handle)
        unknown, end = await notices(taken, 2)
    (effect,) = result["effects"]
    assert (unknown["event"], unknown["sequence"], unknown["workflow_id"]) == ("effect.unknown", 1, handle.id)
    assert (unknown["task"], unknown["metadata"]) == ("write", {"ticket": 7})
    assert (unknown["effect"]["id"], unknown["effect"]["what"]) == (effect["id"], "mail.send_email")
    assert (bool(unknown["effect"]["why"]), effect["state"]) == (True, "applied")
    assert (unknown["request"], unknown["budget"], end["event"]) == (None, None, "ended")


@promise("approvals:webhooks-overshot")
async def test_a_bill_above_what_was_reserved_is_told_with_both_sums(open_engine):
    dear = FINISH.model_copy(update={"usage": Tokens(prompt=100, completion=200_000)})
    async with receiver() as (url, taken), open_engine([dear], notify_urls=[f"{url}/take"]) as engine:
        handle = await engine.start("write")
        result = await ended(handle)
        overshot, end = await notices(taken, 2)
    (event,) = [event for event in result["events"] if event["name"] == "budget.overshot"]
    assert (overshot["event"], overshot["sequence"], overshot["workflow_id"]) == ("budget.overshot", 1, handle.id)
    assert overshot["budget"] == {
        "model": "scripted",
        "billed_usd": result["usage"]["llm_cost_usd"],
        "reserved_usd": event["data"]["reserved_usd"],
    }
    assert overshot["budget"]["billed_usd"] > overshot["budget"]["reserved_usd"] > 0
    assert (overshot["request"], overshot["effect"], end["event"]) == (None, None, "ended")


@promise("approvals:webhooks")
@pytest.mark.thorough
async def test_receivers_that_are_down_fail_or_hang_neither_block_the_run_nor_each_other(open_engine):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        down = f"http://127.0.0.1:{closed.getsockname()[1]}"
    async with receiver() as (url, taken):
        urls = [f"{url}/hang", down, f"{url}/fail", f"{url}/hang", f"{url}/hang", f"{url}/hang", f"{url}/take"]
        async with open_engine([mail(), FINISH], notify_urls=urls) as engine:
            handle = await engine.start({"text": "write", "budget": {"max_wall_seconds": 600}})
            paths = {(await asyncio.wait_for(taken.get(), 150))[0] for _ in range(6)}
            assert paths == {"/hang", "/fail", "/take"}
            await pending(handle)
            before = (await handle.query("budget"))["active_seconds"]
            # The receivers still hang: that is not the run's own time.
            await handle.signal("approval", {"nobody": "asked"})
            async with asyncio.timeout(150):
                while "approval.refused" not in [
                    e["name"] for e in (await handle.query("timeline", {"after": 0}))["events"]
                ]:
                    await asyncio.sleep(0.1)
            assert (await handle.query("budget"))["active_seconds"] == before
            await handle.execute_update("decide", YES)
            result = await ended(handle)
    assert result["outcome"] == "completed"
    assert engine.mailbox.requests("send_email") == 1


async def unavailable(*_, **__):
    raise StoreUnavailable("store: the disk is full")


@promise("approvals:told-to-the-end")
async def test_what_is_asked_while_a_run_cannot_be_closed_is_told_before_its_end(open_engine, monkeypatch):
    arguments = {"to": "a@x.example", "subject": "s", "body": "b"}
    task = {"plan": {"title": "one", "steps": [{"tool": "mail.send_email", "arguments": arguments}]}}
    async with (
        receiver() as (url, taken),
        open_engine([], notify_urls=[f"{url}/take"], transient_seconds=1) as engine,
    ):
        handle = await engine.start(task | {"text": "write"})
        await pending(handle)
        monkeypatch.setattr(Runs, "closed", unavailable)
        await handle.execute_update("decide", YES | {"verdict": "reject"})
        async with asyncio.timeout(150):
            while not (found := [request for request in await pending(handle) if request["kind"] == "outcome"]):
                await asyncio.sleep(0.1)
        monkeypatch.undo()
        await handle.execute_update("decide", {"request_id": found[0]["id"], "verdict": "retry", "by": "ana"})
        result = await ended(handle)
        told = await notices(taken, 5)
    events = [(notice["event"], notice["sequence"]) for notice in told]
    assert events == [("asked", 1), ("decided", 2), ("asked", 3), ("decided", 4), ("ended", 5)]
    assert told[-1]["result"]["outcome"] == result["outcome"]


@promise("approvals:told-undo-refused")
async def test_an_undo_that_people_refuse_says_so(open_engine):
    policy = """
    default: {write_safe: allow}
    ask: [{tool: mail.send_email, approvers: [ana, bo], quorum: 2}]
    """
    key = "a key of approvers"
    async with (
        receiver() as (url, taken),
        open_engine([mail(), FINISH], policy=policy, notify_urls=[f"{url}/take"], approver_key=key) as engine,
        connect(client=engine.client, approver_key=key, task_queue=engine.settings.task_queue) as backstay,
    ):
        handle = await engine.start("write")
        await pending(handle)
        for by in ("ana", "bo"):
            with suppress(QuorumPending):
                await backstay.run(handle.id).approve("r1", by=by)
        await ended(handle)
        assert [notice["event"] for notice in await notices(taken, 3)] == ["asked", "decided", "ended"]
        undoing = await backstay.start_undo(handle.id, by="ana")
        await pending(engine.client.get_workflow_handle(undoing.id))
        await undoing.reject("r1", by="bo")
        with pytest.raises(Rejected):
            await undoing.result()
        told = await notices(taken, 2)
    assert [(notice["workflow_id"], notice["event"]) for notice in told] == [
        (undoing.id, "asked"),
        (undoing.id, "decided"),
    ]


@promise("approvals:hostile-receivers")
async def test_an_answer_that_never_ends_is_not_read_and_nobody_is_sent_elsewhere():
    notice = Notice(
        id="task-1/f/1/now",
        sequence=1,
        event=NoticeKind.ENDED,
        at="2026-01-01",
        workflow_id="task-1\r\nx: y",
        run_id="f",
    )
    async with receiver() as (url, taken):
        settings = Settings.load(None, notify_urls=[f"{url}/endless", f"{url}/elsewhere"])
        async with open_webhooks(settings) as (endless, elsewhere), asyncio.timeout(150):
            await endless.send(notice)
            with pytest.raises(NotTaken, match="307"):
                await elsewhere.send(notice)
        paths = [taken.get_nowait()[0] for _ in range(taken.qsize())]
    assert paths == ["/endless", "/elsewhere"]
