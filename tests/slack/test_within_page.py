"""Slack beside the page, in one process; and the app that people make of our manifest."""

import signal

import aiohttp
import pytest
import yaml

from gateways.slack.commands import COMMAND
from gateways.slack.serving import PATH
from tests.engine import ROOT, ended
from tests.requirements import promise
from tests.slack.workspace import ANA, ONCE, U1, decisions, mail, open_office, process

MANIFEST = ROOT / "gateways" / "slack" / "manifest.yaml"
NEEDS = {
    "auth.test": None,
    "apps.connections.open": None,
    "chat.postMessage": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.update": "chat:write",
    "users.info": "users:read",
    "users.lookupByEmail": "users:read.email",
    "conversations.info": "channels:read",
    "conversations.join": "channels:join",
    "conversations.history": "channels:history",
    "conversations.replies": "channels:history",
    "views.open": None,
    "views.update": None,
}
"""What Slack demands for each method that the gateway calls."""


@promise("slack:within-page")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("mode", ONCE)
async def test_the_page_answers_slack_too_when_a_token_is_set(temporal, nursery, tmp_path, mode):
    async with (
        open_office(temporal, tmp_path, mode, gateway=False) as office,
        process(office, mode, nursery, "web") as page,
    ):
        handle, message = await office.asked(mail("a@ana.example"))
        async with aiohttp.ClientSession() as session, session.post(f"{office.address}{PATH}") as answer:
            # Over socket mode there is nothing that a stranger could forge.
            assert answer.status == (401 if mode == "http" else 404)
        await office.slack.press(message, "backstay.approve", user=U1)
        assert decisions(await ended(handle)) == [("approve", ANA, True)]
        await office.slack.changed(message, "Approved by")
        page.kill(signal.SIGTERM)
        assert await page.ended(150) == 0


@promise("slack:manifest")
def test_the_manifest_asks_for_all_that_the_gateway_needs_and_names_where_it_listens():
    text = MANIFEST.read_text(encoding="utf-8")
    manifest = yaml.safe_load(text)
    scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    assert {scope for scope in NEEDS.values() if scope} <= scopes
    # Private channels, and what messages carry so that they are found again.
    assert {"groups:read", "groups:history", "metadata.message:read", "commands"} <= scopes
    used = {
        method
        for path in (ROOT / "gateways" / "slack").rglob("*.py")
        for method in NEEDS
        if method.replace(".", "_") in path.read_text(encoding="utf-8")
    }
    assert used == set(NEEDS)
    (command,) = manifest["features"]["slash_commands"]
    assert command["command"] == COMMAND
    assert manifest["settings"]["socket_mode_enabled"] is True
    assert manifest["settings"]["interactivity"] == {"is_enabled": True}
    assert text.count(f"https://YOUR.HOST{PATH}") == 2
    over_http = yaml.safe_load(text.replace("# url:", "url:").replace("# request_url:", "request_url:"))
    assert over_http["settings"]["interactivity"]["request_url"].endswith(PATH)
    assert over_http["features"]["slash_commands"][0]["url"].endswith(PATH)
