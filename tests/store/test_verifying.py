"""What a run names is looked for in the store, whether its Result, its events or its effects name it."""

import pytest

from activities.records import Records, RunSecrets
from backstay.effects.effect import EffectState
from backstay.memory.item import MemoryItem
from backstay.redaction.redactor import Redactor
from store.effects.types import Intent
from store.memory.items import NewItem
from tests.ledger.recorded import FIRST, a_store, begin, event
from tests.requirements import promise

RUN = "w/r1"
REFS = ("events", "effects", "outputs", "output", "read", "sent")
KINDS = ("run_metadata", "tool_call", "tool_output", "final_answer")


async def ended_run(store):
    """Record a run of a read, made twice, and a write, whose Result refers to all that it can; return the refs."""
    records = Records(store, RunSecrets(store.secrets, Redactor(())))
    await begin(store, RUN, steps=0)
    refs = {
        name: (await records.write(RUN, name, [{"n": n, "text": name * 400} for n in range(50)])).ref for name in REFS
    }
    effect = {"effect_id": f"{RUN}/1", "run": RUN, "n": 1, "tool": "mail.send", "args_digest": "d", "user_id": "ana"}
    begun = await store.effects.begin(Intent(**effect, lease_s=30), **FIRST)
    await store.effects.settle(begun.row.effect_id, begun.token, EffectState.APPLIED, result_ref=refs["sent"])
    told = [event(n, summary_ref=refs["sent" if n == 3 else "read"]) for n in (1, 2, 3)]
    await store.events.append(RUN, told)
    result = {
        "outcome": "completed", "events": [each.plain() for each in told], "events_ref": refs["events"],
        "effects_ref": refs["effects"], "output_ref": refs["output"], "output": "shown",
        "raw_outputs": {"ref": refs["outputs"], "note": "stored whole under ref"},
    }  # fmt: skip
    common = {"run": RUN, "owner": "ana", "at": 1.0}
    of_calls = [{"n": n, "kind": kind, "ref": refs["read"] if kind == "tool_output" else ""} for n, kind in
                ((1, "tool_call"), (2, "tool_output"))]  # fmt: skip
    items = [{"n": 0, "kind": "run_metadata"}, *of_calls, {"n": 4, "kind": "final_answer"}]
    remembered = [NewItem(MemoryItem.model_validate(common | item), ["word"]) for item in items]
    await store.close_run(RUN, result, context=None, remembered=remembered)
    return refs


async def missed(store):
    """Return the names of the payloads that verifying finds nowhere."""
    faults = (await store.verifying.payloads()).faults
    assert all(fault.startswith(f"{RUN}: ") and fault.endswith("nowhere; restore it from a backup") for fault in faults)
    return {fault.split(": ")[1] for fault in faults}


@promise("store:verify-named")
async def test_each_payload_that_a_run_names_is_missed_when_it_is_nowhere(tmp_path, database_url):
    async with a_store(tmp_path, database_url) as store:
        refs, blobs = await ended_run(store), store.blobs.of(RUN)
        assert await missed(store) == set()
        texts = {(await blobs.record(ref))["shown"] for ref in refs.values()}
        assert len(texts) == len(REFS)
        await blobs.erase([*texts])
        assert await missed(store) == texts
        await blobs.erase([*refs.values()])
        assert await missed(store) == {*refs.values()}


@promise("store:verify-named")
@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_forgotten_is_not_missed(tmp_path, database_url, kind):
    async with a_store(tmp_path, database_url) as store:
        refs = await ended_run(store)
        items = await store.memory.items.of_run("ana", RUN)
        await store.forgetting.item(next(item for item in items if item.kind == kind), by="ana")
        assert await missed(store) == set()
        gone = {"tool_output": ["read"], "final_answer": ["output", "outputs"]}.get(kind, [])
        for name in (*gone, "events", "effects"):
            assert await store.blobs.of(RUN).erase([refs[name]]) == 0
        assert await store.blobs.of(RUN).erase([refs["sent"]]) == 1


@promise("store:verify-named")
async def test_a_ref_that_a_model_reports_is_no_payload_of_its_run(tmp_path):
    async with a_store(tmp_path) as store:
        await begin(store, RUN, steps=0)
        await store.close_run(RUN, {"outcome": "completed", "raw_outputs": {"ref": "a" * 40}}, context=None)
        assert await missed(store) == set()
