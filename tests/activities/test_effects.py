"""What is known of an effect is never lost, even when the store cannot be written to."""

import asyncio
import sqlite3
import time

from temporalio.testing import ActivityEnvironment

from activities import effects
from activities.effects import Effects, Send
from backstay.canonical import digest_of
from backstay.effect import EffectState
from store.intent import Intent
from toolbox.answer import Answer


async def test_an_outcome_that_cannot_be_written_is_returned_and_the_row_repaired_later(opened, tmp_path, monkeypatch):
    async with opened() as (_, records, _):
        store = records.store
        intent = Intent(
            effect_id="w/r/1",
            run="w/r",
            n=1,
            tool="desk.send",
            args_digest=digest_of({}),
            lease=time.time() + 2,
            user_id="singleton",
        )
        blocker = sqlite3.connect(tmp_path / "backstay.db", isolation_level=None, timeout=5)

        async def call(before_send):
            await before_send()
            blocker.execute("BEGIN EXCLUSIVE")
            return Answer(success=True, data={"sent": True})

        async def bind(_):
            return None

        send = Send(intent=intent, label="desk.send", provider="desk", idempotency_ttl=None, call=call, bind=bind)
        # The wait of some seconds past the lease is the same, only shorter.
        monkeypatch.setattr(effects, "_until", lambda _: time.time())
        sender = Effects(store, records)
        try:
            result = await ActivityEnvironment().run(sender.send, send, epoch_differs=False)
        finally:
            blocker.rollback()
            blocker.close()

        assert (result.success, len(sender.repairs)) == (True, 1)
        await asyncio.wait_for(asyncio.gather(*sender.repairs), 30)
        row = await store.effects.get("w/r/1")
        assert (row.state, row.result_ref) == (EffectState.APPLIED, result.ref)
