"""How `backstay slack` starts: what it demands, each with the variable that is wrong, and that it serves then."""

import os
import signal

import aiohttp
import pytest

from tests.cli.commands import HOUSE, command, forked
from tests.engine import ended
from tests.requirements import promise
from tests.sizes import spread
from tests.slack.workspace import ANA, MODES, U1, decisions, mail, open_office, process
from tests.slack_server import open_slack

pytestmark = pytest.mark.timeout(400)


async def said_with(temporal, folder, nursery=None, *, down=None, status=503, **changed):
    """Run `backstay slack` with all it needs, except for what is changed; return its last line.

    With a nursery it is a fork, which has imported all that it may need. `down`: a method that a proxy answers with
    a status.
    """
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "backstay.db").touch()
    async with open_slack() as slack:
        slack.add_channel("C2", "closed", is_member=False, is_archived=True)
        if down:
            slack.refuse(down, "upstream connect error", status=status, plain=True)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(HOUSE),
            "TEMPORAL_ADDRESS": temporal.service_client.config.target_host,
            "BACKSTAY_HOME": str(folder / "home"),
            "BACKSTAY_APPROVER_KEY": "the key that workers and gateways share",
            "BACKSTAY_SLACK_API_URL": slack.api_url,
            "BACKSTAY_SLACK_CHANNEL": "C1",
            "SLACK_BOT_TOKEN": slack.bot_token,
            "SLACK_SIGNING_SECRET": slack.signing_secret,
            **changed,
        }
        empty = folder / "empty"
        empty.mkdir(exist_ok=True)
        given = {name: value for name, value in environment.items() if value is not None}
        arguments, where = ("slack", "--port", "0"), {"environment": given, "folder": empty}
        done = await (forked(nursery, *arguments, **where) if nursery else command(*arguments, **where))
    assert done.code == 2, done.err
    return done.err.strip().splitlines()[-1]


@promise("slack:starting")
@pytest.mark.parametrize(
    ("changed", "said"),
    spread(
        [
            ({"SLACK_BOT_TOKEN": None}, "SLACK_BOT_TOKEN: not set"),
            ({"SLACK_BOT_TOKEN": "wrong"}, "SLACK_BOT_TOKEN: Slack refuses it (invalid_auth)"),
            ({"SLACK_SIGNING_SECRET": None}, "SLACK_SIGNING_SECRET: not set"),
            ({"SLACK_APP_TOKEN": "wrong"}, "SLACK_APP_TOKEN: Slack refuses it (invalid_auth)"),
            ({"BACKSTAY_APPROVER_KEY": None}, "BACKSTAY_APPROVER_KEY: not set"),
            ({"BACKSTAY_SLACK_CHANNEL": None}, "BACKSTAY_SLACK_CHANNEL: not set"),
            ({"BACKSTAY_SLACK_CHANNEL": "C404"}, "BACKSTAY_SLACK_CHANNEL: Slack answers channel_not_found"),
            ({"BACKSTAY_SLACK_API_URL": "http://127.0.0.1:9/api/"}, "Slack cannot be reached"),
            ({"BACKSTAY_SLACK_API_URL": "nowhere"}, "BACKSTAY_SLACK_API_URL: not a web address"),
            ({"BACKSTAY_SLACK_USERS": "missing.yaml"}, "BACKSTAY_SLACK_USERS: missing.yaml cannot be read"),
        ],
        5,
    ),
)
async def test_what_is_missing_or_wrong_is_named_with_the_fix(temporal, nursery, tmp_path, changed, said):
    line = await said_with(temporal, tmp_path, nursery, **changed)
    assert said in line


@promise("slack:starting")
@pytest.mark.parametrize("status", [503, 200])
@pytest.mark.parametrize("down", spread(["auth.test", "conversations.info"], 1))
async def test_what_something_in_front_of_slack_answers_is_said(temporal, nursery, tmp_path, down, status):
    line = await said_with(temporal, tmp_path, nursery, down=down, status=status)
    assert f"Slack cannot be reached (HTTP {status}); BACKSTAY_SLACK_API_URL" in line


@promise("slack:starting")
@pytest.mark.parametrize(
    ("text", "said"),
    [("U1: [a]\n", "U1: write U123: ana@example.com"), ("- U1\n", "write one line"), ("a: b: c", "not valid YAML")],
)
async def test_a_file_of_people_that_cannot_be_used_is_named(temporal, nursery, tmp_path, text, said):
    file = tmp_path / "people.yaml"
    file.write_text(text, encoding="utf-8")
    line = await said_with(temporal, tmp_path, nursery, BACKSTAY_SLACK_USERS=str(file))
    assert "BACKSTAY_SLACK_USERS" in line
    assert said in line


@promise("slack:extra")
async def test_without_the_extra_the_command_says_how_to_install_it(temporal, tmp_path):
    hidden = tmp_path / "hidden"
    (hidden / "slack_bolt").mkdir(parents=True)
    (hidden / "slack_bolt" / "__init__.py").write_text(
        "raise ModuleNotFoundError('no', name='slack_bolt')\n", encoding="utf-8"
    )
    line = await said_with(temporal, tmp_path, PYTHONPATH=f"{hidden}:{HOUSE}")
    assert "pip install 'backstay[slack]'" in line


@promise("slack:serving")
@pytest.mark.parametrize("mode", spread(list(MODES), 1))
async def test_the_command_serves_slack_until_it_is_told_to_stop(temporal, nursery, tmp_path, mode):
    async with (
        open_office(temporal, tmp_path, mode, gateway=False) as office,
        process(office, mode, nursery) as running,
    ):
        if mode == "http":
            async with aiohttp.ClientSession() as session, session.get(f"{office.address}/healthz") as answer:
                assert (answer.status, await answer.json()) == (200, {"status": "ok"})
        else:
            # Over socket mode it listens nowhere, so nobody can ask for its health.
            assert office.address is None
        handle, message = await office.asked(mail("a@ana.example"))
        await office.slack.press(message, "backstay.approve", user=U1)
        assert decisions(await ended(handle)) == [("approve", ANA, True)]
        await office.slack.changed(message, "Approved by")
        running.kill(signal.SIGTERM)
        assert await running.ended(150) == 0
