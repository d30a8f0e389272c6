"""A worker dies during a compensation: its own check settles it, and nothing is sent again without proof."""

import asyncio

import pytest
import pytest_asyncio

from tests.crash.case import open_case
from tests.crash.script import MAILS
from tests.requirements import promise
from tests.together import started, together

ANSWERED = "after:provider.request.send:5"
"""The second of three mails has been recalled, and nobody has recorded it."""
INTENDED = "after:effects.begin:5"
"""The second recall is recorded as on its way, and was never sent."""
RECALLED = "selectattr('message_id', 'equalto', arguments.message_id) | selectattr('recalled') | list | length > 0"
CHECKED = {
    "safety": "write_safe",
    "verify": {"tool": "list_sent", "arguments": {}, "applied_if": f"{{{{ result.messages | {RECALLED} }}}}"},
}
PROVEN = CHECKED | {"verify": CHECKED["verify"] | {"verify_is_final": True}}


@pytest_asyncio.fixture(scope="module")
async def underway(request, temporal, nursery, tmp_path_factory):
    async with started(
        request, lambda scenario: scenario(temporal, nursery, tmp_path_factory.mktemp("undo"))
    ) as running:
        yield running


async def undone_after(point, temporal, nursery, tmp_path, **declared):
    """Let a worker die at a point of the rollback and another one go on; return what became of each effect."""
    async with open_case(temporal, nursery, tmp_path, shape="rollback", **declared) as case:
        doomed = await case.worker(point)
        driving = asyncio.create_task(case.drive())
        assert await asyncio.wait_for(asyncio.shield(doomed.died), 150) == -9
        assert f"killed {point}" in doomed.said()
        await case.worker()
        ended = await driving
        # Each compensation reached the mailbox at most once.
        await case.check(ended)
        recalls, checks = (case.mailbox.requests(tool) for tool in ("recall_email", "list_sent"))
        return [effect["state"] for effect in ended[0][1]["undone"]], recalls, checks


@promise("undo:lost")
@pytest.mark.thorough
@together
async def test_a_compensation_whose_answer_died_with_its_worker_is_settled_by_its_own_check(
    temporal, nursery, tmp_path
):
    states, recalls, checks = await undone_after(ANSWERED, temporal, nursery, tmp_path, declared_undo=CHECKED)

    assert (states, recalls) == (["compensated"] * 3, len(MAILS))
    assert checks == 1


@promise("undo:lost-final")
@together
async def test_a_compensation_that_provably_was_not_made_is_sent_again(temporal, nursery, tmp_path):
    states, recalls, checks = await undone_after(INTENDED, temporal, nursery, tmp_path, declared_undo=PROVEN)

    assert (states, recalls) == (["compensated"] * 3, len(MAILS))
    assert checks == 3


@promise("undo:lost-not-found")
@together
async def test_a_compensation_that_a_check_does_not_find_is_parked_where_that_is_no_proof(temporal, nursery, tmp_path):
    states, recalls, _ = await undone_after(INTENDED, temporal, nursery, tmp_path, declared_undo=CHECKED)

    assert (states, recalls) == (["compensated", "parked", "compensated"], len(MAILS) - 1)


@promise("undo:lost-not-found")
@pytest.mark.thorough
@together
async def test_a_lost_compensation_without_a_check_is_parked_and_never_sent_again(temporal, nursery, tmp_path):
    states, recalls, checks = await undone_after(ANSWERED, temporal, nursery, tmp_path)

    assert (states, recalls) == (["compensated", "parked", "compensated"], len(MAILS))
    assert checks == 0
