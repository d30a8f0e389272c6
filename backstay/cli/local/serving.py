"""What a running `backstay dev` serves, for the commands that are given beside it.

Its home holds a file that says so, and a lock that is held for as long as that is true.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from pydantic import SecretStr, ValidationError
from temporalio.client import Client

from backstay.frozen import Frozen
from backstay.rooms import room
from backstay.settings import Price, Settings

_FILE, _LOCK = "dev.json", "dev.lock"
_WAIT_S = 1.0
_MODEL, _KEY = "scripted", "the-script-needs-none"
_PRICE = {"input": 1.0, "cached": 0.1, "output": 4.0}


class Serving(Frozen):
    """Hold what is served, and for which Temporal."""

    temporal: str
    namespace: str
    page: str | None = None
    """The address of the page on this machine."""
    script: str | None = None
    """The address of the scripted model."""


def variables_for(script: str) -> dict[str, str]:
    """Return the variables that lead a worker to the scripted model at this address."""
    prices = json.dumps({_MODEL: _PRICE})
    return {
        "OPENAI_BASE_URL": script,
        "OPENAI_API_KEY": _KEY,
        "BACKSTAY_MODEL": _MODEL,
        "BACKSTAY_PRICES": prices,
    }


def settings_for(settings: Settings, script: str) -> Settings:
    """Return the settings of that worker."""
    more = {"openai_base_url": script, "openai_api_key": SecretStr(_KEY)}
    return settings.model_copy(update={**more, "model": _MODEL, "prices": {_MODEL: Price.model_validate(_PRICE)}})


@asynccontextmanager
async def announced(home: Path, serving: Serving) -> AsyncGenerator[None]:
    """Tell commands with the same home what is served within the block; where another `dev` does, say nothing."""
    async with AsyncExitStack() as stack:
        with suppress(TimeoutError):
            await stack.enter_async_context(room("system.locks").async_file_lock(home / _LOCK, wait_s=_WAIT_S))
            stack.callback((home / _FILE).unlink, missing_ok=True)
            room("system.files").write_whole(home / _FILE, serving.model_dump_json().encode(), durable=False)
        yield


def may_serve(home: Path) -> bool:
    """Return whether it is worth asking what is served: a `dev` has said so, and perhaps was killed since."""
    return (home / _FILE).is_file()


async def serving_beside(home: Path, client: Client) -> Serving | None:
    """Return what is served now with this home and for the Temporal of this client; None where nothing is."""
    if not may_serve(home):
        return None
    try:
        async with room("system.locks").async_file_lock(home / _LOCK, wait_s=0):
            return None  # it was killed, and its file stayed
    except TimeoutError:
        pass
    except OSError:
        return None
    try:
        serving = Serving.model_validate_json((home / _FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    asked = client.service_client.config.target_host.replace("localhost", "127.0.0.1")
    return serving if (serving.temporal, serving.namespace) == (asked, client.namespace) else None
