"""A decision just after people were told: the worker may get both at once, and every replay gets them apart."""

from tests.engine import engine
from tests.replay.shapes import rules
from tests.replay.steps import ended
from tests.replay.told import told_apart


async def test_what_the_worker_got_at_once_is_replayed_step_by_step(temporal, tmp_path):
    async with engine(temporal, tmp_path, rules) as opened:
        await ended(await told_apart(opened))
