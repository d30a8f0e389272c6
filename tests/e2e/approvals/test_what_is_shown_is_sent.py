"""Whatever a run asks for and whatever people change of it: what stood on the last screen is what is sent.

Each case is made up by chance, from its number and a seed, and is played through one door: people look, change what
they see, are shown it again, and decide. `make test` plays a few, the same ones each time, and `make soak` many others.
"""

import os
import secrets
from collections import Counter

import pytest
import pytest_asyncio

from tests.e2e.approvals.doors.cases import case_of
from tests.e2e.approvals.doors.client import Client
from tests.e2e.approvals.doors.door import at_once, play
from tests.e2e.approvals.doors.page_door import PageDoor
from tests.e2e.approvals.doors.slack_door import SlackDoor
from tests.e2e.approvals.doors.terminal_door import TerminalDoor
from tests.e2e.approvals.doors.world import opened_world
from tests.requirements import promise
from tests.sizes import FULL, sized

SEED = os.environ.get("SHOWN_SEED") or (secrets.token_hex(4) if FULL else "20261127")
"""What the cases are made from; at full size other ones each time, and what fails names its case whole."""
AT_ONCE = 4
CASES = sized(60, 2)
pytestmark = pytest.mark.timeout(900)


@pytest_asyncio.fixture(scope="module")
async def world(temporal, nursery, tmp_path_factory):
    async with opened_world(temporal, tmp_path_factory.mktemp("shown"), nursery) as opened:
        yield opened


@pytest.fixture
def played(world, record_property):
    """Return what plays all cases of a door."""

    async def played(name, door):
        plays = [play(world, door, case_of(f"{name}{at}", SEED)) for at in range(CASES)]
        ends = Counter[str]()
        for end in await at_once(plays, AT_ONCE):
            ends += end
        record_property("ends", {"seed": SEED, **ends})
        assert sum(ends[kind] for kind in ("approved", "rejected", "dry run", "not approved here")) >= CASES // 2
        # All of it was really tried.
        assert not FULL or {"approved", "rejected", "changed", "refused"} <= ends.keys()

    return played


@promise("approvals:shown-is-sent")
@pytest.mark.thorough
async def test_through_the_client_the_tools_receive_what_was_shown_last_or_nothing(world, played):
    await played("client", Client(world))


@promise("approvals:shown-is-sent")
async def test_on_the_page_the_tools_receive_what_was_shown_last_or_nothing(world, played):
    await played("page", PageDoor(world))


@promise("approvals:shown-is-sent")
@pytest.mark.thorough
async def test_at_a_terminal_the_tools_receive_what_was_shown_last_or_nothing(world, played):
    await played("terminal", TerminalDoor(world))


@promise("approvals:shown-is-sent")
@pytest.mark.thorough
async def test_in_slack_the_tools_receive_what_was_shown_last_or_nothing(world, played):
    await played("slack", SlackDoor(world))
