"""The worker of a tree of runs is killed at a named point: its sums are exact all the same, its undo is in order."""

import asyncio

import pytest

from tests.crash.points import TREE_POINTS
from tests.crash.tree import LARGE, SMALL, killed_at, names_in, open_tree
from tests.requirements import promise
from tests.sizes import spread

SAMPLED = 1


@promise("subruns:killed")
@pytest.mark.timeout(400)
async def test_a_small_tree_is_killed_at_some_points_and_ends_as_if_it_had_not_been(temporal, nursery, tmp_path):
    async def killed(point):
        async with open_tree(temporal, nursery, tmp_path / point.name.replace(":", "_"), SMALL) as tree:
            await killed_at(tree, point)

    await asyncio.gather(*(killed(point) for point in spread(TREE_POINTS, SAMPLED)))


@promise("subruns:killed")
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("point", TREE_POINTS, ids=lambda point: point.name)
async def test_a_tree_of_twenty_is_killed_at_every_named_point(temporal, nursery, tmp_path, point):
    assert len(names_in(LARGE)) == 20
    async with open_tree(temporal, nursery, tmp_path, LARGE) as tree:
        await killed_at(tree, point)
