"""The whole life of an approval in Slack against a real worker; from question to record over both ways in."""

import asyncio
import re
from contextlib import suppress

import pytest
import pytest_asyncio

import opening
from backstay import connect
from backstay.testing import Reply
from gateways.slack import interactions
from people.notices.delivering import close_lost
from tests.engine import ended, pending
from tests.requirements import promise
from tests.sizes import spread
from tests.slack.workspace import ANA, BO, BOTH_WAYS, FINISH, KEY, ONCE, U1, U2, decisions, mail, open_office
from tests.slack_server import AppDidNotAnswer

pytestmark = pytest.mark.timeout(400)


@pytest_asyncio.fixture(scope="module", params=ONCE)
async def office(request, temporal, tmp_path_factory):
    async with open_office(temporal, tmp_path_factory.mktemp(request.param), request.param) as opened:
        yield opened


@promise("slack:life")
@BOTH_WAYS
async def test_a_request_is_shown_approved_and_recorded_as_verified(office):
    handle, message = await office.asked(mail("a@x.example", body="Dear A,\nhow are you?"))
    assert "May this call be made?" in message.shown
    assert "[0] mail.send_email  (write_safe)" in message.shown
    assert "    body:\n    │ Dear A,\n    │ how are you?" in message.shown
    assert "can be undone: recall_email" in message.shown
    assert "Asked by rule:" in message.shown
    assert "The model says (nobody checked this): I write." in message.shown
    assert message.buttons == [
        "backstay.approve",
        "backstay.edit",
        "backstay.reject",
        "backstay.always",
        "backstay.more",
    ]
    assert office.sent(handle) == []
    await office.slack.press(message, "backstay.approve", user=U1)
    result = await ended(handle)
    assert (result["outcome"], decisions(result)) == ("completed", [("approve", ANA, True)])
    assert office.sent(handle) == ["a@x.example"]
    now = await office.slack.changed(message, f"Approved by {ANA}")
    assert now.buttons == []
    head = next(m for m in office.slack.standing("C1", None) if m.ts == message.thread_ts)
    ending = await office.slack.shows(head, "A run that ended: completed")
    assert "done" in ending.shown
    steps = await office.slack.message("run.ended", channel="C1")
    assert steps.thread_ts == message.thread_ts
    assert "action.called" in steps.shown


@promise("slack:arguments")
async def test_arguments_are_changed_in_a_form(office):
    handle, message = await office.asked(mail("a@x.example", body="Hello"))
    await office.slack.press(message, "backstay.edit", user=U1)
    view = await office.slack.view("mail.send_email", user=U1)
    same = await office.slack.submit(view, {})
    assert "nothing was changed" in str(same.answer)
    await office.slack.submit(view, {"argument.body": "Good morning", "comment": "politer"})
    again = await office.slack.message("CHANGED by ana@example.com:\n      ~ body: Hello -&gt; Good morning")
    before = office.sent(handle)
    await office.slack.press(again, "backstay.approve", user=U1)
    result = await ended(handle)
    assert before == []
    assert decisions(result) == [("modify", ANA, True), ("approve", ANA, True)]
    bodies = office.engine.mailbox.rows(
        "SELECT json_extract(arguments, '$.body') FROM requests WHERE tool = 'send_email' AND effect_id LIKE ?",
        f"{handle.id}/%",
    )
    assert bodies == [("Good morning",)]


@promise("slack:rejection")
async def test_a_rejection_tells_the_model_why(office):
    handle, message = await office.asked(mail("a@x.example"))
    await office.slack.press(message, "backstay.reject", user=U2)
    view = await office.slack.view(user=U2)
    await office.slack.submit(view, {"comment": "too risky"})
    result = await ended(handle)
    assert decisions(result) == [("reject", BO, True)]
    assert office.sent(handle) == []
    assert any("too risky" in str(request["messages"]) for request in office.engine.model.requests)
    await office.slack.changed(message, f"Rejected by {BO}")


@promise("slack:remembered")
async def test_a_decision_is_remembered_for_the_rest_of_the_run(office):
    handle, message = await office.asked(mail("a@x.example"), mail("b@x.example"))
    await office.slack.press(message, "backstay.always", user=U1)
    view = await office.slack.view("mail.send_email", user=U1)
    await office.slack.submit(view, {"remember": "run", "arguments": "any"})
    result = await ended(handle)
    assert decisions(result) == [("approve", ANA, True)]
    assert office.sent(handle) == ["a@x.example", "b@x.example"]


@promise("slack:remembered")
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("how", "which", "own", "other"),
    spread(
        [
            ("session", "any", {"session_id": "monday"}, {"session_id": "tuesday"}),
            ("always", "any", {"user_id": "kim"}, {"user_id": "sam"}),
            ("always", "alike", {"user_id": "pia"}, {"user_id": "sam"}),
            ("always", "these", {"user_id": "lea"}, {"user_id": "sam"}),
            ("never", "these", {"user_id": "rob"}, {"user_id": "sam"}),
        ],
        3,
    ),
)
async def test_a_decision_is_remembered_for_as_long_and_for_the_calls_that_are_chosen(office, how, which, own, other):
    handle, message = await office.asked(mail("a@x.example"), **own)
    await office.slack.press(message, "backstay.always", user=U1)
    view = await office.slack.view("mail.send_email", user=U1)
    await office.slack.submit(view, {"remember": how, "arguments": which})
    verdict = "reject" if how == "never" else "approve"
    assert decisions(await ended(handle)) == [(verdict, ANA, True)]
    holds = {"session": "this session"}.get(how, "every run of this user")
    told = await office.slack.message(f"{handle.id} r1: remembered for {holds}: mail.send_email")
    assert told.to == U1
    made = [] if how == "never" else ["a@x.example"]
    assert office.sent(handle) == made

    again = await office.engine.start(office.scripts.task(mail("a@x.example"), FINISH, **own))
    assert decisions(await ended(again)) == []
    assert office.sent(again) == made

    different = office.scripts.task(mail("b@x.example"), FINISH, **own)
    elsewhere = office.scripts.task(mail("a@x.example"), FINISH, **other)
    for task, asks in ((different, which != "any"), (elsewhere, True)):
        run = await office.engine.start(task)
        if asks:
            assert [request["kind"] for request in await pending(run)] == ["call"]
            await run.cancel()
        else:
            await ended(run)
            assert office.sent(run) == ["b@x.example"]


@promise("slack:two-people")
@pytest.mark.thorough
async def test_two_clicks_at_once_decide_once(office):
    handle, message = await office.asked(mail("a@x.example"))
    await asyncio.gather(*(office.slack.press(message, "backstay.approve", user=U1) for _ in range(2)))
    assert decisions(await ended(handle)) == [("approve", ANA, True)]
    assert office.sent(handle) == ["a@x.example"]


@promise("slack:two-people")
async def test_two_people_must_agree_and_one_counts_once(office):
    handle, message = await office.asked(mail("a@two.example"))
    assert "needed: 2; so far: 0" in message.shown
    await asyncio.gather(
        office.slack.press(message, "backstay.approve", user=U1),
        office.slack.press(message, "backstay.approve", user=U1),
    )
    message = await office.slack.changed(message, "so far: 1")
    assert f"approved by {ANA}" in message.shown
    before = office.whispers()
    await office.slack.press(message, "backstay.approve", user=U1)
    await office.whisper("already decided", after=before)
    await office.slack.press(message, "backstay.approve", user=U2)
    result = await ended(handle)
    assert decisions(result) == [("approve", ANA, True), ("approve", BO, True)]
    assert office.sent(handle) == ["a@two.example"]


@promise("slack:changed")
async def test_a_vote_that_came_from_elsewhere_is_shown_too(office):
    handle, message = await office.asked(mail("a@two.example"))
    async with connect(client=office.engine.client, approver_key=KEY) as backstay:
        await backstay.run(handle.id).approve("r1", by=BO)
        message = await office.slack.changed(message, f"approved by {BO}")
        await backstay.run(handle.id).approve("r1", by=ANA)
    assert (await ended(handle))["outcome"] == "completed"
    assert (await office.slack.changed(message, f"Approved by {ANA}")).buttons == []


@promise("slack:partly")
async def test_of_several_calls_some_are_left_out(office):
    handle, message = await office.asked(mail("a@x.example", "b@x.example", "c@x.example"))
    await office.slack.press(message, "backstay.choose", user=U1)
    view = await office.slack.view("without those that you leave out", user=U1)
    await office.slack.submit(view, {"leave_out": ["1"], "comment": "not b"})
    result = await ended(handle)
    assert decisions(result) == [("approve", ANA, True)]
    assert sorted(office.sent(handle)) == ["a@x.example", "c@x.example"]


@promise("slack:plan-parts")
async def test_parts_of_a_plan_are_decided_by_their_own_people(office):
    handle, message = await office.asked(plan("a@ana.example", "b@bo.example"))
    assert "letters" in message.shown
    assert "part 0: step 0: waits for ana@example.com" in message.shown
    assert "backstay.dry_run" in message.buttons
    await office.slack.press(message, "backstay.approve", user=U1)
    message = await office.slack.changed(message, f"part 0: step 0: approved by {ANA}")
    await office.slack.press(message, "backstay.choose", user=U2)
    view = await office.slack.view(user=U2)
    wrong = await office.slack.submit(view, {"leave_out": ["1"]})
    assert wrong.status == 200
    result = await ended(handle)
    assert decisions(result) == [("approve", ANA, True), ("approve", BO, True)]
    assert office.sent(handle) == ["a@ana.example"]


@promise("slack:reminded")
async def test_nobody_decides_in_time_and_people_are_reminded_before(office):
    handle, message = await office.asked(mail("a@soon.example"))
    reminder = await office.slack.message("Still waits for a decision")
    assert reminder.thread_ts == message.thread_ts
    assert "<@U1> <@U2>" in reminder.shown
    # Of so many people Slack is asked about the first ones only.
    looked_up = [call for call in office.slack.calls if call.method == "users.lookupByEmail"]
    assert len({call.arguments["email"] for call in looked_up}) == 40
    assert "p59@example.com" in reminder.shown
    now = await office.slack.changed(message, "Expired: nobody decided in time")
    assert now.buttons == []
    await office.slack.press(message, "backstay.approve", user=U1)
    await office.whisper("nobody decided in time")
    result = await ended(handle)
    assert decisions(result) == []
    assert office.sent(handle) == []


@promise("slack:others-asked")
async def test_others_are_asked_when_nobody_decided(office):
    handle, message = await office.asked(mail("a@boss.example"))
    message = await office.slack.changed(message, "Asked in addition, because nobody had decided in time: bo@")
    assert "then: reject" in message.shown
    await office.slack.press(message, "backstay.approve", user=U2)
    assert decisions(await ended(handle)) == [("approve", BO, True)]


def plan(*recipients):
    steps = [{"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}} for to in recipients]
    return Reply(calls=[("propose_plan", {"plan": {"title": "letters", "steps": steps}})])


async def reminder_of(office, message):
    """Wait for the message in the thread of a request that mentions those for whom it waits."""

    def posted():
        return next((m for m in office.thread(message) if "Still waits for a decision" in m.shown), None)

    return await office.slack.until(posted)


@promise("slack:parts-escalated")
async def test_who_has_approved_a_part_of_a_plan_is_mentioned_when_another_is_escalated_to_them(office):
    handle, message = await office.asked(plan("a@first.example", "b@second.example"))
    async with connect(client=office.engine.client, approver_key=KEY) as backstay:
        await backstay.run(handle.id).approve("r1", by=ANA)
    reminder = await reminder_of(office, message)
    assert set(re.findall("<@(U.)>", reminder.shown)) == {U1, U2}
    await office.slack.press(message, "backstay.approve", user=U1)
    assert decisions(await ended(handle)) == [("approve", ANA, True)] * 2


@promise("slack:anybody-escalated")
@pytest.mark.parametrize("reply", [mail("a@anybody.example"), plan("a@anybody.example")], ids=["call", "plan"])
async def test_whom_a_rule_escalates_to_that_names_no_approvers_is_mentioned(office, reply):
    handle, message = await office.asked(reply)
    assert "<@U2>" in (await reminder_of(office, message)).shown
    await office.slack.press(message, "backstay.approve", user=U2)
    assert decisions(await ended(handle)) == [("approve", BO, True)]


@promise("slack:withdrawn")
async def test_a_request_that_is_no_longer_needed_is_shown_so(office):
    handle, message = await office.asked(mail("a@x.example"))
    await handle.cancel()
    now = await office.slack.changed(message, "Withdrawn: no longer needed")
    assert now.buttons == []
    before = office.whispers()
    await office.slack.press(message, "backstay.edit", user=U1)
    await office.whisper("no longer needed", after=before)
    assert [view for view in office.slack.views.values() if "May the run" in view.shown] == []


@promise("slack:withdrawn")
@pytest.mark.thorough
async def test_a_request_of_a_run_that_ended_without_withdrawing_it_is_shown_so(office):
    handle, message = await office.asked(mail("a@x.example"), user_id=ANA)
    await handle.terminate("no worker hears of this")
    async with opening.open_store(office.settings) as store, connect(client=office.engine.client) as backstay:
        # A worker does so every minute.
        assert await close_lost(store, backstay) == 1
    now = await office.slack.changed(message, "The run has ended")
    assert now.buttons == []
    assert "RunTerminated" in (await office.slack.message("A run that ended: failed")).shown
    before = office.whispers()
    await office.slack.press(message, "backstay.approve", user=U1)
    await office.whisper("has ended", after=before)
    await office.slack.command("list", user=U1)
    await office.whisper(f"{handle.id}  ended in Temporal")
    assert office.sent(handle) == []


async def pressed_until_heard(office, message):
    """Press a button as a person does whom Slack tells that nothing answered: a connection may end that was new."""
    async with asyncio.timeout(150):
        while True:
            with suppress(AppDidNotAnswer):
                await office.slack.press(message, "backstay.approve", user=U1, within_s=10)
                return


@promise("slack:renewed")
@pytest.mark.parametrize("office", ["socket"], indirect=True)
async def test_people_go_on_deciding_when_slack_renews_the_connection(office):
    handle, message = await office.asked(mail("a@x.example"))
    (old,) = office.slack.sockets
    await office.slack.disconnect()
    await pressed_until_heard(office, message)
    assert decisions(await ended(handle)) == [("approve", ANA, True)]
    assert old not in office.slack.sockets
    assert (await office.slack.changed(message, f"Approved by {ANA}")).buttons == []


@promise("slack:asks")
async def test_a_question_is_answered(office):
    handle, message = await office.asked(Reply(calls=[("ask_person", {"question": "Which *one*, <!channel>?"})]))
    assert "<!channel>" not in message.text + message.shown
    assert "&lt;!channel&gt;" in message.shown
    await office.slack.press(message, "backstay.answer", user=U1)
    view = await office.slack.view(user=U1)
    await office.slack.submit(view, {"answer": "the second"})
    assert decisions(await ended(handle)) == [("answer", ANA, True)]
    assert any("the second" in str(request["messages"]) for request in office.engine.model.requests)


@promise("slack:limits")
async def test_limits_are_raised_in_a_form(office, monkeypatch):
    budget = {"max_steps": 1, "on_exhausted": "ask"}
    handle, message = await office.asked(mail("a@x.example"), budget=budget)
    await office.slack.press(message, "backstay.approve", user=U1)
    (request,) = await pending_kind(handle, "budget")
    message = await office.slack.message("A limit is reached")
    await office.slack.press(message, "backstay.answer", user=U1)
    view = await office.slack.view("Top up", user=U1)
    empty = await office.slack.submit(view, {})
    assert "say how much to add" in str(empty.answer)
    wrong = await office.slack.submit(view, {"field.max_steps": "many"})
    assert "whole number" in str(wrong.answer)
    with monkeypatch.context() as slow:
        # Slack closes a form that gets no answer in time.
        slow.setattr(interactions, "FORM_S", 0)
        assert (await office.slack.submit(view, {"field.max_steps": "many"})).answer is None
        await office.whisper("nothing was decided: type a whole number; press the button again")
    await office.slack.submit(view, {"field.max_steps": "5"})
    result = await ended(handle)
    assert decisions(result) == [("approve", ANA, True), ("answer", ANA, True)]
    assert result["budget"]["max_steps"] == 6
    assert request["options"] == ["answer", "reject"]


async def pending_kind(handle, kind):
    async with asyncio.timeout(150):
        while not (found := [request for request in await pending(handle) if request["kind"] == kind]):
            await asyncio.sleep(0.1)
    return found
