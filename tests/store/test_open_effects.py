"""Which effects of a run could still be undone, page by page and in all, and of which nobody knows the outcome."""

from backstay.authority import Authority
from backstay.budgets.share import Share
from backstay.effects.effect import EffectState
from backstay.task.event import Event
from store.effects.types import BoundUndo, Intent
from store.opening import open_store
from store.subruns import Subrun
from tests.requirements import promise

ONCE = {"idempotency_ttl": None, "attempt": 1, "epoch_differs": False}
BOUND_UNDO = BoundUndo(tool="mail.recall", sealed_ref="b" * 40, shown="mail.recall(message_id=7)")
ANA = Authority(approvers=("ana",))


async def delegated(store, above, run):
    """Keep a run as the sub-run of another one."""
    share = Share(max_steps=1, max_tool_calls=1, max_code_runs=0)
    part = Subrun(workflow_id="w", parent=above, n=1, step=1, task_digest="d", context="c", share=share)
    await store.subruns.begin([part], most=1)
    await store.subruns.opened("w", run, "d")


async def begun(store, n, run="w/r", **more):
    intent = Intent(effect_id=f"{run}/{n}", run=run, n=n, tool="mail.send", args_digest="d", lease_s=30, user_id="ana")
    begun = await store.effects.begin(intent.model_copy(update={"step": n, **more}), **ONCE)
    return begun.token


async def settled(store, n, state, undo=None, **more):
    token = await begun(store, n, **more)
    assert await store.effects.settle(f"w/r/{n}", token, state, undo=undo)


async def numbers(store, **limits):
    return [row.n for row in await store.effects.open_of_run("w/r", **limits)]


@promise("undo:pages-newest")
async def test_effects_that_could_still_be_undone_are_read_in_pages_the_newest_first(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        for n in range(1, 8):
            await settled(store, n, EffectState.APPLIED, BOUND_UNDO)
        await begun(store, 1, run="w/other")

        assert await numbers(store, limit=3) == [7, 6, 5]
        assert await numbers(store, before=5, limit=3) == [4, 3, 2]
        assert await numbers(store, before=2, limit=3) == [1]
        assert await numbers(store, before=1, limit=3) == []
        assert await numbers(store, to_step=4) == [7, 6, 5]
        assert await numbers(store, to_step=2, before=5) == [4, 3]
        assert await numbers(store) == [7, 6, 5, 4, 3, 2, 1]


@promise("undo:pages-newest")
async def test_what_was_dealt_with_or_never_happened_is_left_out(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await settled(store, 1, EffectState.APPLIED, BOUND_UNDO)
        await settled(store, 2, EffectState.FAILED)
        await settled(store, 3, EffectState.NOT_SENT)
        await settled(store, 4, EffectState.UNKNOWN)
        await begun(store, 5)
        for n, undo in ((6, BOUND_UNDO), (7, None)):
            await settled(store, n, EffectState.APPLIED, undo)
            await store.effects.mark(f"w/r/{n}", EffectState.KEPT)
        await settled(store, 8, EffectState.APPLIED, BOUND_UNDO)
        token = (
            await store.effects.begin(
                Intent(
                    effect_id="w/r/8/undo",
                    run="w/r",
                    n=8,
                    undo=True,
                    tool="mail.recall",
                    args_digest="d",
                    lease_s=30,
                    user_id="ana",
                ),
                **ONCE,
            )
        ).token
        assert await store.effects.settle("w/r/8/undo", token, EffectState.APPLIED)

        assert await numbers(store) == [6, 5, 4, 1]


@promise("operations:metrics-lost")
async def test_a_send_that_was_never_answered_counts_as_unknown_once_its_lease_is_over(tmp_path, database_url):
    now = [100.0]
    async with open_store(database_url=database_url, home=tmp_path, clock=lambda: now[0]) as store:
        await begun(store, 1)
        await settled(store, 2, EffectState.APPLIED)
        assert await store.effects.hand_over("w/r/3", await begun(store, 3), "a" * 40)
        under_way = (await store.effects.get("w/r/1")).effect()
        assert (await store.effects.count_unknown(), under_way.state) == (0, EffectState.DISPATCHED)
        now[0] = 130
        states = {row.n: row.effect().state.value for row in await store.effects.of_run("w/r")}
        assert states == {1: "unknown", 2: "applied", 3: "dispatched"}
        assert await store.effects.count_unknown() == 1
        # Who answers is believed, as before.
        await store.effects.resolve("w/r/1", state=EffectState.NOT_SENT, outcome="ana says so")
        assert await store.effects.count_unknown() == 0


@promise("operations:metrics-lost")
async def test_an_effect_of_a_sub_run_whose_undo_is_parked_is_not_counted_as_unknown_too(tmp_path, database_url):
    now = [100.0]
    async with open_store(database_url=database_url, home=tmp_path, clock=lambda: now[0]) as store:
        await delegated(store, "w/above", "w/r")
        for n in (1, 2):
            await settled(store, n, EffectState.APPLIED, BOUND_UNDO)
        assert await store.subruns.adopt("w/above", None, 5) == 7
        undo = {"effect_id": "w/r/2/undo", "n": 2, "undo": True, "tool": "mail.recall"}
        await begun(store, **undo)
        now[0] = 200
        assert await store.effects.count_unknown() == 1
        parked = Event(n=1, name="undo.ran", at="2026-01-01T00:00:00Z", data={"effect": 6, "state": "parked"})
        await store.events.append("w/above", [parked])
        assert await store.effects.count_unknown() == 0
        assert await store.parked.of_run("w/above") == {6}
        # What was dealt with is parked nowhere.
        await store.effects.mark("w/r/2", EffectState.COMPENSATED)
        assert await store.parked.of_run("w/above") == set()


@promise("subruns:reset-numbers")
async def test_who_takes_a_number_of_an_effect_of_a_sub_run_is_told_a_free_one(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await delegated(store, "w/above", "w/r")
        for n in range(1, 5):
            await settled(store, n, EffectState.APPLIED, BOUND_UNDO)
        assert await store.subruns.adopt("w/above", None) == 5
        intent = {"run": "w/above", "tool": "mail.send", "args_digest": "d", "lease_s": 30, "user_id": "ana"}
        taken = await store.effects.begin(Intent(effect_id="w/above/2", n=2, **intent), **ONCE)
        assert (taken.kind, taken.row.effect_id, taken.free) == ("taken", "w/r/2", 5)
        sent = await store.effects.begin(Intent(effect_id="w/above/5", n=5, **intent), **ONCE)
        assert sent.kind == "go"


@promise("undo:proven-beforehand")
async def test_who_decides_about_all_of_them_is_read_without_reading_them(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        for n, authority in enumerate((None, ANA, ANA, Authority(quorum=2)), 1):
            await settled(store, n, EffectState.APPLIED, BOUND_UNDO, authority=authority)
        await settled(store, 5, EffectState.FAILED, authority=Authority(approvers=("eve",)))

        count, authorities = await store.effects.authorities_of_open("w/r")
        assert (count, sorted(found.quorum for found in authorities)) == (4, [1, 2])
        assert ANA in authorities
        assert await store.effects.authorities_of_open("w/r", to_step=3) == (1, [Authority(quorum=2)])
        assert await store.effects.authorities_of_open("w/none") == (0, [])
