"""Who may send: every rule for attempts that begin."""

import asyncio

import pytest

from backstay.effects.effect import EffectState
from store.effects.types import Intent
from store.opening import open_store
from tests.requirements import promise

FIRST = Intent(
    effect_id="w/r/1", run="w/r", n=1, tool="mail.send", args_digest="d1", step=2, send=1, lease_s=30, user_id="ana"
)
ONCE = {"idempotency_ttl": None, "epoch_differs": False}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def later(intent: Intent, clock: Clock, **changes) -> Intent:
    return intent.model_copy(update={"lease_s": 30, **changes})


@promise("effects:row")
async def test_the_first_attempt_goes_and_the_row_says_so(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        intent = FIRST.model_copy(update={"arguments_sealed": "e" * 40})
        begun = await store.effects.begin(intent, attempt=1, **ONCE)
        row = await store.effects.get("w/r/1")

    assert begun.kind == "go"
    assert begun.token
    assert begun.row == row
    assert row.model_dump(exclude={"token"}) == {
        "effect_id": "w/r/1",
        "run": "w/r",
        "n": 1,
        "undo": False,
        "tool": "mail.send",
        "args_digest": "d1",
        "state": EffectState.DISPATCHED,
        "send": 1,
        "lease": 130.0,
        "step": 2,
        "user_id": "ana",
        "result_ref": None,
        "outcome": None,
        "undo_tool": None,
        "undo_sealed": None,
        "undo_shown": None,
        "arguments_sealed": "e" * 40,
        "task_sealed": None,
        "authority": None,
        "first_sent_at": 100.0,
        "updated_at": 100.0,
        "read_at": 100.0,
    }


@promise("effects:no-row")
async def test_a_retry_whose_earlier_attempt_left_no_row_goes(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        assert (await store.effects.begin(FIRST, attempt=4, **ONCE)).kind == "go"


@promise("store:restored")
async def test_after_a_restore_only_a_first_attempt_without_a_row_goes(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        first = await store.effects.begin(FIRST, attempt=1, idempotency_ttl=None, epoch_differs=True)
        lost = FIRST.model_copy(update={"effect_id": "w/r/2", "n": 2})
        retry = await store.effects.begin(lost, attempt=2, idempotency_ttl=None, epoch_differs=True)
        third = await store.effects.begin(lost, attempt=3, idempotency_ttl=None, epoch_differs=True)
    assert (first.kind, retry.kind, third.kind) == ("go", "unknown", "unknown")
    assert retry.token == ""
    assert retry.row.state is EffectState.UNKNOWN


@promise("store:restored-settled")
async def test_what_was_lost_in_a_restore_can_be_settled_and_sent_anew(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        await store.effects.begin(FIRST, attempt=2, idempotency_ttl=None, epoch_differs=True)
        await store.effects.resolve("w/r/1", state=EffectState.NOT_SENT, outcome="ana: did not happen")
        again = await store.effects.begin(later(FIRST, clock, send=2), attempt=1, **ONCE)
    assert (again.kind, again.row.send) == ("go", 2)


@promise("effects:no-first-row")
async def test_a_second_send_without_the_row_of_the_first_is_unknown(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST.model_copy(update={"send": 2}), attempt=1, **ONCE)
    assert begun.kind == "unknown"


@promise("effects:conflict")
@pytest.mark.parametrize("change", [{"tool": "mail.delete"}, {"args_digest": "d2"}, {"undo": True}])
@pytest.mark.parametrize("state", [None, EffectState.APPLIED, EffectState.NOT_SENT, EffectState.UNKNOWN])
async def test_another_call_under_the_same_id_is_a_conflict_and_changes_nothing(tmp_path, change, state, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        begun = await store.effects.begin(FIRST, attempt=1, **ONCE)
        if state is not None:
            await store.effects.settle("w/r/1", begun.token, state)
        before = await store.effects.get("w/r/1")
        clock.now = 500
        other = await store.effects.begin(later(FIRST, clock, send=2, **change), attempt=1, **ONCE)
        assert other.kind == "conflict"
        assert other.row == await store.effects.get("w/r/1") == before.model_copy(update={"read_at": 500})


@promise("effects:recorded")
@pytest.mark.parametrize("state", [EffectState.APPLIED, EffectState.FAILED])
@pytest.mark.parametrize("send", [1, 2])
async def test_a_settled_effect_is_recorded_and_not_sent_again(tmp_path, database_url, state, send):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        begun = await store.effects.begin(FIRST, attempt=1, **ONCE)
        await store.effects.settle("w/r/1", begun.token, state, outcome="told", result_ref="a" * 40)
        clock.now = 1000
        again = await store.effects.begin(
            later(FIRST, clock, send=send), attempt=2, idempotency_ttl=1e9, epoch_differs=False
        )
    assert again.kind == "recorded"
    assert (again.row.state, again.row.outcome, again.row.result_ref) == (state, "told", "a" * 40)


@promise("effects:recorded")
@pytest.mark.parametrize("state", [EffectState.COMPENSATED, EffectState.KEPT])
async def test_an_effect_that_was_undone_or_kept_is_not_sent_again(tmp_path, state, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, attempt=1, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        await store.effects.mark("w/r/1", state)
        assert (await store.effects.begin(FIRST, attempt=2, **ONCE)).kind == "recorded"


UNDO = FIRST.model_copy(update={"effect_id": "w/r/1/undo", "undo": True, "tool": "mail.recall", "args_digest": "u1"})


@promise("effects:undone-by-hand")
@pytest.mark.parametrize("tried", [None, EffectState.FAILED, EffectState.NOT_SENT, EffectState.UNKNOWN])
async def test_no_undo_is_sent_of_what_a_person_has_taken_back(tmp_path, tried, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, attempt=1, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        if tried is not None:
            undo = await store.effects.begin(UNDO, attempt=1, **ONCE)
            await store.effects.settle("w/r/1/undo", undo.token, tried)
        await store.effects.mark("w/r/1", EffectState.COMPENSATED)
        before = await store.effects.get("w/r/1/undo")
        for changes in ({"send": 2}, {"send": 2, "args_digest": "u2"}, {}):
            again = await store.effects.begin(UNDO.model_copy(update=changes), attempt=1, **ONCE)
            assert (again.kind, again.token, again.row.effect_id) == ("undone", "", "w/r/1")
        after = await store.effects.get("w/r/1/undo")
    assert (after and after.state) == tried == (before and before.state)


@promise("effects:undone-by-hand")
async def test_what_the_undo_itself_has_taken_back_is_recorded_as_that(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, attempt=1, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        undo = await store.effects.begin(UNDO, attempt=1, **ONCE)
        await store.effects.settle("w/r/1/undo", undo.token, EffectState.APPLIED)
        again = await store.effects.begin(UNDO, attempt=2, **ONCE)
    assert (undo.kind, again.kind, again.row.effect_id) == ("go", "recorded", "w/r/1/undo")


@promise("effects:undone-by-hand")
async def test_the_word_of_a_person_and_the_begin_of_an_undo_come_one_after_the_other(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        for n in range(1, 21):
            named = {"effect_id": f"w/r/{n}", "n": n}
            begun = await store.effects.begin(FIRST.model_copy(update=named), attempt=1, **ONCE)
            await store.effects.settle(f"w/r/{n}", begun.token, EffectState.APPLIED)
            undo = UNDO.model_copy(update=named | {"effect_id": f"w/r/{n}/undo"})
            marked, asked = await asyncio.gather(
                store.effects.mark(f"w/r/{n}", EffectState.COMPENSATED), store.effects.begin(undo, attempt=1, **ONCE)
            )
            sent = await store.effects.get(f"w/r/{n}/undo")
            assert (asked.kind, sent is None) in {("undone", True), ("go", False)}
            assert sent is None or sent.first_sent_at <= marked.updated_at


@promise("effects:live-lease")
@pytest.mark.parametrize("ttl", [None, 1000])
@pytest.mark.parametrize("send", [1, 2])
async def test_while_the_lease_lives_others_wait(tmp_path, ttl, send, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        await store.effects.begin(FIRST, attempt=1, **ONCE)
        clock.now = 129.9
        again = await store.effects.begin(
            later(FIRST, clock, send=send), attempt=2, idempotency_ttl=ttl, epoch_differs=False
        )
    assert (again.kind, again.row.lease) == ("wait", 130)


@promise("effects:dead-lease")
@pytest.mark.parametrize("send", [1, 2])
async def test_after_the_lease_the_outcome_is_unknown(tmp_path, send, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        await store.effects.begin(FIRST, attempt=1, **ONCE)
        clock.now = 130
        again = await store.effects.begin(later(FIRST, clock, send=send), attempt=2, **ONCE)
    assert again.kind == "unknown"


@promise("effects:idempotent")
async def test_an_idempotent_effect_goes_again_with_a_new_token_until_its_time_is_over(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        kinds = []
        tokens = set()
        for clock.now in (100, 130, 160, 190, 199, 220):
            begun = await store.effects.begin(later(FIRST, clock), attempt=1, idempotency_ttl=100, epoch_differs=False)
            kinds.append(begun.kind)
            tokens.add(begun.token)
            assert begun.row.first_sent_at == 100
    assert kinds == ["go", "go", "go", "go", "wait", "unknown"]
    assert len(tokens - {""}) == 4


@promise("effects:idempotent")
async def test_an_idempotent_effect_still_needs_its_earlier_send_settled_before_a_new_one(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        await store.effects.begin(FIRST, attempt=1, **ONCE)
        clock.now = 200
        begun = await store.effects.begin(
            later(FIRST, clock, send=2), attempt=1, idempotency_ttl=1e6, epoch_differs=False
        )
    assert begun.kind == "unknown"


@promise("effects:resend")
async def test_what_was_proven_not_sent_goes_again_under_the_same_send(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        first = await store.effects.begin(FIRST, attempt=1, **ONCE)
        await store.effects.settle("w/r/1", first.token, EffectState.NOT_SENT, outcome="HTTP 429")
        clock.now = 110
        again = await store.effects.begin(later(FIRST, clock), attempt=2, **ONCE)
        late = await store.effects.settle("w/r/1", first.token, EffectState.APPLIED)
    assert (again.kind, again.row.send, again.row.lease, again.row.outcome) == ("go", 1, 140, None)
    assert again.token != first.token
    assert late is False


@promise("effects:dead-lease")
async def test_unknown_stays_unknown_even_when_it_is_idempotent(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        begun = await store.effects.begin(FIRST, attempt=1, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.UNKNOWN, outcome="connection closed")
        for send in (1, 2):
            again = await store.effects.begin(
                later(FIRST, clock, send=send), attempt=2, idempotency_ttl=1e6, epoch_differs=False
            )
            assert again.kind == "unknown"


@promise("effects:new-send")
async def test_what_a_person_says_did_not_happen_goes_only_under_a_new_send(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        begun = await store.effects.begin(FIRST, attempt=1, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.UNKNOWN)
        await store.effects.resolve("w/r/1", state=EffectState.NOT_SENT, outcome="ana: did not happen")
        sleeper = await store.effects.begin(later(FIRST, clock), attempt=2, **ONCE)
        fresh = await store.effects.begin(later(FIRST, clock, send=2), attempt=1, **ONCE)
        stale = await store.effects.begin(later(FIRST, clock), attempt=3, **ONCE)
    assert (sleeper.kind, sleeper.row.state) == ("recorded", EffectState.NOT_SENT)
    assert (fresh.kind, fresh.row.send) == ("go", 2)
    assert stale.kind == "conflict"


@promise("effects:new-send")
async def test_a_person_also_closes_a_send_that_its_own_attempt_found_not_sent(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        begun = await store.effects.begin(FIRST, attempt=1, **ONCE)
        await store.effects.settle("w/r/1", begun.token, EffectState.NOT_SENT, outcome="HTTP 401")
        closed = await store.effects.resolve("w/r/1", state=EffectState.NOT_SENT, outcome="ana: did not happen")
        sleeper = await store.effects.begin(later(FIRST, clock), attempt=2, **ONCE)
        fresh = await store.effects.begin(later(FIRST, clock, send=2), attempt=1, **ONCE)
    assert closed.outcome == "HTTP 401"
    assert (sleeper.kind, fresh.kind) == ("recorded", "go")


@promise("undo:new-send")
async def test_a_compensation_that_failed_goes_again_only_under_a_new_send(tmp_path, database_url):
    clock = Clock()
    undo = FIRST.model_copy(update={"effect_id": "w/r/1/undo", "undo": True, "tool": "mail.recall"})
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        for effect in (FIRST, undo):
            begun = await store.effects.begin(effect, attempt=1, **ONCE)
            await store.effects.settle(effect.effect_id, begun.token, EffectState.FAILED, outcome="no such message")
        assert (await store.effects.begin(later(FIRST, clock, send=2), attempt=1, **ONCE)).kind == "recorded"
        assert (await store.effects.begin(later(undo, clock), attempt=2, **ONCE)).kind == "recorded"
        again = await store.effects.begin(later(undo, clock, send=2), attempt=1, **ONCE)
    assert (again.kind, again.row.send, again.row.outcome) == ("go", 2, None)


@promise("effects:recorded-old-send")
async def test_an_old_send_finds_the_record_of_a_newer_one(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        first = await store.effects.begin(FIRST, attempt=1, **ONCE)
        await store.effects.settle("w/r/1", first.token, EffectState.NOT_SENT)
        second = await store.effects.begin(later(FIRST, clock, send=2), attempt=1, **ONCE)
        await store.effects.settle("w/r/1", second.token, EffectState.APPLIED, outcome="sent at last")
        old = await store.effects.begin(later(FIRST, clock), attempt=2, **ONCE)
    assert (old.kind, old.row.outcome) == ("recorded", "sent at last")


@promise("effects:one-wins")
async def test_of_many_attempts_on_two_engines_exactly_one_goes(tmp_path, database_url):
    async with (
        open_store(database_url=database_url, home=tmp_path) as first,
        open_store(database_url=database_url, home=tmp_path) as other,
    ):
        for n in range(10):
            intent = FIRST.model_copy(update={"effect_id": f"w/r/{n}", "n": n, "lease_s": 1e12})
            begun = await asyncio.gather(
                *(store.effects.begin(intent, attempt=1, **ONCE) for store in (first, other) for _ in range(8))
            )
            assert sorted(b.kind for b in begun) == ["go"] + ["wait"] * 15
            token = next(b.token for b in begun if b.kind == "go")
            assert (await other.effects.get(intent.effect_id)).token == token


@promise("effects:idempotent")
async def test_of_many_attempts_to_repeat_an_idempotent_effect_exactly_one_goes(tmp_path, database_url):
    clock = Clock()
    async with (
        open_store(database_url=database_url, home=tmp_path, clock=clock) as first,
        open_store(database_url=database_url, home=tmp_path, clock=clock) as other,
    ):
        await first.effects.begin(FIRST, attempt=1, **ONCE)
        clock.now = 500
        begun = await asyncio.gather(
            *(
                store.effects.begin(later(FIRST, clock), attempt=2, idempotency_ttl=1e6, epoch_differs=False)
                for store in (first, other)
                for _ in range(8)
            )
        )
    assert sorted(b.kind for b in begun) == ["go"] + ["wait"] * 15
