"""What is known of an effect is never lost, even when the store cannot be written to."""

import asyncio
import sqlite3

import pytest
from temporalio.testing import ActivityEnvironment

from activities.tools import effects
from activities.tools.effects import EffectIntents
from backstay.canonical import digest_of
from backstay.effects.effect import EffectState
from store.effects.types import Intent
from tests.requirements import promise
from toolbox.configuration.meaning import judge
from toolbox.providers.answer import Answer
from toolbox.providers.declaration import Declaration
from toolbox.providers.elicitation import ElicitationRequest, InputRequired


def intent_of(lease_s):
    return Intent(
        effect_id="w/r/1",
        run="w/r",
        n=1,
        tool="desk.send",
        args_digest=digest_of({}),
        lease_s=lease_s,
        user_id="singleton",
    )


async def sent(sender, intent, call):
    store = sender.records.store
    async with store.together(), sender.intent(intent, idempotency_ttl=None, epoch_differs=False) as send:
        answer = await send.carry(call(send.begin))
        await send.settle(answer, judge(answer, Declaration(), {}), None)
    return send.result


@promise("effects:late-person")
@pytest.mark.parametrize(
    "answer",
    [Answer(success=True, data={"sent": True}), Answer(success=False, error="refused")],
    ids=["sent", "failed"],
)
async def test_an_outcome_that_comes_after_a_persons_word_is_an_event_and_changes_nothing(opened, answer):
    async with opened() as (_, records, _):
        store = records.store

        async def call(before_send):
            await before_send()
            await asyncio.sleep(1.1)
            await store.effects.resolve("w/r/1", state=EffectState.NOT_SENT, outcome="ann says so")
            return answer

        await ActivityEnvironment().run(sent, EffectIntents(records), intent_of(1), call)

        row = await store.effects.get("w/r/1")
        assert (row.state, row.outcome) == (EffectState.NOT_SENT, "ann says so")
        [event] = await store.events.of_run("w/r")
        came = "applied" if answer.success else "failed"
        assert (event.name, event.data["came"], event.data["recorded"]) == ("effect.late", came, "not_sent")


@promise("effects:live-lease")
async def test_a_send_that_may_still_be_under_way_for_long_is_left_to_the_workflow_to_wait_for(opened):
    async with opened() as (_, records, _):
        await records.store.effects.begin(intent_of(120), idempotency_ttl=None, attempt=1, epoch_differs=False)

        async def call(before_send):
            await before_send()
            raise AssertionError("sent twice")

        result = await ActivityEnvironment().run(sent, EffectIntents(records), intent_of(120), call)

        assert result.error_type == "OutcomeUnknown"
        assert 100 < result.settle_in_s <= 120


@promise("approvals:too-long")
async def test_a_write_whose_question_is_too_long_and_comes_first_was_not_made(opened):
    form = {"type": "object", "properties": {"what": {"enum": ["x" * 20_000]}}}
    question = InputRequired(requests=(ElicitationRequest(key="answer", message="What?", form=form),), state="waits")
    async with opened() as (_, records, _):

        async def call(before_send):
            await before_send()
            return Answer(success=False, question=question)

        result = await ActivityEnvironment().run(sent, EffectIntents(records), intent_of(5), call)

        row = await records.store.effects.get("w/r/1")
    why = "the server asks for more than a person can be shown"
    assert (result.success, result.error, result.error_type) == (False, why, "ToolError")
    assert (row.state, row.outcome) == (EffectState.NOT_SENT, why)


@promise("effects:repair")
async def test_an_outcome_that_cannot_be_written_is_returned_and_the_row_repaired_later(opened, tmp_path, monkeypatch):
    async with opened() as (_, records, _):
        store = records.store
        blocker = sqlite3.connect(tmp_path / "backstay.db", isolation_level=None, timeout=5)

        async def call(before_send):
            await before_send()
            blocker.execute("BEGIN EXCLUSIVE")
            return Answer(success=True, data={"sent": True})

        # The wait of some seconds past the lease is the same, only shorter.
        monkeypatch.setattr(effects, "_patience_s", lambda _: 0)
        sender = EffectIntents(records)
        try:
            result = await ActivityEnvironment().run(sent, sender, intent_of(2), call)
        finally:
            blocker.rollback()
            blocker.close()

        assert (result.success, len(sender.repairs)) == (True, 1)
        await asyncio.wait_for(asyncio.gather(*sender.repairs), 150)
        row = await store.effects.get("w/r/1")
        assert (row.state, row.result_ref) == (EffectState.APPLIED, result.ref)
        assert await store.blobs.of("w/r").result(result.ref) == {"sent": True}
