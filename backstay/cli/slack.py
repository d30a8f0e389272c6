"""The command that lets people decide in Slack."""

import logging
from types import ModuleType
from typing import Annotated

from cyclopts import Parameter

from backstay.cli.session import require_store, session
from backstay.cli.terminal import Terminal
from backstay.errors import SettingsInvalid
from backstay.logs import configure_logs
from backstay.redaction.redactor import Redactor
from backstay.rooms import room
from backstay.settings import Settings

PORT = 8235
_EXTRA = frozenset({"slack_bolt", "slack_sdk", "aiohttp"})


async def slack(*, host: str = "127.0.0.1", port: Annotated[int, Parameter(help="0: any free one.")] = PORT) -> int:
    """Post to Slack what runs ask, and let people decide there, until Ctrl-C.

    With SLACK_APP_TOKEN it connects to Slack by itself (socket mode). Without, Slack must reach /slack/events here.

    Parameters
    ----------
    host
        The address to listen on for Slack; not needed in socket mode.
    """
    settings = Settings.load()
    gateway = _gateway()
    gateway.require_settings(settings)
    require_store(settings)
    configure_logs(Redactor(settings.secrets()), logging.WARNING)
    terminal = Terminal()
    async with session(settings) as backstay, room("worker").open_store(settings) as store:
        serving = room("gateways.slack.serving")
        await serving.serve(
            settings,
            store,
            backstay,
            host=host,
            port=port,
            ready=lambda how: terminal.say(f"backstay slack ready: {how}"),
        )
    return 0


def _gateway() -> ModuleType:
    """Return the room of Slack; raises SettingsInvalid where its extra is not installed."""
    try:
        return room("gateways.slack.app")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise SettingsInvalid(
            f"{error.name} is not installed; install the extra: pip install 'backstay[slack]'"
        ) from None
