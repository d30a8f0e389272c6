"""Characters that Postgres keeps in JSON and cannot read there: nothing of a run that has them is lost to people."""

import pytest

from backstay.task.event import Event
from store.effects.types import Intent
from store.opening import open_store
from tests.requirements import promise

AT = "1970-01-01T00:01:40.000+00:00"


def event(n, name, odd, **data):
    return Event(n=n, name=name, at=AT, text=odd, data={**data, "said": [odd], odd: odd})


@promise("store:odd-json")
@pytest.mark.parametrize("odd", ["\0", "\ud800", "\udc00 and \\u0000"], ids=["nul", "half", "both"])
async def test_a_run_with_odd_characters_is_found_undone_and_pruned(tmp_path, database_url, odd):
    async with open_store(database_url=database_url, home=tmp_path, clock=lambda: 100.0) as store:
        known = {"workflow_id": "w", "workflow_run_id": "r", "user_id": "ana", "text": odd, "opened": {"model": odd}}
        await store.runs.opened(run="w/r", metadata={odd: odd}, **known)
        intent = Intent(effect_id="w/r/1", run="w/r", n=1, tool="t", args_digest="d", lease_s=0, user_id="ana")
        await store.effects.begin(intent, idempotency_ttl=None, attempt=1, epoch_differs=False)
        called = event(1, "action.called", odd, effect=1, arguments={"to": odd})
        undone = event(2, "undo.ran", odd, effect=1, state="compensated")
        await store.events.append("w/r", [called, undone, event(3, "note", odd, effect="1"), event(4, "note", odd)])
        await store.runs.closed("w/r", {"outcome": "completed", "final_summary": odd, "raw_outputs": {odd: [odd]}})

        (row,) = await store.runs.page(state="completed")
        rows = await store.effects.open_of_run("w/r")
        assert (row.run, row.result["final_summary"], [row.n for row in rows]) == ("w/r", odd, [1])
        assert await store.runs.page(state="failed") == []
        assert await store.subruns.arguments_of(rows) == {1: {"to": odd}}
        assert await store.plans.of_run("w/r") == []
        (idle,) = await store.pruning.idle(1000)
        assert (await store.pruning.prune(idle, 1000)).events == 4
        assert await store.runs.page(state="completed") == []
