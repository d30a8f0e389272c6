"""The only `backstay dev` of a home, and the scripted model for commands that are given beside it."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from pydantic import SecretStr
from temporalio.client import Client

from backstay.errors import SettingsInvalid
from backstay.settings import Price, Settings
from gateways.served import FILE, LOCK, Serving, serving_here, told_served

_WAIT_S = 1.0
_MODEL, _KEY = "scripted", "the-script-needs-none"
_PRICE = {"input": 1.0, "cached": 0.1, "output": 4.0}


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
async def alone(home: Path, database: Path, serving: Serving) -> AsyncGenerator[Callable[[Serving], None]]:
    """Be the only `dev` of a home and of Temporal's database within the block; yield what tells what is served.

    Commands with the same home find it from then on. Raises SettingsInvalid naming the other one.
    """
    from system.locks import async_file_lock

    _make_folders(home, database.parent)

    def tell(served: Serving) -> None:
        from system.files import write_whole

        write_whole(home / FILE, served.model_dump_json().encode(), durable=False)

    async with AsyncExitStack() as stack:
        for lock in (home / LOCK, database.with_name(f"{database.name}.lock")):
            try:
                await stack.enter_async_context(async_file_lock(lock, wait_s=_WAIT_S))
            except TimeoutError:
                raise SettingsInvalid(_taken(home, lock)) from None
        stack.callback((home / FILE).unlink, missing_ok=True)
        tell(serving)
        yield tell


def _make_folders(*folders: Path) -> None:
    for folder in folders:
        # Jails of root's worker are other users, who must pass through; the worker closes it further where it can.
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)


def _taken(home: Path, lock: Path) -> str:
    if lock.name != LOCK:
        return f"--db: another `backstay dev` has {lock.with_suffix('')} open; name another file, or stop it"
    known = told_served(home)
    who = "" if known is None else f" (process {known.pid}, Temporal at {known.temporal})"
    return (
        f"another `backstay dev`{who} serves {home} already; commands in this folder find it. "
        "Stop it first, or name another BACKSTAY_HOME"
    )


def serving_beside(home: Path, client: Client) -> Serving | None:
    """Return what is served now with this home and for the Temporal of this client; None where nothing is."""
    serving = serving_here(home)
    if serving is None:
        return None
    asked = client.service_client.config.target_host.replace("localhost", "127.0.0.1")
    return serving if (serving.temporal, serving.namespace) == (asked, client.namespace) else None
