"""Decisions are read from the ledger of a store as cases to learn from, on SQLite and on Postgres."""

from backstay.approvals.approval import ChangedCall, RequestKind
from backstay.effects.effect import EffectState
from backstay.provenance.source import Source
from store.effects.types import BoundUndo, Intent
from tests.learning.stored import asked, call, decided, record
from tests.ledger.recorded import FIRST, NOON, Clock, a_store
from tests.requirements import promise


def intent(number, *, undo):
    name = {"effect_id": f"one/{number}{'/undo' if undo else ''}", "run": "one", "n": number, "undo": undo}
    tool = "mail.recall" if undo else "mail.send"
    return Intent(**name, tool=tool, args_digest="d", lease_s=9, user_id="u")


@promise("learning:reading-lost")
async def test_an_undo_whose_answer_is_lost_counts_as_failed_once_nothing_is_under_way(tmp_path, database_url):
    clock = Clock(NOON)
    async with a_store(tmp_path, database_url, clock=clock) as store:
        await record(store, "one", [], [])
        for number in (1, 2):
            begun = await store.effects.begin(intent(number, undo=False), **FIRST)
            undo = BoundUndo(tool="mail.recall", sealed_ref="r", shown="s")
            settled = {"result_ref": "r", "undo": undo}
            await store.effects.settle(f"one/{number}", begun.token, EffectState.APPLIED, **settled)
            begun = await store.effects.begin(intent(number, undo=True), **FIRST)
        # Its server works on the second one as a task, so its end is not lost.
        assert await store.effects.hand_over("one/2/undo", begun.token, "sealed")
        assert await store.decided.undos(0) == {"mail.send": (2, 0)}
        clock.now += 10
        assert await store.decided.undos(0) == {"mail.send": (2, 1)}


@promise("learning:reading")
async def test_cases_hold_what_was_asked_and_said_and_the_undos_are_counted(tmp_path, database_url):
    to, others = {"to": "a@x.example"}, {"/to/0": (Source(kind="tool", tool="mail.read", content="others"),)}
    async with a_store(tmp_path, database_url, clock=Clock(NOON + 10)) as store:
        requests = [
            asked(1, call(0, to), call(1, {"to": ["b@x.example"]}, sources=others)),
            asked(2, call(0, {"to": "a<U+202E>b", "body": "x", "n": 3}, real=to, clipped=7, left_out=1)),
            asked(3, call(0, to, changed=("~ to: ..",)), kind=RequestKind.PLAN),
            asked(4, call(0, to), may_remember=()),
        ]
        changed = (ChangedCall(index=0, args_digest="d", lines=("~ body: x -> y", "+ cc.0: z")),)
        decisions = [
            decided(1, calls={0: "approve", 1: "reject"}),
            decided(2, "modify", changed=changed),
            decided(3, state="recorded"),
            decided(4, verified=False),
            decided(5),
        ]
        await record(store, "one", requests, decisions, started_by="Zoe.Z")
        await record(store, "two", [asked(1, call(0, to))], [decided(1)])
        for number, state in enumerate((EffectState.APPLIED, EffectState.FAILED), 1):
            for undo in (False, True):
                sends = intent(number, undo=undo)
                begun = await store.effects.begin(sends, **FIRST)
                kept = None if undo else BoundUndo(tool="mail.recall", sealed_ref="r", shown="s")
                ended = state if undo else EffectState.APPLIED
                await store.effects.settle(sends.effect_id, begun.token, ended, result_ref="r", undo=kept)

        found = [case async for case in store.decided.cases(NOON)]
        assert [(case.run, case.request, case.said, case.verified, case.by_default) for case in found] == [
            ("one", "r1", "approve", True, True),
            ("one", "r1", "reject", True, True),
            ("one", "r2", "modify", True, True),
            ("one", "r4", "approve", False, False),
            ("two", "r1", "approve", True, True),
        ]
        assert (found[0].starters, found[-1].starters) == (frozenset({"Zoe.Z", "zoe"}), frozenset())
        assert (found[0].seconds, found[0].arguments, found[0].unseen) == (8, to, frozenset())
        assert found[1].sources == {"to": others["/to/0"]}
        assert (found[2].unseen, found[2].incomplete) == (frozenset({"to"}), True)
        assert found[2].edited == {"body", "cc"}
        assert await store.decided.undos(0) == {"mail.send": (2, 1)}
        assert [case async for case in store.decided.cases(NOON + 60)] == []
        assert [case async for case in store.decided.cases(NOON, "bo")] == []
        await store.definitions.allow("mail.send", "new", {}, "ana")
        assert not any([case.current async for case in store.decided.cases(NOON)])
