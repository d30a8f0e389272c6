"""The services of a running `backstay dev`, for what is started beside it.

Its home holds a file that says so, and a lock that is held for as long as that is true.
"""

from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from backstay.client.connecting import is_place_named, place_in_file
from backstay.frozen import Frozen
from backstay.settings import Settings
from system.locks import is_locked

FILE, LOCK = "dev.json", "dev.lock"
HOST, PORT = "127.0.0.1", 8234
"""Where the page is, unless somebody says otherwise."""


class Serving(Frozen):
    """Hold what is served, and for which Temporal."""

    temporal: str
    namespace: str
    page: str | None = None
    """The address of the page on this machine."""
    script: str | None = None
    """The address of the scripted model."""
    pid: int = 0


def told_served(home: Path) -> Serving | None:
    """Return what the last `dev` of a home has said, running or not; None where there is nothing to read."""
    try:
        return Serving.model_validate_json((home / FILE).read_bytes())
    except (OSError, ValidationError):
        return None


def may_serve(home: Path) -> bool:
    """Return whether it is worth asking what is served: a `dev` has said so, and perhaps was killed since."""
    return (home / FILE).is_file()


def serving_here(home: Path) -> Serving | None:
    """Return what is served now with this home; None where nothing is."""
    if not may_serve(home):
        return None
    with suppress(OSError):
        if is_locked(home / LOCK):
            return told_served(home)
    return None  # it was killed, and its file stayed


def page_here(home: Path) -> str:
    """Return the address of the page on this machine: that of a `dev` with this home, or the usual one."""
    serving = serving_here(home)
    return f"http://{HOST}:{PORT}" if serving is None or serving.page is None else serving.page


def link_command(by: str, port: int | None) -> str:
    """Return the command that lets somebody into the page at a port."""
    return f"backstay web link --by {by}" + ("" if port in {None, PORT} else f" --port {port}")


def place_of_temporal(settings: Settings) -> dict[str, str]:
    """Return the address and namespace of Temporal where its own settings name none: of `.env`, or of a `dev`."""
    if is_place_named() or settings.environment.get("TEMPORAL_ADDRESS"):
        return place_in_file(settings)
    if (serving := serving_here(settings.home)) is None:
        return place_in_file(settings)
    return {"address": serving.temporal, "namespace": serving.namespace} | place_in_file(settings, serving.temporal)
