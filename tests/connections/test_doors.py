"""A call that needs a sign-in, at every door: each shows the way to the page, which alone lets the person sign in."""

import json
from contextlib import asynccontextmanager
from urllib.parse import quote

import pytest_asyncio

from tests.cli.commands import environment_of
from tests.cli.screen import chatting
from tests.connections.issuer import offered
from tests.connections.test_runs import ANA, BO, PAGE, POLICY, SCRIPTS, call, finish, settle, sign_in, start
from tests.e2e.approvals.test_mail import SENDER, mail_server
from tests.engine import ended, engine, pending
from tests.requirements import promise
from tests.slack.workspace import Office, door, slack_settings
from tests.slack_server import open_slack
from tests.web.pages import KEY, behind_a_proxy, served_page

WAY = f"{PAGE}/connections#notes"


@pytest_asyncio.fixture(scope="module")
async def doors(authority, temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("doors")
    async with offered(authority) as (issuer, notes), mail_server() as (smtp, mailboxes), open_slack() as slack:
        toolbox = folder / "toolbox.json"
        said = {"mcpServers": {"notes": {"url": notes.url, "auth": {}}}}
        said["providers"] = {"notes": {"trusted": True, "tools": {"write": {"safety": "write_safe"}}}}
        toolbox.write_text(json.dumps(said), encoding="utf-8")
        options = {**slack_settings(slack, "http"), "policy": POLICY, "toolbox": toolbox, "url": PAGE}
        options |= {"smtp_url": smtp, "mail_from": SENDER, "mail_to": BO, **behind_a_proxy()}
        async with (
            engine(temporal, folder, SCRIPTS, **options) as running,
            served_page(running) as page,
            door(running, slack, running.settings, key=KEY),
        ):
            running.issuer, running.notes, running.page, running.authority = issuer, notes, page, authority
            yield running, slack, mailboxes


@asynccontextmanager
async def parked(doors):
    """Have a call wait for a sign-in; afterwards, the person signs in on the page, and the same call goes on."""
    running = doors[0]
    await settle(running)
    await sign_in(running)
    await ended(await start(running, call("write", text="before"), finish()))
    running.issuer.forget(refresh=True)
    running.notes.written.clear()
    handle = await start(running, call("write", text="waited"), finish())
    (request,) = await pending(handle)
    assert request["calls"][0]["tool"] == "notes.write"
    yield handle, request
    assert running.notes.written == []
    await sign_in(running)
    result = await ended(handle)
    assert (result["outcome"], running.notes.written) == ("completed", [("ana-at-notes", "waited")])
    (decided,) = [event["data"] for event in result["events"] if event["name"] == "approval.decided"]
    assert (decided["by"], decided["verified"]) == (ANA, True)


@promise("connections:doors")
async def test_in_slack_the_way_to_the_sign_in_is_a_link_and_the_same_call_goes_on(doors):
    running, slack, _ = doors
    async with parked(doors) as (_, request):
        office = Office(slack, running, SCRIPTS, running.settings, None)
        message = await office.message(request["task"])
        assert f"<{WAY}|Sign in>" in message.shown
        assert not [secret for secret in running.issuer.secrets if secret in str(message.blocks)]

    def closed():
        found = [m for m in slack.standing() if m.broadcast and request["task"] in m.shown]
        return found and "Answered by ana@example.com" in found[-1].shown

    await slack.until(closed)


@promise("connections:doors")
async def test_the_person_who_must_sign_in_is_mailed_though_no_rule_names_them(doors):
    running, _, mailboxes = doors
    async with parked(doors) as (handle, _request):
        mails = []
        while not mails or handle.id not in mails[-1].get_content() or len(mails) % 2:
            mails.append(await mailboxes.next())
        assert {mail["To"] for mail in mails[-2:]} == {ANA, BO}
        text = mails[-1].get_content()
        assert WAY in text
        assert f"{PAGE}/requests/{handle.id}/r1" in text
        assert "waited" not in text
        assert not [secret for secret in running.issuer.secrets if secret in text]


@promise("connections:doors")
async def test_on_the_page_the_request_links_to_the_sign_in_and_nobody_else_can_take_it_over(doors):
    running = doors[0]
    async with parked(doors) as (handle, request):
        async with running.page.person(ANA) as person:
            shown = await person.get(f"/requests/{quote(handle.id, safe='')}/{request['id']}")
        assert '<a href="/connections#notes">Sign in</a>' in shown.text
        # Whoever follows the link signs in for themselves: the call of Ana's run goes on waiting.
        await sign_in(running, BO, "bo-at-notes")
        assert [each["id"] for each in await pending(handle)] == [request["id"]]


@promise("connections:doors")
async def test_in_a_chat_the_way_to_the_sign_in_is_shown_and_the_chat_goes_on_by_itself(doors, nursery):
    running = doors[0]
    await settle(running)
    text = SCRIPTS.task(call("sign_in"), call("write", text="waited"), finish("it is written"))["text"]
    environment = environment_of(running, BACKSTAY_URL=PAGE, BACKSTAY_APPROVER_KEY=KEY)
    async with chatting("--by", ANA, "--user", ANA, environment=environment, nursery=nursery) as screen:
        await screen.waits_for("you>")
        screen.enter(text)
        await screen.shows(WAY)
        await sign_in(running)
        await screen.shows("it is written")
        await screen.waits_for("you>")
        screen.enter("/quit")
        assert await screen.ended() == 0
        assert not [secret for secret in running.issuer.secrets if secret in screen.all]
    assert running.notes.written == [("ana-at-notes", "waited")]
