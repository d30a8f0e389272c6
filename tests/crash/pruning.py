"""Runs on live workers that are killed at random, beside prunings that are killed at random; and what they refer to."""

import asyncio
import json
import random
import re
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from store.blobs.shown import folder_of
from store.opening import open_store
from store.store import Store
from tests.crash.case import Case
from tests.crash.script import MAILS
from tests.engine import pending
from tests.nursery.nursery import COMMAND

NAMES = {
    *("context", "ref", "storage_ref", "older", "raw", "shown", "program", "journal", "payload", "$ref"),
    *("result_ref", "undo_sealed", "arguments_sealed", "effects_ref", "events_ref", "sealed"),
}
REF = re.compile(r"[0-9a-f]{40}")


async def prune(case: Case, *, seconds: float | None = None) -> dict[str, int]:
    """Prune what ended a second ago; a pruning that takes longer than some seconds is killed."""
    # One that nobody waits for any longer may still write.
    out, log = case.folder / f"prune-{uuid.uuid4()}.out", case.folder / "prune.log"
    arguments = ("prune", "--older-than", "1s", "--output", "json")
    child = await case.nursery.raised(
        COMMAND, *arguments, environment=case.environment, folder=case.folder, out=out, log=log
    )
    await asyncio.wait([child.died], timeout=seconds if seconds is not None else 60)
    await child.end()
    killed = child.died.result() == -9
    assert child.died.result() == 0 or (killed and seconds is not None), child.said()
    return {} if killed else json.loads(child.answered())


async def prune_beside(case: Case, dice: random.Random, account: Counter[str]) -> None:
    """Prune again and again; half of the prunings are killed."""
    while True:
        told = await prune(case, seconds=dice.choice((None, dice.uniform(0.2, 2.5))))
        account.update(told or {"killed": 1})
        # The workers need the processors, too.
        await asyncio.sleep(dice.uniform(0, 1.5))


async def one_run(case: Case, dice: random.Random, kills: int) -> None:
    """Have one run come to its end through workers that are killed after random delays."""
    run = await case.start()
    attending = asyncio.create_task(case.person.attend(run))
    try:
        for _ in range(kills):
            doomed = await case.worker()
            await asyncio.wait([attending], timeout=dice.uniform(1, 8))
            await doomed.end()
        await case.worker()
        assert (await attending)["outcome"] == "completed"
    finally:
        attending.cancel()


async def kept_under_prunings(case: Case, *, rounds: int, kills: int, seed: str) -> Counter[str]:
    """Let runs end, be pruned and be killed around one that stays open; then prove that the open one lacks nothing."""
    dice = random.Random(seed)
    account: Counter[str] = Counter(seed=0)
    first = await case.worker()
    kept = await case.start()
    await pending(kept)
    await first.end()
    pruning = asyncio.create_task(prune_beside(case, dice, account))
    try:
        for _ in range(rounds):
            await one_run(case, dice, kills)
            assert not pruning.done(), pruning.exception()
    finally:
        pruning.cancel()
        await asyncio.wait([pruning])
    async with asyncio.timeout(150):
        while account["runs"] < rounds:
            # A killed pruning may have removed rows without having told of it.
            account.update(await prune(case))
            account["runs"] = max(account["runs"], len(await pruned(case)))
    run = f"{kept.id}/{kept.first_execution_run_id}"
    account["refs"] = await opened_refs(case, run, kept)
    folders = {place.name for place in (case.folder / "home/blobs").iterdir() if place.is_dir()}
    assert folders <= {folder_of(Path(), run).name}
    assert await runs_with_payloads(case) == {run}
    await (await case.worker()).ready()
    assert (await case.person.attend(kept))["outcome"] == "completed"
    undoing = await case.start_undo(kept.id)
    assert (await case.person.attend(undoing))["outcome"] == "rolled_back"
    sent = Counter(row[0] for row in case.mailbox.rows("SELECT recipient FROM sent"))
    assert sent == {mail["to"]: rounds + 1 for mail in MAILS}
    return account


async def pruned(case: Case) -> frozenset[str]:
    async with open_store(database_url=None, home=case.folder / "home") as store:
        return await store.pruning.pruned()


async def runs_with_payloads(case: Case) -> frozenset[str]:
    async with open_store(database_url=None, home=case.folder / "home") as store:
        return await store.blobs.rows.runs()


async def is_sealed(store: Store, case: Case, run: str, ref: str) -> bool:
    name = f"{ref}.sealed"
    in_folder = (folder_of(case.folder / "home/blobs", run) / name).exists()
    return in_folder or await store.blobs.rows.get(run, name) is not None


async def opened_refs(case: Case, run: str, handle: Any) -> int:
    """Open everything that a run's history, its rows and its payloads refer to, with nothing in memory."""
    history = json.loads((await handle.fetch_history()).to_json())
    async with open_store(database_url=None, home=case.folder / "home") as store:
        blobs = store.blobs.of(run)
        waiting = refs_in([payloads(history), [row.model_dump(mode="json") for row in await store.effects.of_run(run)]])
        opened: set[str] = set()
        while waiting:
            ref = waiting.pop()
            if ref in opened:
                continue
            opened.add(ref)
            sealed = await is_sealed(store, case, run, ref)
            waiting |= refs_in(await (blobs.unseal_json(ref) if sealed else blobs.get_json(ref)))
    return len(opened)


def payloads(value: Any) -> list[Any]:
    """Return every payload of a history, as JSON."""
    import base64

    match value:
        case {"data": str(data), "metadata": {**_encoding}}:
            return [json.loads(base64.b64decode(data) or b"null")]
        case dict():
            return [found for part in value.values() for found in payloads(part)]
        case list():
            return [found for part in value for found in payloads(part)]
        case _:
            return []


def refs_in(value: Any) -> set[str]:
    match value:
        case dict():
            own = {
                part for key, part in value.items() if key in NAMES and isinstance(part, str) and REF.fullmatch(part)
            }
            return own.union(*(refs_in(part) for part in value.values()))
        case list():
            return set().union(*map(refs_in, value))
        case str() if value.startswith(("{", "[")):
            # What the model is shown holds JSON as text.
            try:
                return refs_in(json.loads(value))
            except ValueError:
                return set()
        case _:
            return set()
