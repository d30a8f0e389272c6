"""Open the door to Slack: check what it was given, tell the channel what happens, and hear what people press."""

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import structlog
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from backstay.client import Backstay
from backstay.errors import SettingsInvalid, Unreachable
from backstay.settings import Settings
from gateways.slack.board import RunChannel
from gateways.slack.commands import Commands
from gateways.slack.following import LOOK_S, following
from gateways.slack.interactions import Interactions
from gateways.slack.people import People
from gateways.slack.posting import FAILURES, Channel, SlackClient, code_of, is_refusal
from people.notices.delivering import delivering
from store.store import Store

TIMEOUT_S = 20
"""How long Slack has to answer; a notice must be taken within 45 seconds."""
_NO_TOKEN = frozenset({"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"})
log = structlog.get_logger("backstay.slack")


class SlackApp(NamedTuple):
    """Hold a door that is open."""

    team: str
    """The workspace, by name."""
    channel: str
    app: AsyncApp | None
    """What hears Slack over HTTP; None in socket mode."""


def require_settings(settings: Settings) -> None:
    """Raise SettingsInvalid naming the variable that is missing, and the fix."""
    needed = {
        "SLACK_BOT_TOKEN": (settings.slack_bot_token, "the bot token of your Slack app, xoxb-..."),
        "BACKSTAY_SLACK_CHANNEL": (settings.slack_channel, "the id of the channel for requests, such as C0123456789"),
        "BACKSTAY_APPROVER_KEY": (settings.approver_key, "the key of the workers, with which decisions are signed"),
    }
    for variable, (value, what) in needed.items():
        if value is None:
            raise SettingsInvalid(f"{variable}: not set; give {what}. docs/slack.md says where to find it")
    if settings.slack_app_token is None and settings.slack_signing_secret is None:
        raise SettingsInvalid(
            "SLACK_SIGNING_SECRET: not set; give the signing secret of your Slack app, "
            "or SLACK_APP_TOKEN to use socket mode"
        )


@asynccontextmanager
async def open_slack(
    settings: Settings, store: Store, backstay: Backstay, *, look_s: float = LOOK_S
) -> AsyncGenerator[SlackApp]:
    """Tell and hear Slack until the block ends; `backstay` signs with the approver key.

    Raises SettingsInvalid naming the variable that is missing or wrong.
    """
    require_settings(settings)
    client = _client(settings)
    team, team_name, organization = await _who(client)
    channel = await _channel(client, settings.slack_channel or "")
    people = People(client, team, settings.slack_users, organization=organization)
    place = Channel(client, store.posts, f"slack-{team}-{channel}", channel)
    board = RunChannel(place, store, backstay, people, settings.url or "")
    app = _app(settings, client)
    Interactions(client, backstay, store, board, people).listen(app)
    Commands(backstay, store, board, people).listen(app)
    async with AsyncExitStack() as stack:
        over_http = await _listen(stack, settings, app)
        await stack.enter_async_context(delivering(store.outbox, [board]))
        await stack.enter_async_context(following(board, store, look_s=look_s))
        log.info("slack.open", team=team_name, channel=channel, mode="http" if over_http else "socket")
        yield SlackApp(team=team_name, channel=channel, app=app if over_http else None)


def _client(settings: Settings) -> AsyncWebClient:
    token = "" if settings.slack_bot_token is None else settings.slack_bot_token.get_secret_value()
    # The library would send a message again whose answer was lost, without a look at whether it is there.
    base_url = f"{settings.slack_api_url.rstrip('/')}/"
    return SlackClient(token, base_url=base_url, timeout=TIMEOUT_S, retry_handlers=[])


def _app(settings: Settings, client: AsyncWebClient) -> AsyncApp:
    secret = settings.slack_signing_secret
    # It tells of a call with a bad signature by quoting all of it, which whoever reaches the port can write.
    quiet = logging.getLogger("slack_bolt")
    quiet.setLevel(logging.ERROR)
    return AsyncApp(
        client=client,
        signing_secret="-" if secret is None else secret.get_secret_value(),
        logger=quiet,
    )


async def _listen(stack: AsyncExitStack, settings: Settings, app: AsyncApp) -> bool:
    """Listen over a connection of our own where there is a token for that; return whether Slack is to call instead."""
    if settings.slack_app_token is None:
        return True
    token = settings.slack_app_token.get_secret_value()
    try:
        await app.client.apps_connections_open(app_token=token)
    except SlackApiError as error:
        raise SettingsInvalid(f"SLACK_APP_TOKEN: Slack refuses it ({_code(error)})") from None
    except FAILURES as error:
        raise _unreachable(error) from None
    handler = AsyncSocketModeHandler(app, token)
    await handler.connect_async()
    stack.push_async_callback(handler.close_async)
    return False


async def _who(client: AsyncWebClient) -> tuple[str, str, str]:
    """Return the id and the name of the workspace, and the id of the organization that it is a part of, if any."""
    try:
        answer = await client.auth_test()
    except SlackApiError as error:
        code = _code(error)
        if code in _NO_TOKEN:
            raise SettingsInvalid(f"SLACK_BOT_TOKEN: Slack refuses it ({code}); copy it from your app again") from None
        raise SettingsInvalid(f"SLACK_BOT_TOKEN: Slack answers {code}") from None
    except FAILURES as error:
        raise _unreachable(error) from None
    team = str(answer["team_id"])
    return team, str(answer.get("team") or team), str(answer.get("enterprise_id") or "")


async def _channel(client: AsyncWebClient, channel: str) -> str:
    """Return the channel, which the app is in; raises SettingsInvalid where it cannot post there."""
    try:
        answer = await client.conversations_info(channel=channel)
        found: Any = answer["channel"]
        if not found.get("is_member") and not found.get("is_im"):
            await client.conversations_join(channel=channel)
    except SlackApiError as error:
        code = _code(error)
        if code == "missing_scope":
            return channel  # then the first message says whether it can be posted
        raise SettingsInvalid(
            f"BACKSTAY_SLACK_CHANNEL: Slack answers {code} for {channel[:80]!r}; give the id of a channel, "
            "and write /invite @backstay there"
        ) from None
    except FAILURES as error:
        raise _unreachable(error) from None
    return str(found["id"])


def _code(error: SlackApiError) -> str:
    """Return the code by which Slack refuses a setting; raises Unreachable where something else is the matter."""
    if not is_refusal(error):
        raise _unreachable(error) from None
    return code_of(error)


def _unreachable(error: Exception) -> Unreachable:
    why = code_of(error) if isinstance(error, SlackApiError) else type(error).__name__
    return Unreachable(f"Slack cannot be reached ({why}); BACKSTAY_SLACK_API_URL says where it is")
