"""What else is decided in Slack: lost outcomes, ways to approve a plan, one call of several.

Over HTTP, and at full size over socket mode alike.
"""

import json

import pytest
import pytest_asyncio

from backstay import connect
from backstay.approvals.verdicts import verdict_words
from backstay.client import Backstay
from backstay.testing import Reply
from tests.engine import ended, toolbox_of
from tests.requirements import promise
from tests.slack.workspace import ANA, BO, KEY, ONCE, U1, U2, decisions, mail, open_office

pytestmark = pytest.mark.timeout(400)


@pytest_asyncio.fixture(scope="module", params=ONCE)
async def office(request, temporal, tmp_path_factory):
    async with open_office(temporal, tmp_path_factory.mktemp(request.param), request.param) as opened:
        yield opened


def step(to, **fields):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}, **fields}


def propose(*steps, **fields):
    return Reply(calls=[("propose_plan", {"plan": {"title": "letters", "steps": list(steps)}, **fields})])


def losing(folder):
    """Return a toolbox whose server does what it is told once, and dies before it answers."""
    path = toolbox_of(folder, folder / "mailbox.db", MAILBOX_DIE_AFTER_SEND="1")
    data = json.loads(path.read_text(encoding="utf-8"))
    declared = {"safety": "write_safe", "idempotency_argument": "client_token"}
    data["providers"]["mail"]["tools"]["send_email"] = declared
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@promise("slack:outcome")
@pytest.mark.parametrize("mode", ONCE)
async def test_a_call_whose_outcome_nobody_knows_is_settled_by_a_button(temporal, tmp_path, mode):
    more = {"policy": "allow: ['mail.*']", "toolbox": losing(tmp_path), "request_deadline_seconds": 3}
    async with open_office(temporal, tmp_path, mode, **more) as office:
        handle, message = await office.asked(mail("a@x.example"))
        assert "A person must say what happened" in message.shown
        assert message.buttons[:3] == ["backstay.happened", "backstay.did_not_happen", "backstay.retry"]
        told = await office.slack.message("Nobody knows whether mail.send_email took place")
        assert told.thread_ts == message.thread_ts
        await office.slack.press(message, "backstay.happened", user=U1)
        result = await ended(handle)
    assert decisions(result) == [("happened", ANA, True)]
    assert [effect["state"] for effect in result["effects"]] == ["applied"]


@promise("slack:outcome")
@pytest.mark.thorough
async def test_who_changes_what_they_said_of_an_outcome_is_shown_with_what_they_say_now(temporal, tmp_path):
    more = {"toolbox": losing(tmp_path), "request_deadline_seconds": 3}
    async with open_office(temporal, tmp_path, "http", **more) as office:
        handle, message = await office.asked(mail("a@two.example"))
        await office.slack.press(message, "backstay.approve", user=U1)
        await office.slack.press(message, "backstay.approve", user=U2)
        asked = await office.slack.message("A person must say what happened")
        async with connect(client=office.engine.client, approver_key=KEY) as backstay:
            run = backstay.run(handle.id)
            (request,) = await run.pending()
            for said in ("happened", "did_not_happen", "happened", "did_not_happen"):
                await run.settle(request, said, by=ANA)
                asked = await office.slack.changed(asked, f"{verdict_words(said)} by {ANA}")
            await run.settle(request, "did_not_happen", by=BO)
        result = await ended(handle)
    assert result["outcome"] == "completed"


@promise("slack:dry-run")
async def test_a_plan_is_gone_through_without_being_carried_out(office):
    handle, message = await office.asked(propose(step("a@x.example")))
    await office.slack.press(message, "backstay.dry_run", user=U1)
    result = await ended(handle)
    (event,) = [event for event in result["events"] if event["name"] == "approval.decided"]
    assert decisions(result) == [("approve", ANA, True)]
    assert office.sent(handle) == []
    assert event["text"] == f"approved by {ANA}"


@promise("slack:two-plans")
async def test_of_two_plans_the_one_that_is_approved_is_carried_out_and_the_other_message_says_so(office):
    other = {"title": "another way", "steps": [step("second@x.example")]}
    handle, _ = await office.asked(propose(step("first@x.example"), alternatives=[other]), count=2)
    first = await office.message("first@x.example")
    second = await office.message("another way")
    assert "Instead of it: p2" in first.shown
    assert "Instead of it: p1" in second.shown
    await office.slack.press(second, "backstay.approve", user=U1)
    await ended(handle)
    assert office.sent(handle) == ["second@x.example"]
    await office.slack.changed(second, f"Approved by {ANA}")
    assert (await office.slack.changed(first, "Withdrawn")).buttons == []


@promise("slack:narrowed")
async def test_an_approver_gives_each_step_less_time_and_leaves_a_step_out(office):
    steps = [step("a@x.example"), step("b@x.example")]
    handle, message = await office.asked(propose(*steps))
    assert "A step may take" in message.shown
    await office.slack.press(message, "backstay.choose", user=U1)
    view = await office.slack.view("without those that you leave out", user=U1)
    wrong = await office.slack.submit(view, {"timeout_s": "soon"})
    assert "type a number, at most" in str(wrong.answer)
    await office.slack.submit(view, {"timeout_s": "4", "leave_out": ["1"], "comment": "only a"})
    result = await ended(handle)
    assert office.sent(handle) == ["a@x.example"]
    assert decisions(result) == [("approve", ANA, True)]


@promise("slack:arguments")
@pytest.mark.thorough
async def test_one_call_of_several_is_chosen_and_changed(office):
    handle, message = await office.asked(mail("a@x.example", "b@x.example"))
    await office.slack.press(message, "backstay.edit", user=U1)
    which = await office.slack.view("Which one is to be changed?", user=U1)
    await office.slack.submit(which, {"call": "1"})
    view = await office.slack.view("Nothing is sent yet: you are shown all calls again", user=U1)
    await office.slack.submit(view, {"argument.to": "c@x.example"})
    again = await office.slack.message("CHANGED by ana@example.com:\n      ~ to: b@x.example -&gt; c@x.example")
    before = office.sent(handle)
    assert "as changed by" in again.shown
    await office.slack.press(again, "backstay.approve", user=U1)
    result = await ended(handle)
    assert before == []
    assert decisions(result) == [("modify", ANA, True), ("approve", ANA, True)]
    assert sorted(office.sent(handle)) == ["a@x.example", "c@x.example"]


@promise("slack:rejection")
async def test_a_rejection_can_stop_the_run(office):
    handle, message = await office.asked(mail("a@x.example"))
    await office.slack.press(message, "backstay.reject", user=U1)
    view = await office.slack.view("And then?", user=U1)
    await office.slack.submit(view, {"then": "stop", "comment": "enough"})
    result = await ended(handle)
    assert (result["outcome"], decisions(result)) == ("rejected", [("reject", ANA, True)])


@promise("slack:whole")
async def test_everything_is_shown_to_who_asks_for_it(office):
    body = "".join(f"line {n} <!channel>\n" for n in range(300))
    handle, message = await office.asked(mail("a@x.example", body=body))
    assert "line 299" not in message.shown
    assert "kept apart and not shown" in message.shown
    assert "backstay.approve" not in message.buttons
    assert "Not all of it is shown here" in str(message.blocks)
    await office.slack.press(message, "backstay.more", user=U1)
    view = await office.slack.view("line 0", user=U1)
    assert "line 299 &lt;!channel&gt;" in view.shown
    assert "<!channel>" not in view.shown
    approving = Backstay(office.engine.client, task_queue=office.settings.task_queue, approver_key=KEY)
    await approving.run(handle.id).approve("r1", by=ANA)
    assert (await ended(handle))["outcome"] == "completed"
