"""What commands open: settings, Temporal, and the store for runs whose history is gone."""

import getpass
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from backstay.client import Backstay, connect
from backstay.errors import SettingsInvalid
from backstay.library import room
from backstay.logs import configure_logs
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings


@asynccontextmanager
async def session(settings: Settings | None = None) -> AsyncGenerator[Backstay]:
    """Connect as the environment says; decisions are proved when the approver key is set."""
    settings = settings or Settings.load()
    key = settings.approver_key
    async with connect(
        task_queue=settings.task_queue, approver_key=None if key is None else key.get_secret_value()
    ) as backstay:
        yield backstay


@asynccontextmanager
async def books(settings: Settings) -> AsyncGenerator[Any]:
    """Open the store that the worker of the same settings uses."""
    quiet(settings)
    keys = [key.get_secret_value() for key in settings.encryption_keys]
    async with room("store.opening").open_store(
        database_url=settings.database_url_text, home=settings.home, blobs=settings.blobs, encryption_keys=keys
    ) as opened:
        yield opened


def has_books(settings: Settings) -> bool:
    """Say whether there is a store to read; looking must not create one."""
    return settings.database_url is not None or (settings.home / "backstay.db").exists()


def demand_books(settings: Settings) -> None:
    """Raise SettingsInvalid where there is no store; a command that keeps one in order must not create one."""
    if not has_books(settings):
        raise SettingsInvalid(f"BACKSTAY_HOME: there is no store in {settings.home}; name the worker's home")


def quiet(settings: Settings) -> None:
    """Keep the logs of the rooms out of what a command prints."""
    configure_logs(Redactor(settings.secrets()), logging.CRITICAL)


def myself() -> str:
    """Return the name of the person at the terminal; it is recorded as unverified."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "cli"
