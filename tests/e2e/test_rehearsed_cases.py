"""A sample of the random plans and programs that are rehearsed, approved and held to their forecasts."""

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

import pytest
import pytest_asyncio

from examples.mailbox.faults import Faults
from tests.e2e.rehearsed import POLICY, World, check, random_case, toolbox_with_files
from tests.engine import Scripts, engine
from tests.mailbox_server import open_mailbox

PLANS, PROGRAMS = 24, 12
AT_ONCE = 6


@pytest.fixture(scope="module")
def rooms():
    """A folder that the users of jails can reach."""
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "rooms"


@pytest_asyncio.fixture(scope="module")
async def world(temporal, sandbox, rooms, tmp_path_factory):
    scripts, place = Scripts(), tmp_path_factory.mktemp("rehearsed")
    async with open_mailbox(place / "mailbox.db", Faults.read({})) as address:
        more = {"toolbox": toolbox_with_files(place, address), "workspaces": rooms, "sandbox": sandbox}
        async with engine(temporal, place, scripts, policy=POLICY, **more) as opened:
            yield World(opened, rooms), scripts


async def test_random_plans_and_programs_do_what_was_foretold_and_ask_about_all_else(world):
    found, scripts = world
    cases = [random_case(seed, as_program=False) for seed in range(PLANS)]
    cases += [random_case(seed, as_program=True) for seed in range(PROGRAMS)]
    offsets = found.prepare(cases)
    room, total = asyncio.Semaphore(AT_ONCE), Counter()

    async def checked(case):
        async with room:
            total.update(await check(case, found, scripts, offsets[case.name]))

    await asyncio.gather(*map(checked, cases))
    assert (total["runs"], total["changed"] > 0) == (len(cases), True)
