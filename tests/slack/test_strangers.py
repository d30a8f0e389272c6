"""Whom the gateway believes, over HTTP and over socket mode: Slack alone, and people that it can name.

Only over HTTP is there a signature, and an address at which strangers can knock.
"""

import asyncio
import json
import logging
import time
from dataclasses import replace

import aiohttp
import pytest
import pytest_asyncio
from slack_bolt.async_app import AsyncBoltRequest
from slack_sdk.web.async_client import AsyncWebClient

from backstay import connect
from backstay.settings import Settings
from gateways.slack import serving
from gateways.slack.app import _app
from tests.engine import ended, pending
from tests.requirements import promise
from tests.slack.workspace import ANA, BO, KEY, ONCE, OVER_HTTP, U1, U2, U3, decisions, mail, open_office

pytestmark = pytest.mark.timeout(400)


@pytest_asyncio.fixture(scope="module", params=ONCE)
async def office(request, temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    people = folder / "people.yaml"
    people.write_text("U7: cy@example.com\nU8: null\n", encoding="utf-8")
    async with open_office(temporal, folder, request.param, slack_users=people) as opened:
        yield opened


async def waits(handle):
    """Assert that nobody has decided anything."""
    (request,) = await pending(handle)
    assert request["decided"] == []


@promise("slack:strangers")
@OVER_HTTP
async def test_what_is_forged_or_old_is_refused(office):
    handle, message = await office.asked(mail("a@ana.example"))
    assert (await office.slack.press(message, "backstay.approve", secret="another")).status == 401
    assert (await office.slack.press(message, "backstay.approve", age_s=600)).status == 401
    assert (await office.slack.command("run something", secret="another")).status == 401
    unsigned = {"X-Slack-Signature": ""}
    assert (await office.slack.press(message, "backstay.approve", headers=unsigned)).status == 401
    await waits(handle)
    await office.slack.press(message, "backstay.approve")
    assert decisions(await ended(handle)) == [("approve", ANA, True)]


@promise("slack:again")
async def test_what_is_delivered_again_counts_once(office):
    handle, message = await office.asked(mail("a@two.example"))
    pressed = await office.slack.press(message, "backstay.approve", user=U1)
    await office.slack.changed(message, "so far: 1")
    before = office.whispers()
    for attempt in (1, 2):
        assert (await office.slack.repeat(pressed, attempt=attempt)).status == 200
    await office.slack.press(message, "backstay.reject", user=U2)
    view = await office.slack.view(user=U2)
    sent = await office.slack.submit(view, {"comment": "no"}, user=U2)
    await office.slack.repeat(sent)
    result = await ended(handle)
    assert decisions(result) == [("approve", ANA, True), ("reject", BO, True)]
    told = [m.text for m in office.slack.standing() if m.to][before:]
    assert told == []


@promise("slack:people")
@pytest.mark.thorough
async def test_only_people_whom_slack_or_the_operator_vouches_for_decide(office):
    handle, message = await office.asked(mail("a@x.example"))
    strangers = {
        "U20": ({"email": "eve@example.com", "confirmed": False}, "has not confirmed your e-mail"),
        "U21": ({"email": None}, "no e-mail address"),
        "U22": ({"email": "eve@example.com", "is_restricted": True}, "guests"),
        "U23": ({"email": "eve@example.com", "is_ultra_restricted": True}, "guests"),
        "U24": ({"email": "eve@example.com", "is_bot": True}, "apps"),
        "U25": ({"email": "eve@example.com", "deleted": True}, "deactivated"),
        "U26": ({"email": "eve@example.com", "team_id": "T9"}, "other workspaces"),
        "U27": ({"email": "CY@example.com"}, "to another account"),
        "U28": ({"email": "\u212ay@example.com"}, "not plain letters"),
    }
    for user, (profile, why) in strangers.items():
        office.slack.add_user(user, **profile)
        before = office.whispers()
        await office.slack.press(message, "backstay.approve", user=user)
        await office.whisper(why, after=before)
    before = office.whispers()
    await office.slack.press(message, "backstay.approve", user="U8")
    await office.whisper("lets you decide nothing", after=before)
    before = office.whispers()
    await office.slack.press(message, "backstay.approve", user="U99")
    await office.whisper("does not say who you are", after=before)
    await office.slack.press(message, "backstay.reject", user="U22")
    await waits(handle)
    assert [view for view in office.slack.views.values() if view.user in {"U1", "U22"}] == []
    await office.slack.press(message, "backstay.approve", user="U7")
    assert decisions(await ended(handle)) == [("approve", "cy@example.com", True)]


@promise("slack:organization")
async def test_members_of_a_workspace_of_an_organization_decide_there_and_people_of_its_others_do_not(
    temporal, tmp_path
):
    file = tmp_path / "people.yaml"
    file.write_text("U52: cy@example.com\nU62: eve@example.com\nU64: eve@example.com\n", encoding="utf-8")
    async with open_office(temporal, tmp_path, "http", organization="E0ORG", slack_users=file) as office:
        both, other = {"teams": ["T0TWO", "T0TEST"]}, {"teams": ["T0TWO"]}
        members = {
            # Slack names the organization for one of them, and another workspace of it for the others.
            "U50": {"email": ANA, "enterprise_user": both},
            "U51": {"email": BO, "enterprise_user": both, "team_id": "T0TWO"},
            "U52": {"email": None, "enterprise_user": both, "team_id": "T0TWO"},
        }
        strangers = {
            "U60": {"email": ANA, "enterprise_user": other},
            "U61": {"email": ANA, "enterprise_user": other, "team_id": "T0TWO"},
            "U62": {"email": None, "enterprise_user": other},
            "U63": {"email": ANA, "enterprise_user": {"teams": ["T9"]}, "team_id": "E9", "is_stranger": True},
            "U64": {"email": None, "team_id": "T9", "is_stranger": True},
        }
        for user, profile in {**members, **strangers}.items():
            office.slack.add_user(user, **profile)
        handle, message = await office.asked(mail("a@two.example"))
        unnamed, unnamed_message = await office.asked(mail("a@x.example"))
        for user in strangers:
            before = office.whispers()
            await office.slack.press(message, "backstay.approve", user=user)
            await office.whisper("people of other workspaces decide nothing", after=before)
        await waits(handle)
        await office.slack.press(message, "backstay.approve", user="U50")
        await office.slack.press(message, "backstay.approve", user="U51")
        assert sorted(decisions(await ended(handle))) == [("approve", ANA, True), ("approve", BO, True)]
        await office.slack.press(unnamed_message, "backstay.approve", user="U52")
        assert decisions(await ended(unnamed)) == [("approve", "cy@example.com", True)]


@promise("slack:not-named")
async def test_somebody_whom_the_rule_does_not_name_is_told_so(office):
    handle, message = await office.asked(mail("a@ana.example"))
    before = office.whispers()
    await office.slack.press(message, "backstay.approve", user=U2)
    await office.whisper("bo@example.com is not an approver", after=before)
    await waits(handle)
    await office.slack.press(message, "backstay.reject", user=U2)
    view = await office.slack.view(user=U2)
    refused = await office.slack.submit(view, {})
    assert refused.answer["response_action"] == "errors"
    assert "is not an approver" in str(refused.answer["errors"])
    await handle.terminate("the test is over")


@promise("slack:tampered")
async def test_a_message_of_an_earlier_run_or_of_another_request_decides_nothing(office):
    task = office.scripts.task(mail("a@ana.example"))
    first = await office.engine.start(task, "the-same-name")
    await pending(first)
    old = await office.message(task["text"])
    await first.terminate("it begins again")
    second = await office.engine.start(task, "the-same-name")
    await pending(second)
    before = office.whispers()
    await office.slack.press(old, "backstay.approve", user=U1)
    await office.whisper("of an earlier run of the same name", after=before)
    await office.slack.press(old, "backstay.edit", user=U1)
    forged = json.loads(old.blocks[-1]["elements"][0]["value"]) | {
        "run_id": second.first_execution_run_id,
        "digest": "0" * 64,
    }
    before = office.whispers()
    await press_value(office, old, json.dumps(forged))
    await office.whisper("another request than the one that waits", after=before)
    await press_value(office, old, "no JSON at all")
    await office.whisper("of another version")
    await waits(second)
    assert [view for view in office.slack.views.values() if view.user in {"U1", "U22"}] == []
    new = await office.slack.until(
        lambda: next(
            (m for m in office.slack.standing() if task["text"] in m.shown and "backstay.edit" in m.buttons), None
        )
    )
    await office.slack.press(new, "backstay.approve", user=U1)
    await ended(second)


async def press_value(office, message, value):
    """Press a button that carries something else than ours does."""
    blocks = json.loads(json.dumps(message.blocks))
    blocks[-1]["elements"][0]["value"] = value
    await office.slack.press(replace(message, blocks=blocks), "backstay.approve", user=U1)


@promise("slack:tampered")
@pytest.mark.thorough
async def test_a_tampered_button_or_form_decides_nothing(office):
    handle, message = await office.asked(mail("a@ana.example"))
    other, other_message = await office.asked(mail("b@ana.example"))
    own, of_other = (json.loads(each.blocks[-1]["elements"][0]["value"]) for each in (message, other_message))
    tampered = {
        "of an earlier run of the same name": own | {"workflow_id": of_other["workflow_id"]},
        "another request than the one that waits": of_other | {"digest": own["digest"]},
        "no longer waits": own | {"request_id": "r9"},
        "there is no run": own | {"workflow_id": "no-such-run"},
        "of another version": {"workflow_id": own["workflow_id"], "by": BO},
    }
    for said, value in tampered.items():
        before = office.whispers()
        await press_value(office, message, json.dumps(value))
        await office.whisper(said, after=before)

    await office.slack.press(message, "backstay.reject", user=U1)
    view = await office.slack.view(user=U1)
    place = json.loads(view.body["private_metadata"])
    forms = {
        "this form is of another version": "no JSON at all",
        "of an earlier run": json.dumps(place | {"key": own | {"workflow_id": of_other["workflow_id"]}}),
        "another request than the one that waits": json.dumps(place | {"key": of_other | {"digest": own["digest"]}}),
    }
    for said, metadata in forms.items():
        refused = await office.slack.submit(replace(view, body=view.body | {"private_metadata": metadata}), {})
        assert refused.answer["response_action"] == "errors"
        assert said in str(refused.answer["errors"])
    await waits(handle)
    await waits(other)
    # Whoever a button names, who presses it decides.
    await press_value(office, message, json.dumps(own | {"by": BO}))
    assert decisions(await ended(handle)) == [("approve", ANA, True)]
    await other.terminate("the test is over")


@promise("slack:elsewhere")
async def test_a_request_that_was_decided_elsewhere_is_shown_so_and_says_by_whom(office):
    handle, message = await office.asked(mail("a@x.example"))
    async with connect(client=office.engine.client, approver_key=KEY) as backstay:
        await backstay.run(handle.id).reject("r1", by=BO, comment="not <!here>, *please*")
    await ended(handle)
    now = await office.slack.changed(message, f"Rejected by {BO}")
    assert "Comment: not &lt;!here&gt;, *please*" in now.shown
    before = office.whispers()
    await office.slack.press(message, "backstay.approve", user=U1)
    await office.whisper(f"decided already: rejected by {BO}", after=before)


@promise("slack:strangers")
@OVER_HTTP
async def test_too_long_and_broken_requests_are_refused_before_they_are_read(office, monkeypatch):
    async def trickle():
        yield b"x"
        await asyncio.Event().wait()

    async with aiohttp.ClientSession() as session:
        with monkeypatch.context() as quick:
            quick.setattr(serving, "BODY_S", 0.2)
            async with session.post(office.slack.events_url, data=trickle()) as answer:
                assert answer.status == 408
        async with session.post(office.slack.events_url, data=b"x" * (1 << 21)) as answer:
            assert answer.status == 413
        async with session.post(office.slack.events_url, data=b"\xff\xfe") as answer:
            assert answer.status == 400
        async with session.get(office.slack.events_url) as answer:
            assert answer.status == 405


@promise("slack:people")
@pytest.mark.parametrize("user", [U3])
async def test_who_is_struck_from_the_file_decides_nothing_from_then_on(office, user):
    file = office.settings.slack_users
    file.write_text(f"U7: cy@example.com\n{user}: dee@example.com\n", encoding="utf-8")
    handle, message = await office.asked(mail("a@two.example"))
    await asyncio.to_thread(file.write_text, f"U7: cy@example.com\n{user}: null\n", encoding="utf-8")
    await office.slack.press(message, "backstay.approve", user=user)
    await office.whisper("lets you decide nothing")
    await waits(handle)
    await handle.terminate("the test is over")


@promise("secrets:bad-signature")
async def test_a_call_with_a_bad_signature_is_not_quoted_in_the_log(caplog):
    settings = Settings.load(None, slack_bot_token="xoxb-none", slack_signing_secret="s", slack_channel="C1")
    app = _app(settings, AsyncWebClient(token="xoxb-none"))
    headers = {"x-slack-signature": ["v0=bad"], "x-slack-request-timestamp": [str(int(time.time()))]}
    with caplog.at_level(logging.DEBUG):
        answer = await app.async_dispatch(AsyncBoltRequest(body="text=a-secret-of-nobody", headers=headers))
    assert answer.status == 401
    assert "a-secret-of-nobody" not in caplog.text
