"""The command `slack`: let people decide in Slack; and its route beside the page."""

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backstay.client import Backstay
from backstay.errors import SettingsInvalid
from backstay.logs import configure_logs
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings
from gateways.terminal.session import open_store, require_store, session
from gateways.terminal.terminal import Terminal

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from store.store import Store

HOST, PORT = "127.0.0.1", 8235
_EXTRA = frozenset({"slack_bolt", "slack_sdk", "aiohttp"})


async def slack(*, host: str = HOST, port: Annotated[int, Parameter(help="0 for any that is free.")] = PORT) -> None:
    """Post the requests of runs to Slack, and let people decide them there, until Ctrl-C.

    With SLACK_APP_TOKEN it connects to Slack by itself (socket mode). Without, Slack must reach /slack/events here.

    Parameters
    ----------
    host
        Address to listen on for Slack; not used in socket mode.
    """
    settings, terminal = Settings.load(), Terminal()
    with _extra():
        from gateways.slack.app import require_settings
        from gateways.slack.serving import serve
    require_settings(settings)
    require_store(settings)
    async with session(settings) as backstay, open_store(settings) as store:
        configure_logs(Redactor(settings.secrets()))

        def ready(how: str) -> None:
            terminal.say(f"backstay slack ready: {how}", "green")

        await serve(settings, store, backstay, host=host, port=port, ready=ready)
    terminal.say("stopped")


@asynccontextmanager
async def slack_beside(settings: Settings, store: "Store", backstay: Backstay) -> "AsyncGenerator[Sequence[BaseRoute]]":
    """Serve Slack within the page where a token for it is set, until the block ends; yields the routes for that."""
    if settings.slack_bot_token is None:
        yield []
        return
    with _extra():
        from gateways.slack.serving import routes_beside
    async with routes_beside(settings, store, backstay) as routes:
        yield routes


@contextmanager
def _extra() -> Generator[None]:
    """Raise SettingsInvalid where what is imported needs the extra, and it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise SettingsInvalid(
            f"SLACK_BOT_TOKEN: {error.name} is not installed; install the extra: pip install 'backstay[slack]'"
        ) from None
