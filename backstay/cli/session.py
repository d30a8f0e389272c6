"""Open what commands need: Temporal, and the store for runs that Temporal no longer knows."""

import getpass
import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from backstay.client import Backstay, connect
from backstay.errors import SettingsInvalid
from backstay.logs import configure_logs
from backstay.redaction.redactor import Redactor
from backstay.rooms import room
from backstay.settings import Settings


@asynccontextmanager
async def session(settings: Settings | None = None) -> AsyncGenerator[Backstay]:
    """Connect with the settings of the environment; decisions are signed when the approver key is set."""
    settings = settings or Settings.load()
    key = settings.approver_key
    async with connect(
        task_queue=settings.task_queue, approver_key=None if key is None else key.get_secret_value()
    ) as backstay:
        yield backstay


def open_store(settings: Settings) -> AbstractAsyncContextManager[Any]:
    """Open the store that the worker of the same settings uses."""
    silence_logs(settings)
    return room("worker").open_store(settings)


def has_store(settings: Settings) -> bool:
    """Return whether there is a store to read; a command that only looks must not create one."""
    return settings.database_url is not None or (settings.home / "backstay.db").exists()


def require_store(settings: Settings) -> None:
    """Raise SettingsInvalid where there is no store; a command that maintains a store must not create one."""
    if not has_store(settings):
        raise SettingsInvalid(f"BACKSTAY_HOME: there is no store in {settings.home}; name the worker's home")


@asynccontextmanager
async def stored_run(settings: Settings, workflow: str) -> AsyncGenerator[tuple[Any, Any]]:
    """Open the store and find a run in it; yields None for a run that it does not know."""
    if not has_store(settings):
        yield None, None
        return
    async with open_store(settings) as store:
        yield store, await store.runs.get(workflow)


def silence_logs(settings: Settings) -> None:
    """Keep the logs of the engine out of what a command prints."""
    configure_logs(Redactor(settings.secrets()), logging.CRITICAL)


def account_name() -> str:
    """Return the account name of the person at the terminal; it is recorded as unverified."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "cli"
