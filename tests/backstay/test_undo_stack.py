"""The undo stack keeps the newest slots, and of what only the store holds no more than must be known beforehand."""

from hypothesis import given
from hypothesis import strategies as st

from backstay.authority import NOBODY, Authority
from backstay.effects.compensation import (
    KEPT_UNDONE,
    Compensation,
    Undone,
    UndoOutcome,
    UndoStack,
    authority_over,
    standing,
)
from tests.requirements import promise

ANYBODY = Authority()
ANA_OR_BO = Authority(approvers=("ana", "bo"))
BO_AND_CY = Authority(approvers=("bo", "cy"), quorum=2)
EVE = Authority(approvers=("eve",))


def slot(effect, step=None, authority=None, **more):
    return Compensation(
        effect=effect, tool="mail.send", step=effect if step is None else step, authority=authority, **more
    )


def stack_of(*slots):
    stack = UndoStack()
    for added in slots:
        stack = stack.push(added)
    return stack


AUTHORITIES = st.builds(
    Authority,
    approvers=st.lists(st.sampled_from(["ana", "bo", "cy"]), unique=True, max_size=3).map(
        lambda drawn: tuple(sorted(drawn))
    ),
    quorum=st.integers(1, 3),
    no_self_approval=st.booleans(),
).filter(lambda drawn: not drawn.approvers or drawn.quorum <= len(drawn.approvers))
STACKS = st.lists(st.tuples(st.integers(0, 2), st.none() | AUTHORITIES, st.booleans()), min_size=1, max_size=12).map(
    lambda drawn: stack_of(
        *(
            slot(n, sum(more for more, _, _ in drawn[:n]), authority, unknown=unknown)
            for n, (_, authority, unknown) in enumerate(drawn, 1)
        )
    )
)


@promise("undo:undo-trimmed")
def test_a_trimmed_stack_keeps_the_newest_slots_and_tells_of_the_others():
    whole = stack_of(slot(1), slot(2, authority=ANA_OR_BO), slot(3, unknown=True), slot(4), slot(5))

    trimmed = whole.trimmed(2)

    assert [kept.effect for kept in trimmed.to_undo()] == [5, 4]
    assert (trimmed.count, trimmed.below, trimmed.below_effect, trimmed.below_step) == (5, 3, 3, 3)
    assert trimmed.below_authority == ANA_OR_BO.for_stopping()
    assert whole.trimmed(5) == whole
    assert whole.model_copy(update={"below_after": 3}).trimmed(1).below_after == 3
    assert trimmed.trimmed(0).trimmed(0) == whole.trimmed(0)
    assert UndoStack.model_validate(trimmed.model_dump(mode="json")) == trimmed


@promise("undo:undo-trimmed")
def test_a_trimmed_stack_takes_further_slots():
    trimmed = stack_of(slot(1), slot(2)).trimmed(1).push(slot(3)).push(slot(3, unknown=True)).drop(2)

    assert (trimmed.count, trimmed.below_effect) == (2, 1)
    assert [kept.effect for kept in trimmed.to_undo()] == [3]


@promise("undo:undo-trimmed")
def test_effects_of_a_sub_run_join_a_stack_of_higher_numbers_without_hiding_any():
    own = stack_of(slot(300), slot(301))

    joined = own.joined([slot(200), slot(201)], 201, ANYBODY)
    assert (joined.to_undo(), joined.count, joined.below_effect, joined.below_step) == ((), 203, 301, 301)

    on_top = own.joined([slot(400), slot(401)], 100, ANYBODY)
    assert [kept.effect for kept in on_top.to_undo()] == [401, 400]
    assert (on_top.count, on_top.below_effect) == (102, 399)


@promise("undo:trimmed-no-head")
def test_a_stack_that_was_carried_before_there_was_a_head_is_read():
    assert UndoStack.model_validate({"slots": []}) == UndoStack()
    assert not UndoStack().reaches_below()


@promise("undo:beforehand-trimmed")
@given(STACKS, st.integers(0, 12), st.integers(0, 12), st.none() | st.integers(0, 24), AUTHORITIES)
def test_whoever_may_undo_a_trimmed_stack_may_undo_every_effect_in_it(whole, first, then, to_step, run):
    trimmed = whole.trimmed(first).trimmed(then)

    needed = trimmed.authority(to_step, run)

    exact = authority_over(whole.to_undo(to_step), run)
    assert needed.quorum >= NOBODY or needed.also(exact) == needed
    if not trimmed.reaches_below(to_step):
        assert needed == exact
    assert all(trimmed.covers(gone) for gone in whole.slots if gone.effect <= trimmed.below_effect)


@promise("undo:trimmed-order")
@given(STACKS, st.integers(0, 12), st.none() | st.integers(0, 24))
def test_what_an_undo_covers_is_the_same_for_a_trimmed_stack_and_the_store(whole, keep, to_step):
    trimmed = whole.trimmed(keep)

    kept = trimmed.to_undo(to_step)
    stored = [gone for gone in whole.to_undo(to_step) if gone.effect <= trimmed.below_effect]

    assert [*kept, *stored] == [*whole.to_undo(to_step)]
    assert bool(stored) == trimmed.reaches_below(to_step)


@promise("undo:beforehand-left")
def test_an_effect_that_other_people_decide_about_is_not_covered():
    trimmed = stack_of(slot(1, authority=ANA_OR_BO)).trimmed(0)

    assert trimmed.covers(slot(1, authority=ANA_OR_BO))
    assert trimmed.covers(slot(1))
    assert not trimmed.covers(slot(1, authority=EVE))
    assert not trimmed.covers(slot(1, authority=BO_AND_CY))
    assert not stack_of(slot(1)).trimmed(0).covers(slot(1, authority=EVE))


@promise("undo:trimmed-once")
def test_what_was_dealt_with_is_not_reached_again():
    trimmed = stack_of(*(slot(n) for n in range(1, 9))).trimmed(2)
    for effect in (8, 7, 6, 5):
        trimmed = trimmed.dealt_with(effect)
    trimmed = trimmed.dealt_with_below(4)

    assert (trimmed.count, trimmed.below_effect, trimmed.below_step) == (4, 4, 4)
    assert not trimmed.reaches_below(4)
    assert trimmed.reaches_below(3)
    assert trimmed.dealt_with_below(None) == UndoStack()


@promise("undo:outcome")
def test_of_many_outcomes_all_are_counted_and_the_last_named_with_parked_ones_before_others():
    outcome = UndoOutcome()
    for effect in range(3 * KEPT_UNDONE, 0, -1):
        parked = effect > 3 * KEPT_UNDONE - 2
        outcome = outcome.plus(Undone(effect=effect, tool="t", state="parked" if parked else "compensated"))

    assert (outcome.count, outcome.compensated, outcome.parked) == (300, 298, 2)
    assert [undone.effect for undone in outcome.last] == [300, 299, *range(KEPT_UNDONE - 2, 0, -1)]


@promise("undo:outcome")
def test_when_all_are_parked_the_last_are_named():
    outcome = UndoOutcome()
    for effect in range(KEPT_UNDONE + 5, 0, -1):
        outcome = outcome.plus(Undone(effect=effect, tool="t", state="parked"))

    assert [undone.effect for undone in outcome.last] == list(range(KEPT_UNDONE, 0, -1))


@promise("programs:stands")
def test_what_stands_is_named_in_order_unless_it_was_undone():
    stack = stack_of(slot(5, unknown=True), slot(3, arguments={"n": 1}), slot(1))
    undone = [
        Undone(effect=4, tool="mail.send", state="parked"),
        Undone(effect=6, tool="mail.send", state="compensated"),
        Undone(effect=2, tool="mail.send", state="kept"),
    ]
    assert standing(stack, undone, 3) == [
        'effect 3: mail.send {"n":1}: applied',
        "effect 4: mail.send: parked",
        "effect 5: mail.send: unknown",
    ]
    assert standing(stack, undone, 6) == []


@promise("programs:stands")
def test_of_many_effects_that_stand_the_last_are_named():
    stack = stack_of(*(slot(n) for n in range(1, 2 * KEPT_UNDONE)))
    hidden, *named = standing(stack, [], 10)
    assert "effects from number 10 on" in hidden
    assert len(named) == KEPT_UNDONE
    assert named[-1] == f"effect {2 * KEPT_UNDONE - 1}: mail.send: applied"
    assert standing(stack.trimmed(KEPT_UNDONE), [], 10) == [hidden, *named]
    assert standing(stack_of(slot(1)), [], 2) == []
