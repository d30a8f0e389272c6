"""Which effects of a run could still be undone, page by page and in all."""

from backstay.authority import Authority
from backstay.effects.effect import EffectState
from store.effects.types import BoundUndo, Intent
from store.opening import open_store
from tests.requirements import promise

ONCE = {"idempotency_ttl": None, "attempt": 1, "epoch_differs": False}
BOUND_UNDO = BoundUndo(tool="mail.recall", sealed_ref="b" * 40, shown="mail.recall(message_id=7)")
ANA = Authority(approvers=("ana",))


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
