"""Processes that share a store and disagree on what time it is."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from backstay.effects.effect import EffectState
from backstay.errors import EffectConflict
from store.effects.types import Intent
from store.opening import open_store
from tests.requirements import promise
from tests.sizes import spread
from tests.skew import skewed

ROOT = Path(__file__).parents[2]
BEGIN = """
import asyncio, json, sys, time
from pathlib import Path
from store.effects.types import Intent
from store.opening import open_store

async def main():
    home, url, lease_s, ttl = json.loads(sys.argv[1])
    intent = Intent(effect_id="w/r/1", run="w/r", n=1, tool="t", args_digest="d", lease_s=lease_s, user_id="ana")
    async with open_store(database_url=url, home=Path(home)) as store:
        begun = await store.effects.begin(intent, idempotency_ttl=ttl, attempt=1, epoch_differs=False)
        print(json.dumps({"kind": begun.kind, "left_s": begun.row.lease_left_s, "wall": time.time()}))

asyncio.run(main())
"""
MINE = Intent(effect_id="w/r/1", run="w/r", n=1, tool="t", args_digest="d", lease_s=60, user_id="ana")
ONCE = {"idempotency_ttl": None, "attempt": 1, "epoch_differs": False}


async def begun_elsewhere(skew: float, home: Path, url: str | None, lease_s: float = 60, ttl: float | None = None):
    """Begin the effect in a process whose clock is off."""
    given = json.dumps([str(home), url, lease_s, ttl])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", BEGIN, given), cwd=ROOT, env=os.environ | skewed(skew), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(150):
        output, _ = await process.communicate()
    assert process.returncode == 0
    said = json.loads(output.splitlines()[-1])
    assert abs(said["wall"] - time.time() - skew) < 60
    return said


@promise("effects:lease-database")
@pytest.mark.thorough
@pytest.mark.parametrize("skew", spread([120, -120], 1))
async def test_a_process_with_a_wrong_clock_waits_for_the_lease_of_another_just_as_long(tmp_path, database_url, skew):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        assert (await store.effects.begin(MINE, **ONCE)).kind == "go"
        other = await begun_elsewhere(skew, tmp_path, database_url)
    assert other["kind"] == "wait"
    assert 0 < other["left_s"] <= 60


@promise("effects:lease-database")
@pytest.mark.thorough
@pytest.mark.parametrize("skew", spread([120, -120], 1))
async def test_a_lease_that_a_process_with_a_wrong_clock_began_ends_when_it_should(tmp_path, database_url, skew):
    other = await begun_elsewhere(skew, tmp_path, database_url)
    async with open_store(database_url=database_url, home=tmp_path) as store:
        again = await store.effects.begin(MINE, **ONCE)
        assert (other["kind"], again.kind) == ("go", "wait")
        assert 0 < again.row.lease_left_s <= 60
        with pytest.raises(EffectConflict):
            await store.effects.resolve("w/r/1", state=EffectState.NOT_SENT, outcome="ana says so")


@promise("effects:lease-database")
@pytest.mark.parametrize(("skew", "lease_s", "ttl", "kind"), [(-120, 0, None, "unknown"), (120, 0, 60, "go")])
async def test_what_is_over_and_what_is_not_is_said_by_the_database_alone(
    tmp_path, database_url, skew, lease_s, ttl, kind
):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.effects.begin(MINE.model_copy(update={"lease_s": lease_s}), **ONCE)
        assert (await begun_elsewhere(skew, tmp_path, database_url, ttl=ttl))["kind"] == kind


@promise("effects:lease-clock-file")
async def test_a_file_that_says_when_the_host_was_started_is_made_again_for_another_start(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        await store.effects.begin(MINE, **ONCE)
    place = tmp_path / "backstay.db.clock"
    for said in (b"", b'{"boot": "another", "started_at": 5}', b'{"started_at": 5}', b"[]"):
        place.write_bytes(said)
        async with open_store(database_url=None, home=tmp_path) as store:
            assert 0 < (await store.effects.get("w/r/1")).lease_left_s <= 60
        assert json.loads(place.read_bytes())["started_at"] > 5


@promise("effects:far-behind")
async def test_time_in_a_file_goes_on_from_its_last_write_on_a_host_that_starts_with_a_clock_far_behind(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        await store.effects.begin(MINE.model_copy(update={"lease_s": 0}), **ONCE)
    (tmp_path / "backstay.db.clock").unlink()
    assert (await begun_elsewhere(-1e6, tmp_path, None))["kind"] == "unknown"
