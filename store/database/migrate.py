"""Bring the schema up to date."""

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from backstay.errors import SettingsInvalid

MIGRATIONS = Path(__file__).parent / "migrations"
_alembic = threading.Lock()
"""alembic keeps the current migration in module globals."""


def migrate(connection: Connection) -> None:
    """Run the migrations that are missing, all in the caller's transaction.

    Raises SettingsInvalid when the database is newer than this code.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        with _alembic:
            command.upgrade(config, "head")
    except CommandError as error:
        raise SettingsInvalid(
            f"BACKSTAY_DATABASE_URL: another version of backstay made this database ({error}); update backstay"
        ) from error
