"""The record of an effect whose server answers by a task: who may record it, and what a retry finds."""

from backstay.effects.effect import EffectState
from store.effects.types import Intent
from store.opening import open_store
from tests.requirements import promise

FIRST = Intent(effect_id="w/r/1", run="w/r", n=1, tool="slow.send", args_digest="d1", lease_s=30, user_id="ana")
ONCE = {"idempotency_ttl": None, "attempt": 1, "epoch_differs": False}
TASK = "a" * 40


@promise("effects:followed")
async def test_a_retry_finds_the_task_at_once_and_never_sends(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        assert not await store.effects.hand_over("w/r/1", "another", TASK)
        assert await store.effects.hand_over("w/r/1", begun.token, TASK)
        # The same may be recorded again: the answer to a commit may be lost.
        assert await store.effects.hand_over("w/r/1", begun.token, TASK)
        again = await store.effects.begin(FIRST, **ONCE | {"attempt": 2, "idempotency_ttl": 1000.0})
    assert (again.kind, again.token, again.row.task_sealed, again.row.lease_left_s) == ("followed", "", TASK, 0)
    assert again.row.effect().followed


@promise("effects:followed")
async def test_what_a_task_came_to_is_recorded_once(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        token = (await store.effects.begin(FIRST, **ONCE)).token
        await store.effects.hand_over("w/r/1", token, TASK)
        assert await store.effects.settle("w/r/1", token, EffectState.APPLIED, result_ref="b" * 40)
        assert not await store.effects.settle("w/r/1", token, EffectState.FAILED, outcome="no")
        assert not await store.effects.hand_over("w/r/1", token, "c" * 40)
        assert (await store.effects.begin(FIRST, **ONCE)).kind == "recorded"


@promise("effects:followed")
async def test_another_send_begins_without_the_task_of_the_one_before(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        token = (await store.effects.begin(FIRST, **ONCE)).token
        await store.effects.hand_over("w/r/1", token, TASK)
        # Nobody may send it again while nothing is known of the task.
        assert (await store.effects.begin(FIRST.model_copy(update={"send": 2}), **ONCE)).kind == "unknown"
        await store.effects.resolve("w/r/1", state=EffectState.NOT_SENT, outcome="ana says so")
        again = await store.effects.begin(FIRST.model_copy(update={"send": 2}), **ONCE)
    assert (again.kind, again.row.task_sealed) == ("go", None)
