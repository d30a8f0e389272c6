"""examples/teams_bot: a door of one's own, over a real worker and a local stand-in for Teams."""

import ast
import asyncio
import json
import os
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

import opening
from backstay import connect
from backstay.errors import SettingsInvalid
from backstay.testing import Reply
from examples.teams_bot.__main__ import PATH, bot_settings, open_bot
from tests.docs.blocks import HOUSE
from tests.engine import Engine, Scripts, ended, engine, pending
from tests.requirements import promise
from tests.serving import served
from tests.teams_server import APP, OTHER_TENANT, Teams, member, open_teams, opened_by

pytestmark = pytest.mark.timeout(400)
KEY, DESK = "the key of workers and gateways", "https://desk.example"
ANA, BO = "ana@example.com", "bo@example.com"
POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
repeated: allow
ask:
  - {tool: mail.send_email, when: {to: {ends_with: "@ana.example"}}, approvers: [ana@example.com]}
  - {tool: mail.send_email, when: {to: {ends_with: "@both.example"}}, approvers: [ana@example.com, bo@example.com],
     quorum: 2}
  - {tool: mail.send_email, when: {to: {ends_with: "@soon.example"}}, approvers: [ana@example.com], timeout: 4s,
     remind_after: 1s}
"""
FINISH = Reply(calls=[("finish", {"summary": "done"})])


@dataclass
class Office:
    """Hold what a test needs."""

    teams: Teams
    engine: Engine
    scripts: Scripts

    async def asked(self, *replies, **fields):
        """Start a run, and return it and the card of its last request."""
        task = self.scripts.task(*replies, FINISH, **fields)
        before = len(self.teams.messages)
        handle = await self.engine.start(task)
        await pending(handle)
        return handle, await self.teams.card(task["text"], after=before)

    def sent(self, handle):
        """Return the recipients of the mails of a run."""
        query = "SELECT json_extract(arguments, '$.to') FROM requests WHERE tool = 'send_email' AND effect_id LIKE ?"
        return [row[0] for row in self.engine.mailbox.rows(f"{query} ORDER BY id", f"{handle.id}/%")]


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    folder, scripts = tmp_path_factory.mktemp("teams"), Scripts()
    async with AsyncExitStack() as stack:
        teams = await stack.enter_async_context(open_teams())
        given = {"policy": POLICY, "approver_key": KEY, "url": DESK, "cached": 200}
        running = await stack.enter_async_context(engine(temporal, folder, scripts, **given))
        store = await stack.enter_async_context(opening.open_store(running.settings))
        queue = running.settings.task_queue
        backstay = await stack.enter_async_context(connect(client=temporal, task_queue=queue, approver_key=KEY))
        app = await stack.enter_async_context(open_bot(teams.settings, backstay, store))
        teams.bot = f"{await stack.enter_async_context(served(app))}{PATH}"
        yield Office(teams, running, scripts)


def mail(*recipients, body="Hello", subject="s"):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": subject, "body": body}) for to in recipients])


def decisions(result):
    """Return what was decided: verdict, by whom, and whether that was verified."""
    told = [event["data"] for event in result["events"] if event["name"] == "approval.decided"]
    return [(data["verdict"], data["by"], data["verified"]) for data in told]


@promise("clients:teams-short")
def test_a_door_of_ones_own_has_at_most_450_lines_of_code():
    files = [*(HOUSE / "examples/teams_bot").glob("*.py")]
    assert sum(map(lines_of_code, files)) <= 450


def lines_of_code(path):
    """Count the lines of a file that are neither blank, comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    told = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)]
    words = {line for n in told for line in range(n.lineno, (n.end_lineno or n.lineno) + 1)}
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and at not in words for at, line in lines)


@promise("clients:teams-proven")
async def test_what_a_member_presses_reaches_the_run_proven_and_once_and_the_card_says_so(office):
    handle, card = await office.asked(mail("a@ana.example", body="**bold** [link](https://evil.example)\n- Approve"))
    lines = card.text.split("\n")
    assert lines[0] == "May this call be made?"
    assert "[0] mail.send_email  (write_safe)" in lines
    assert "    to: a@ana.example" in lines
    # What others wrote is text, in which Teams finds no format and no link.
    assert any("**bold** [link](https://evil.example)" in line for line in lines)
    assert '"TextBlock"' not in json.dumps(card.card)
    assert {"Approve", "Edit…", "Reject…", "The request"} <= {*card.buttons}
    value = office.teams.value(card.card, "Approve")
    presses = [office.teams.activity("ana", value, card.id) for _ in range(2)]
    await asyncio.gather(*map(office.teams.send, presses))
    result = await ended(handle)
    await office.teams.changed(card, f"Approved by {ANA}")
    # The same request comes once more, as to somebody who has recorded it; and one more press of the old card.
    count = len(office.teams.messages)
    await office.teams.send(presses[0])
    await office.teams.send(office.teams.activity("bo", value, card.id))
    assert "decided already" in (await office.teams.card("decided already", after=count)).text
    assert decisions(result) == [("approve", ANA, True)]
    assert office.sent(handle) == ["a@ana.example"]
    assert card.buttons == ["The request"]
    assert (
        len([each for each in office.teams.messages.values() if f'"{handle.id}' in json.dumps(each.versions[0])]) <= 1
    )


@promise("clients:teams-reject")
async def test_a_member_rejects_with_a_comment_that_the_model_reads(office):
    heard = []

    def read(conversation):
        heard.append(json.dumps(conversation.messages))
        return FINISH

    handle, card = await office.asked(mail("a@x.example"), read)
    await office.teams.press(card, "Reject…", comment="not on a Sunday")
    result = await ended(handle)
    await office.teams.changed(card, f"Rejected by {ANA}", "Comment: not on a Sunday")
    assert decisions(result) == [("reject", ANA, True)]
    assert office.sent(handle) == []
    assert "not on a Sunday" in heard[0]


@promise("clients:teams-edit")
async def test_a_member_changes_arguments_and_an_old_card_decides_nothing_of_what_is_asked_then(office):
    handle, card = await office.asked(mail("a@x.example", body="Dear all,\nhello"))
    stale = office.teams.value(card.card, "Approve")
    count = len(office.teams.messages)
    await office.teams.press(card, "Edit…")
    form = await office.teams.card("what you change is checked", after=count)
    assert {each["label"]: each["value"] for each in form.card["body"] if each["type"] == "Input.Text"} == {
        "to": "a@x.example",
        "subject": "s",
        "body": "Dear all,\nhello",
        "Comment": "",
    }
    to = next(each["id"] for each in form.card["body"] if each.get("label") == "to")
    await office.teams.press(form, "Ask again")
    await office.teams.card("nothing was changed", after=count)
    await office.teams.press(form, "Ask again", **{to: "b@x.example"})
    again = await office.teams.card("CHANGED by ana@example.com", "    to: b@x.example", after=count)
    await office.teams.changed(form, f"Changed by {ANA}")
    assert form.buttons == []
    await office.teams.send(office.teams.activity("ana", stale, card.id))
    await office.teams.card("decided already", after=count)
    assert office.sent(handle) == []
    await office.teams.press(again, "Approve", user="bo")
    result = await ended(handle)
    assert decisions(result)[-1] == ("approve", BO, True)
    assert office.sent(handle) == ["b@x.example"]


@promise("clients:teams-answer")
async def test_a_member_answers_a_question(office):
    handle, card = await office.asked(Reply(calls=[("ask_person", {"question": "Which of them?\nSay it."})]))
    assert {"Which of them?", "Say it."} <= {*card.text.split("\n")}
    count = len(office.teams.messages)
    await office.teams.press(card, "Answer…", answer="  ")
    await office.teams.card("it is empty", after=count)
    await office.teams.press(card, "Answer…", answer="the second one")
    result = await ended(handle)
    assert decisions(result) == [("answer", ANA, True)]


@promise("clients:teams-proven")
@pytest.mark.thorough
async def test_of_forty_calls_a_member_leaves_some_out(office):
    every = [f"p{number}@x.example" for number in range(40)]
    handle, card = await office.asked(mail(*every), budget={"max_tool_calls": 60})
    lines = {line.strip() for line in card.text.split("\n")}
    assert lines >= {f"[{number}] to: {to}" for number, to in enumerate(every)}
    offered = opened_by(card.card, "Choose…")["body"][0]
    assert [choice["value"] for choice in offered["choices"]] == [str(number) for number in range(40)]
    assert "p39@x.example" in offered["choices"][39]["title"]
    await office.teams.press(card, "Choose…", out="3,17", comment="not these")
    await ended(handle)
    assert sorted(office.sent(handle)) == sorted({*every} - {every[3], every[17]})
    # A Result holds the last events only.
    assert decisions(await handle.query("timeline", {"after": 0})) == [("approve", ANA, True)]


@promise("clients:teams-whole")
async def test_what_a_card_has_no_room_for_is_approved_on_the_page_only(office):
    handle, card = await office.asked(mail(*(f"p{n}@x.example" for n in range(12)), body="word " * 500))
    assert "characters" in card.text
    assert "look at it and approve it on the page" in card.text
    assert not {"Approve", "Choose…", "Remember…"} & {*card.buttons}
    (link,) = [a for row in card.card["body"] for a in row.get("actions", ()) if a["title"] == "Look at all of it"]
    assert link["url"].startswith(f"{DESK}/requests/")
    # Whoever writes the press themselves approves nothing either.
    count = len(office.teams.messages)
    value = office.teams.value(card.card, "Reject…") | {"choice": "approve"}
    await office.teams.send(office.teams.activity("ana", value, card.id))
    await office.teams.card("all of it must be shown before it is approved", after=count)
    await office.teams.press(card, "Reject…", then="stop")
    assert (await ended(handle))["outcome"] == "rejected"
    assert office.sent(handle) == []


@promise("clients:teams-remember")
async def test_a_member_has_a_decision_remembered_and_is_told_how_far(office):
    handle, card = await office.asked(mail("a@x.example"), mail("b@x.example"))
    count = len(office.teams.messages)
    await office.teams.press(card, "Remember…", remember="run", arguments="any")
    await office.teams.card("remembered for", "mail.send_email", after=count)
    await ended(handle)
    assert office.sent(handle) == ["a@x.example", "b@x.example"]


@promise("clients:teams-expired")
async def test_a_request_that_nobody_decides_is_reminded_of_and_then_said_to_have_expired(office):
    count = len(office.teams.messages)
    handle, card = await office.asked(mail("a@soon.example"))
    value = office.teams.value(card.card, "Approve")
    await office.teams.card("Still waits for a decision", after=count)
    await office.teams.changed(card, "Expired: nobody decided in time")
    count = len(office.teams.messages)
    await office.teams.send(office.teams.activity("ana", value, card.id))
    await office.teams.card("nobody decided in time", after=count)
    await ended(handle)
    assert office.sent(handle) == []


@promise("clients:teams-votes")
async def test_of_two_who_must_agree_the_first_one_is_shown_and_each_counts_once(office):
    handle, card = await office.asked(mail("a@both.example"))
    await office.teams.press(card, "Approve")
    await office.teams.changed(card, f"approved by {ANA}")
    assert "Approve" in card.buttons
    await office.teams.press(card, "Approve")
    await office.teams.press(card, "Approve", user="bo")
    result = await ended(handle)
    assert decisions(result)[-1] == ("approve", BO, True)
    assert office.sent(handle) == ["a@both.example"]


@promise("clients:teams-strangers")
async def test_guests_people_of_other_tenants_and_people_without_authority_decide_nothing(office):
    handle, card = await office.asked(mail("a@ana.example"))
    teams, value = office.teams, office.teams.value(card.card, "Approve")
    teams.members |= {
        "guest": member("guest", role="guest"),
        "named": member("named", userPrincipalName="ana_example.com#EXT#@tenant.onmicrosoft.com"),
        "foreign": member("foreign", OTHER_TENANT),
        "other": member("other", aadObjectId="oid-ana"),
        "kelvin": member("kelvin", userPrincipalName="\u212aim@example.com"),
        "renamed": member("renamed", email=ANA),
    }
    said = {
        **dict.fromkeys(("guest", "foreign", "other"), "guests and people of other tenants decide nothing"),
        **dict.fromkeys(("named", "kelvin"), "you have no name of this tenant"),
        # An address in the directory makes nobody Ana.
        "renamed": "renamed@example.com",
        "bo": "bo@example.com",
    }
    for user, words in said.items():
        count, activity = len(teams.messages), teams.activity(user, value, card.id)
        if user == "other":
            activity["from"]["aadObjectId"] = "oid-bo"
        await teams.send(activity)
        await teams.card(words, after=count)
    count, activity = len(teams.messages), teams.activity("ana", value, card.id)
    activity["conversation"]["tenantId"] = OTHER_TENANT
    await teams.send(activity)
    await teams.card("people of other tenants decide nothing", after=count)
    elsewhere = teams.activity("ana", value, card.id, conversation={"id": "19:other@thread", "tenantId": TENANT_OF_ANA})
    await teams.send(elsewhere)
    assert (await pending(handle))[0]["decided"] == []
    await teams.press(card, "Approve")
    assert decisions(await ended(handle)) == [("approve", ANA, True)]


TENANT_OF_ANA = member("ana")["tenantId"]
NOW = time.time


def forged(teams):
    """Yield tokens that nobody may be let in with, each with what is wrong with it."""
    public = teams.keys["one"].public_key()
    return {
        "no token": "abc",
        "alg none": teams.token(algorithm="none"),
        "signed with the id of the app": teams.token(algorithm="HS256", key=APP * 8),
        "signed by a key that nobody publishes": teams.token("unpublished"),
        "signed by another key under a known id": teams.token("one", key=teams.keys["unpublished"]),
        "signed by another kind": teams.token(algorithm="PS256"),
        "a key for another channel": teams.token("elsewhere"),
        "expired": teams.token(nbf=int(NOW()) - 4000, exp=int(NOW()) - 400),
        "not valid yet": teams.token(nbf=int(NOW()) + 400),
        "for another app": teams.token(aud="app-2"),
        "for several apps": teams.token(aud=[APP, "app-2"]),
        "of another issuer": teams.token(iss="https://sts.windows.net/tenant-1/"),
        "without an end": teams.token(exp=None),
        "without a service": teams.token(serviceurl=None),
        "of another service": teams.token(serviceurl="https://evil.example/"),
        "changed": f"{teams.token()[:-4]}AAAA",
        "too long": teams.token(more="x" * 20_000),
        "known": str(public),
    }


@promise("clients:teams-forged")
async def test_what_bot_framework_did_not_sign_for_this_bot_is_refused_and_replies_go_nowhere_else(office):
    handle, card = await office.asked(mail("a@ana.example"))
    teams, value = office.teams, office.teams.value(card.card, "Approve")
    async with open_teams() as other:
        for what, token in forged(teams).items():
            assert await teams.deliver(teams.activity("ana", value, card.id), token) == 403, what
        # What stands in an activity is believed as far as its token vouches for it, and goes where the settings allow.
        away = {"serviceUrl": f"{other.address}/emea/"}
        assert await teams.deliver(teams.activity("ana", value, card.id, **away)) == 403
        token = teams.token(serviceurl=away["serviceUrl"])
        assert await teams.deliver(teams.activity("ana", value, card.id, **away), token) == 403
        assert await teams.deliver(teams.activity("ana", value, card.id, channelId="slack")) == 403
        assert other.tokens == []
    within = teams.token(nbf=int(NOW()) - 4000, exp=int(NOW()) - 200)
    assert (await pending(handle))[0]["decided"] == []
    assert await teams.deliver(teams.activity("ana", value, card.id), within) == 202
    assert decisions(await ended(handle)) == [("approve", ANA, True)]


@promise("clients:teams-bounds")
async def test_what_is_too_long_too_deep_or_no_activity_is_refused(office):
    handle, card = await office.asked(mail("a@ana.example"))
    teams, value = office.teams, office.teams.value(card.card, "Approve")
    own = teams.activity("ana", value, card.id)
    wrong = {
        "too long": json.dumps(own | {"text": "x" * 300_000}).encode(),
        "a long field": own | {"value": value | {"comment": "x" * 70_000}},
        "a long name": own | {"value": value | {"x" * 2000: "1"}},
        "many fields": own | {"value": {f"f{number}": "" for number in range(400)}},
        "a long id": own | {"id": "x" * 2000},
        "deep": b"[" * 100_000,
        "no JSON": b"approve",
        "no text": b"\xff\xfe",
        "a list": [own],
    }
    for what, activity in wrong.items():
        assert await teams.deliver(activity) == 400, what
    count = len(teams.messages)
    odd = {"backstay": ["x"], "choice": {}, "seen": 7}
    others = {"backstay": "{", "of another version": "{}"}
    for number, given in enumerate((odd, *({"backstay": each} for each in others.values()))):
        await teams.send(teams.activity("ana", value | given, card.id))
        await teams.until(lambda number=number: len(teams.messages) == count + number + 1)
    await teams.send(teams.activity("ana", value | {"choice": "modify", "call": "1,2"}, card.id))
    await teams.send(teams.activity("ana", value | {"choice": "launch"}, card.id))
    await teams.card("this card is of another version", after=count)
    assert (await pending(handle))[0]["decided"] == []
    await teams.press(card, "Approve")
    assert decisions(await ended(handle)) == [("approve", ANA, True)]


@promise("clients:teams-away")
async def test_what_teams_does_not_take_is_posted_when_it_does_and_a_deleted_card_stays_deleted(office):
    office.teams.refuses, before = 503, len(office.teams.messages)
    task = office.scripts.task(mail("a@x.example"), FINISH)
    handle = await office.engine.start(task)
    await pending(handle)
    office.teams.refuses = 0
    card = await office.teams.card(task["text"], after=before)
    value = office.teams.value(card.card, "Approve")
    del office.teams.messages[card.id]
    await office.teams.send(office.teams.activity("ana", value, card.id))
    assert decisions(await ended(handle)) == [("approve", ANA, True)]
    assert not any(task["text"] in each.text for each in office.teams.messages.values())


@promise("clients:teams-settings")
async def test_a_setting_that_is_missing_or_wrong_is_named_and_the_secret_is_shown_nowhere(tmp_path, nursery):
    given = {
        "APP_ID": "a",
        "APP_PASSWORD": "the-secret",
        "TENANT": "t",
        "SERVICE_URL": "https://s",
        "CONVERSATION": "c",
    }
    variables = {f"TEAMS_{name}": value for name, value in given.items()}
    settings = bot_settings(variables)
    assert "the-secret" not in repr(settings)
    for name in given:
        with pytest.raises(SettingsInvalid, match=f"TEAMS_{name}: not set"):
            bot_settings({each: value for each, value in variables.items() if each != f"TEAMS_{name}"})
    for name in ("service_url", "openid", "login"):
        with pytest.raises(SettingsInvalid, match=f"TEAMS_{name.upper()}: .* is not https"):
            replace(settings, **{name: "http://service.example"})
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOUSE), "BACKSTAY_HOME": str(tmp_path)}
    bot = await nursery.raised("examples.teams_bot", environment=environment, folder=HOUSE, log=tmp_path / "said")
    assert await bot.ended(150) == 2
    assert bot.said().splitlines()[-1].startswith("SettingsInvalid: TEAMS_APP_ID: not set")
