"""What became of an effect: attempts, checks and people."""

import asyncio

import pytest

from backstay.effects.effect import Effect, EffectState
from backstay.errors import ArgumentsInvalid, EffectConflict
from store.effects.types import BoundUndo, Intent
from store.opening import open_store
from tests.requirements import promise

FIRST = Intent(
    effect_id="w/r/1", run="w/r", n=1, tool="mail.send", args_digest="d1", step=2, send=1, lease_s=30, user_id="ana"
)
UNDO = FIRST.model_copy(update={"effect_id": "w/r/1/undo", "undo": True, "tool": "mail.recall", "args_digest": "d9"})
ONCE = {"idempotency_ttl": None, "attempt": 1, "epoch_differs": False}
BOUND_UNDO = BoundUndo(tool="mail.recall", sealed_ref="b" * 40, shown="mail.recall(message_id=7)")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@promise("undo:bound")
async def test_an_outcome_is_recorded_with_what_would_take_it_back(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        assert await store.effects.settle(
            "w/r/1", begun.token, EffectState.APPLIED, outcome="sent", result_ref="a" * 40, undo=BOUND_UNDO
        )
        row = await store.effects.get("w/r/1")
    assert (row.undo_tool, row.undo_sealed) == ("mail.recall", "b" * 40)
    assert row.effect() == Effect(
        id="w/r/1",
        n=1,
        tool="mail.send",
        args_digest="d1",
        state=EffectState.APPLIED,
        step=2,
        send=1,
        undo="mail.recall(message_id=7)",
        outcome="sent",
        result="a" * 40,
    )


@promise("effects:settle-once")
async def test_an_effect_is_settled_once(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        assert await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED, outcome="first")
        assert not await store.effects.settle("w/r/1", begun.token, EffectState.FAILED, outcome="second")
        # An attempt that was not told of its commit says the same again.
        assert await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED, outcome="third")
        row = await store.effects.get("w/r/1")
    assert (row.state, row.outcome) == (EffectState.APPLIED, "first")


@promise("effects:settle-once")
async def test_of_many_that_settle_at_once_one_is_believed(tmp_path, database_url):
    async with (
        open_store(database_url=database_url, home=tmp_path) as first,
        open_store(database_url=database_url, home=tmp_path) as other,
    ):
        begun = await first.effects.begin(FIRST, **ONCE)
        said = [(s, state) for s in (first, other) for state in (EffectState.APPLIED, EffectState.FAILED) * 3]
        believed = await asyncio.gather(*(s.effects.settle("w/r/1", begun.token, state) for s, state in said))
        row = await first.effects.get("w/r/1")
    assert believed == [state is row.state for _, state in said]


@promise("effects:late-nothing-more")
async def test_the_attempt_that_lost_its_turn_says_nothing_more(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        old = await store.effects.begin(FIRST, **ONCE)
        clock.now = 131
        again = FIRST.model_copy(update={"lease_s": 70})
        new = await store.effects.begin(again, idempotency_ttl=1000, attempt=2, epoch_differs=False)
        assert not await store.effects.settle("w/r/1", old.token, EffectState.FAILED, outcome="late")
        assert await store.effects.settle("w/r/1", new.token, EffectState.APPLIED, outcome="mine")
        assert (await store.effects.get("w/r/1")).outcome == "mine"


@promise("effects:late")
async def test_a_late_outcome_counts_while_nobody_else_has_spoken(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        clock.now = 500
        assert (
            await store.effects.begin(FIRST, idempotency_ttl=None, attempt=2, epoch_differs=False)
        ).kind == "unknown"
        assert await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)


@promise("effects:settle-once")
@pytest.mark.parametrize("token", ["", "guess"])
async def test_a_wrong_token_settles_nothing(tmp_path, token, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.effects.begin(FIRST, **ONCE)
        assert not await store.effects.settle("w/r/1", token, EffectState.APPLIED)
        assert not await store.effects.settle("w/r/99", token, EffectState.APPLIED)
        assert (await store.effects.get("w/r/1")).state is EffectState.DISPATCHED


@promise("effects:settle-once")
async def test_an_attempt_cannot_settle_as_something_else(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        with pytest.raises(EffectConflict):
            await store.effects.settle("w/r/1", begun.token, EffectState.COMPENSATED)


@promise("effects:resolve")
@pytest.mark.parametrize("state", [EffectState.APPLIED, EffectState.FAILED, EffectState.NOT_SENT, EffectState.UNKNOWN])
@pytest.mark.parametrize("told_unknown", [True, False])
async def test_a_check_or_a_person_resolves_what_is_unknown_and_silences_the_attempt(
    tmp_path, state, told_unknown, database_url
):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        if told_unknown:
            await store.effects.settle("w/r/1", begun.token, EffectState.UNKNOWN)
        clock.now = 130
        row = await store.effects.resolve(
            "w/r/1", state=state, outcome="ana said so", result_ref="c" * 40, undo=BOUND_UNDO
        )
        assert row == await store.effects.get("w/r/1")
        assert not await store.effects.settle("w/r/1", begun.token, EffectState.FAILED)
    assert row.state is state
    if (state, told_unknown) != (EffectState.UNKNOWN, True):
        assert (row.outcome, row.result_ref, row.undo_shown) == ("ana said so", "c" * 40, BOUND_UNDO.shown)


@promise("effects:resolve-refused")
async def test_nothing_is_resolved_while_it_may_still_be_sent(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        await store.effects.begin(FIRST, **ONCE)
        clock.now = 129
        with pytest.raises(EffectConflict):
            await store.effects.resolve("w/r/1", state=EffectState.NOT_SENT, outcome="too early")


@promise("effects:resolve-refused")
async def test_a_word_that_contradicts_the_record_is_refused(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED, outcome="sent")
        with pytest.raises(EffectConflict) as refused:
            await store.effects.resolve("w/r/1", state=EffectState.NOT_SENT, outcome="ana: did not happen")
        assert "applied" in str(refused.value)
        same = await store.effects.resolve("w/r/1", state=EffectState.APPLIED, outcome="ana: happened")
    assert same.outcome == "sent"


@promise("effects:resolve-refused")
async def test_an_effect_nobody_recorded_cannot_be_resolved(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        assert await store.effects.get("w/r/5") is None
        with pytest.raises(ArgumentsInvalid):
            await store.effects.resolve("w/r/5", state=EffectState.APPLIED, outcome="?")


@promise("effects:legal")
async def test_marking_keeps_the_outcome_and_follows_the_legal_order(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED, outcome="sent", undo=BOUND_UNDO)
        kept = await store.effects.mark("w/r/1", EffectState.KEPT)
        assert (kept.state, kept.outcome, kept.undo_shown) == (EffectState.KEPT, "sent", BOUND_UNDO.shown)
        assert (await store.effects.mark("w/r/1", EffectState.COMPENSATED)).state is EffectState.COMPENSATED
        with pytest.raises(EffectConflict):
            await store.effects.mark("w/r/1", EffectState.KEPT)


@promise("undo:done-by-hand-lost")
async def test_a_lost_send_can_be_marked_as_undone_once_its_lease_is_over(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        with pytest.raises(EffectConflict, match="may still be sent"):
            await store.effects.mark("w/r/1", EffectState.COMPENSATED)
        clock.now = 130
        assert (await store.effects.mark("w/r/1", EffectState.COMPENSATED)).state is EffectState.COMPENSATED
        assert not await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)


@promise("undo:compensated")
@pytest.mark.parametrize("parent_state", [EffectState.APPLIED, EffectState.UNKNOWN])
async def test_an_applied_compensation_compensates_its_effect(tmp_path, parent_state, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        await store.effects.settle("w/r/1", begun.token, parent_state, outcome="sent")
        undo = await store.effects.begin(UNDO, **ONCE)
        assert (await store.effects.get("w/r/1")).state is parent_state
        assert await store.effects.settle("w/r/1/undo", undo.token, EffectState.APPLIED)
        parent = await store.effects.get("w/r/1")
    assert (parent.state, parent.outcome) == (EffectState.COMPENSATED, "sent")


@promise("undo:compensated")
@pytest.mark.parametrize("state", [EffectState.FAILED, EffectState.UNKNOWN, EffectState.NOT_SENT])
async def test_a_compensation_that_did_not_work_leaves_its_effect(tmp_path, state, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        undo = await store.effects.begin(UNDO, **ONCE)
        await store.effects.settle("w/r/1/undo", undo.token, state)
        assert (await store.effects.get("w/r/1")).state is EffectState.APPLIED


@promise("undo:compensated")
async def test_a_compensation_that_a_person_confirms_compensates_its_effect(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        undo = await store.effects.begin(UNDO, **ONCE)
        await store.effects.settle("w/r/1/undo", undo.token, EffectState.UNKNOWN)
        await store.effects.resolve("w/r/1/undo", state=EffectState.APPLIED, outcome="ana: happened")
        assert (await store.effects.get("w/r/1")).state is EffectState.COMPENSATED


@promise("effects:list")
async def test_a_run_lists_its_own_effects_in_order(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        for n in (10, 2, 1):
            await store.effects.begin(FIRST.model_copy(update={"effect_id": f"w/r/{n}", "n": n}), **ONCE)
        await store.effects.begin(UNDO, **ONCE)
        await store.effects.begin(FIRST.model_copy(update={"effect_id": "w/s/1", "run": "w/s"}), **ONCE)
        assert [row.effect_id for row in await store.effects.of_run("w/r")] == [
            "w/r/1",
            "w/r/1/undo",
            "w/r/2",
            "w/r/10",
        ]


@promise("effects:odd-text")
async def test_text_that_no_database_can_hold_is_kept_as_escapes(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.FAILED, outcome="bad \ud800 and \0 ⟦")
        assert (await store.effects.get("w/r/1")).outcome == "bad \\ud800 and \\x00 ⟦"


@promise("effects:token-hidden")
async def test_a_token_is_not_shown(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
    assert begun.token not in repr(begun)
