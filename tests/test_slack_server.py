"""The local Slack: what the tests of our gateway and of the example bot stand on, held to slack-bolt and slack-sdk."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.routing import Route

from tests.requirements import promise
from tests.serving import served
from tests.slack_server import open_slack

MODES = pytest.mark.parametrize("mode", ["http", "socket"])
WHY = {"type": "input", "block_id": "why", "label": {"type": "plain_text", "text": "Why?"}}
FORM = {
    "type": "modal",
    "callback_id": "why",
    "title": {"type": "plain_text", "text": "Reject"},
    "submit": {"type": "plain_text", "text": "Reject"},
    "blocks": [{**WHY, "element": {"type": "plain_text_input", "action_id": "text"}}],
}


def asking(*buttons):
    return [
        {"type": "section", "text": {"type": "mrkdwn", "text": "May I?"}},
        {
            "type": "actions",
            "elements": [
                {"type": "button", "action_id": name, "value": "r1", "text": {"type": "plain_text", "text": name}}
                for name in buttons
            ],
        },
    ]


def bot(slack):
    """An app that answers a command with buttons; one replaces the message, one asks why in a modal."""
    app = AsyncApp(client=AsyncWebClient(slack.bot_token, base_url=slack.api_url), signing_secret=slack.signing_secret)

    @app.command("/backstay")
    async def command(ack, command, client):
        await ack(f"heard {command['text']}")
        await client.chat_postMessage(channel=command["channel_id"], text="May I?", blocks=asking("yes", "no"))

    @app.action("yes")
    async def yes(ack, body, respond):
        await ack()
        await respond(text=f"yes, says {body['user']['id']} to {body['actions'][0]['value']}", replace_original=True)

    @app.action("no")
    async def no(ack, body, client):
        await ack()
        place = f"{body['container']['channel_id']} {body['container']['message_ts']}"
        await client.views_open(trigger_id=body["trigger_id"], view={**FORM, "private_metadata": place})

    @app.view("why")
    async def why(ack, view, client):
        text = view["state"]["values"]["why"]["text"]["value"]
        if len(text) < 3:
            await ack(response_action="errors", errors={"why": "say more"})
            return
        await ack()
        channel, ts = view["private_metadata"].split()
        await client.chat_update(channel=channel, ts=ts, text=f"no: {text}", blocks=[])

    @app.event("app_mention")
    async def mentioned(event, say):
        await say(text=f"you said {event['text']}", thread_ts=event["ts"] if event.get("threaded") else None)

    return app


@asynccontextmanager
async def workspace(mode):
    async with open_slack() as slack:
        app = bot(slack)
        if mode == "socket":
            link = AsyncSocketModeHandler(app, slack.app_token)
            await link.connect_async()
            try:
                yield slack
            finally:
                await link.close_async()
            return
        handler = AsyncSlackRequestHandler(app)
        async with served(Starlette(routes=[Route("/slack/events", handler.handle, methods=["POST"])])) as url:
            slack.events_url = f"{url}/slack/events"
            yield slack


@promise("clients:local-slack")
@MODES
async def test_commands_buttons_modals_and_events_reach_an_app_and_its_answers_change_what_people_see(mode):
    async with workspace(mode) as slack:
        assert (await slack.command("run something")).status == 200
        assert (await slack.message("heard run something")).to == "U1"
        asked = await slack.message("May I?")
        assert (asked.channel, asked.buttons, asked.shown) == ("C1", ["yes", "no"], "May I?\nyes\nno")

        await slack.press(asked, "no", user="U2")
        form = await slack.view("Why?", user="U2")
        with pytest.raises(AssertionError, match="text must be filled in"):
            await slack.submit(form)
        await slack.submit(form, {"text": "x"})
        assert form.id in slack.views
        await slack.submit(form, {"text": "too risky"})
        assert slack.views == {}
        assert (await slack.changed(asked, "no: too risky")).blocks == []

        # What somebody saw before it was changed can still be pressed, as on a phone that was offline.
        await slack.press(asked, "yes")
        await slack.until(lambda: slack.now(asked).text == "yes, says U1 to r1")
        assert len(slack.responses) == 1
        with pytest.raises(AssertionError, match="nothing to press"):
            await slack.press(slack.now(asked), "yes")

        delivery = await slack.event({"type": "app_mention", "user": "U1", "channel": "C1", "text": "hello"})
        assert (await slack.message("you said hello")).thread_ts is None
        await slack.repeat(delivery)
        await slack.until(lambda: [m.text for m in slack.standing()].count("you said hello") == 2)


@promise("clients:local-forged")
async def test_what_is_forged_or_old_is_refused_over_http():
    async with workspace("http") as slack:
        assert (await slack.command("x", secret="another")).status == 401
        assert (await slack.command("x", age_s=600)).status == 401
        assert (await slack.command("x")).status == 200


@promise("clients:local-sockets")
async def test_an_app_that_is_told_to_connect_anew_does():
    async with workspace("socket") as slack:
        await slack.command("before")
        await slack.disconnect()
        await slack.command("after")
        await slack.message("heard after")
    assert len(slack.called("apps.connections.open")) > 1


@promise("clients:local-refused")
async def test_what_slack_refuses_is_refused():
    async with open_slack() as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)

        async def refusal(sending):
            with pytest.raises(SlackApiError) as refused:
                await sending
            return refused.value.response["error"]

        post, texts = client.chat_postMessage, {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
        assert await refusal(post(channel="C9", text="x")) == "channel_not_found"
        assert await refusal(post(channel="C1", text="x", blocks=[texts])) == "invalid_blocks"
        assert await refusal(post(channel="C1", text="x", blocks=asking(*"a" * 2))) == "invalid_blocks"
        assert await refusal(client.views_open(trigger_id="never given", view=FORM)) == "exchanged_trigger_id"
        long = {**FORM, "private_metadata": "x" * 3001}
        assert await refusal(client.views_open(trigger_id="x", view=long)) == "invalid_arguments"
        assert await refusal(client.chat_update(channel="C1", ts="1.0", text="x")) == "message_not_found"
        assert await refusal(AsyncWebClient("x", base_url=slack.api_url).auth_test()) == "invalid_auth"
        assert await refusal(client.api_call("no.such")) == "unknown_method"
        slack.refuse("chat.postMessage", "ratelimited", status=429, headers={"Retry-After": "1"})
        assert await refusal(post(channel="C1", text="x")) == "ratelimited"
        sent = await post(channel="U1", text="for you alone")
        assert sent["channel"] == "DU1"
        assert (await client.users_lookupByEmail(email="bo@example.com"))["user"]["id"] == "U2"


@promise("clients:local-kept")
async def test_files_and_threads_are_kept():
    async with open_slack() as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        first = await client.chat_postMessage(channel="C1", text="a run")
        await asyncio.gather(
            *(client.chat_postMessage(channel="C1", text=f"step {n}", thread_ts=first["ts"]) for n in range(3))
        )
        await client.files_upload_v2(channel="C1", content="a diff", filename="changes.diff", thread_ts=first["ts"])
        thread = (await client.conversations_replies(channel="C1", ts=first["ts"]))["messages"]

    assert sorted(message["text"] for message in thread) == ["a run", "step 0", "step 1", "step 2"]
    (kept,) = slack.files.values()
    assert (kept["content"], kept["name"], kept["thread_ts"]) == (b"a diff", "changes.diff", first["ts"])
