"""Use the store itself, in a program that has the settings of the worker: outputs, secrets, and what is attached.

None of them goes through Temporal: outputs and attachments may be larger than a message, and no history may hold a
secret. This module, plugin.py and backstay/__main__.py import what is above backstay, once they have opened it.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from backstay.client.sending import signed
from backstay.errors import BackstayError, RunNotFound
from backstay.redaction.handles import handles_in, replace_handles, unescape_lookalikes
from backstay.rooms import open_house
from backstay.settings import Settings
from backstay.task.attaching import read_attached

_TAKEN = ("activities", "opening", "sandbox", "store", "system", "toolbox")
"""What the store is opened with; a program keeps the other names, such as `workflows`, for packages of its own."""


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncGenerator[Any]:
    """Open the store that the settings name; programs that only start and decide runs load nothing of it."""
    open_house(*_TAKEN)
    from opening import open_store  # noqa: PLC0415 - only now is it found

    async with open_store(settings) as store:
        yield store


async def stored_result(workflow_id: str, run_id: str | None) -> Any:
    """Return the Result of a run as the store has it; None where there is no store, or it has none.

    `run_id` is of an execution of the run; None for the newest run of that name.
    """
    if not (settings := Settings.load()).has_store:
        return None
    async with _opened(settings) as store:
        row = await store.runs.get(workflow_id, run_id)
        return None if row is None else row.result


async def stored_output(workflow_id: str, run_id: str | None, ref: str) -> Any:
    """Return the output of a run that is too large for its Result; raises RunNotFound.

    `run_id` is of an execution of the run; None for the newest run of that name.
    """
    async with _opened(Settings.load()) as store:
        row = await store.runs.get(workflow_id, run_id)
        if row is None:
            raise RunNotFound(f"output: the store of this process does not know the run; {ref} is in the worker's")
        blobs = store.blobs.of(row.run)
        return await blobs.get_json((await blobs.get_json(ref))["shown"])


async def attached(workflow_id: str, files: Sequence[Path]) -> list[dict[str, Any]]:
    """Store files for the run that is to begin under this id, and return them as its task names them.

    Raises TaskInvalid for what no model can be shown.
    """
    read = await asyncio.to_thread(read_attached, files)
    async with _opened(Settings.load()) as store:
        refs = await store.blobs.attach(workflow_id, [data for _, data in read], time.time())
    return [{**named, "ref": ref} for (named, _), ref in zip(read, refs, strict=True)]


async def revealed(
    workflow_id: str, run_id: str | None, namespace: str, wish: dict[str, Any], key: bytes | None
) -> str:
    """Return the secret that a person wishes to be shown; the wish is signed where it carries no proof.

    `run_id` is of an execution of the run; None for the newest run of that name.
    """
    settings = Settings.load()
    async with _opened(settings) as store:
        if "proof" not in wish and key is not None:
            wish = signed(key, await store.revealing.binding(workflow_id, namespace, run_id), wish)
        asked = {**wish, "workflow_id": workflow_id, "run_id": run_id}
        return str(await store.revealing.reveal(asked, namespace, settings.approver_key_bytes))


async def in_clear(workflow_id: str, namespace: str, answer: Any, by: str) -> Any:
    """Return an answer of a run as its tool gave it, with the secrets that whoever needs no proof may be shown.

    Each of them is recorded first. The handle of another one stays, as all do without the store or its key.
    """
    settings, known = Settings.load(), dict[str, Any]()
    handles = handles_in(answer)
    with suppress(BackstayError):
        if handles and settings.has_store:
            async with _opened(settings) as store:
                known = await _revealed_of(store, handles, {"workflow_id": workflow_id, "by": by}, namespace)
    return unescape_lookalikes(replace_handles(answer, known))


async def _revealed_of(store: Any, handles: Sequence[str], wish: dict[str, Any], namespace: str) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for handle in handles:
        with suppress(BackstayError):
            known[handle] = await store.revealing.reveal({**wish, "handle": handle}, namespace, None)
    return known
