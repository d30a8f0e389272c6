import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.bounds import MOST
from backstay.budgets.budget import Budget, Ledger, calls_refused, first_limit_hit
from backstay.budgets.usage import Usage
from backstay.errors import BudgetExceeded, TaskInvalid
from tests.requirements import promise

ENDS = st.sampled_from(["settled", "charged", "released", "still open"])


@promise("budget:ceiling")
@given(
    ceiling=st.integers(0, 10**6),
    finalize=st.integers(0, 10**6),
    calls=st.lists(st.tuples(st.integers(0, 4 * 10**5), st.floats(0, 1), ENDS, st.booleans()), max_size=60),
)
def test_spent_and_reserved_never_exceed_the_ceiling_whatever_ends_how(ceiling, finalize, calls):
    ledger = Ledger(ceiling=ceiling, finalize=finalize)
    open_calls = []
    for amount, billed_share, end, close_oldest in calls:
        try:
            ledger, held = ledger.reserve(amount)
        except BudgetExceeded:
            continue
        open_calls.append((held, billed_share, end))
        if close_oldest:
            held, share, how = open_calls.pop(0)
            ledger = _ended(ledger, held, share, how)
        assert ledger.spent + ledger.reserved <= ceiling
    for held, share, how in open_calls:
        ledger = _ended(ledger, held, share, how)
        assert ledger.spent + ledger.reserved <= ceiling


def _ended(ledger, held, share, how):
    match how:
        case "settled":
            return ledger.settle(held, int(held.micro * share))
        case "charged":
            return ledger.charge(held)
        case "released":
            return ledger.release(held)
    return ledger


@promise("budget:accounted")
def test_a_reservation_is_accounted_for_once():
    ledger, held = Ledger(ceiling=100).reserve(60)
    ledger = ledger.settle(held, 10)

    assert ledger.charge(held) == ledger.settle(held, 60) == ledger.release(held) == ledger
    assert ledger.spent == 10


@promise("budget:finalize")
def test_a_closing_summary_may_use_what_was_kept_back_for_it():
    ledger = Ledger(ceiling=100, finalize=30)

    with pytest.raises(BudgetExceeded, match="budget exceeded: max_llm_cost_usd"):
        ledger.reserve(71)
    ledger, held = ledger.reserve(70)
    spent = ledger.settle(held, 70)

    assert spent.left() == 0
    assert spent.left(closing=True) == 30


@promise("budget:accounted")
def test_a_bill_above_its_reservation_is_kept_whole():
    ledger, held = Ledger(ceiling=100).reserve(10)

    assert ledger.settle(held, 40).spent == 40


@promise("budget:named")
@pytest.mark.parametrize(
    ("usage", "seconds", "message"),
    [
        (Usage(steps=10), 0, "budget exceeded: max_steps (used 10, allowed 10)"),
        (Usage(), 5, "budget exceeded: max_wall_seconds (used 5, allowed 5)"),
        (Usage(steps=9), 4, None),
    ],
)
def test_the_first_bound_that_is_hit_is_named(usage, seconds, message):
    assert first_limit_hit(Budget(max_steps=10, max_wall_seconds=5), usage, seconds) == message


@promise("budget:plan-steps")
def test_a_plan_is_not_bounded_by_decisions():
    assert first_limit_hit(Budget(max_steps=1), Usage(steps=7), 0, decisions=False) is None


@promise("budget:batch")
def test_a_batch_fits_whole_or_not_at_all():
    budget = Budget(max_tool_calls=3, quotas={"mail.send": 1})

    assert calls_refused(budget, Usage(tool_calls=1), ["a.b", "a.c"]) is None
    assert calls_refused(budget, Usage(tool_calls=2), ["a.b", "a.c"]) is not None
    assert calls_refused(budget, Usage(), ["mail.send", "mail.send"]) == (
        "budget exceeded: quotas[mail.send] (used 0, allowed 1)"
    )


@promise("budget:top-up")
def test_top_up_adds_to_limits_and_refuses_the_rest():
    budget = Budget(max_steps=3, quotas={"a.b": 1})

    raised = budget.raised({"max_steps": 2, "quotas": {"a.b": 2}})

    assert (raised.max_steps, raised.quotas) == (5, {"a.b": 3})
    for wrong in (
        {"max_steps": 0},
        {"max_steps": -1},
        {"steps": 1},
        {"max_llm_cost_usd": float("inf")},
        {"max_steps": "2x"},
        {"quotas": {"a.b": 0}},
        {"quotas": {"a.b": -5}},
        {"quotas": {"a.b": True}},
        {"quotas": {"a.b": 10**9}},
        {"quotas": {"c.d": 1}},
    ):
        with pytest.raises(TaskInvalid):
            budget.raised(wrong)
    with pytest.raises(TaskInvalid, match="max_steps"):
        budget.raised({"max_steps": 100_000})
    with pytest.raises(TaskInvalid, match=r"^quotas\.c\.d: the run has no quota for this tool to add to; remove it$"):
        budget.raised({"quotas": {"a.b": 1, "c.d": 1}})


@promise("budget:top-up")
def test_what_was_added_elsewhere_is_taken_as_far_as_the_limits_reach():
    """A number as large as may be written stands for no limit, and takes nothing more."""
    full = Budget(max_steps=100_000, max_tool_calls=99_990, max_llm_cost_usd=999_999.7, quotas={"a.b": MOST - 1})
    more = {"max_steps": 20, "max_tool_calls": 20, "max_llm_cost_usd": 5.0, "max_tokens": 7, "quotas": {"a.b": 2}}

    room = full.room_for({**more, "quotas": {"a.b": 2, "c.d": 3}})
    raised = full.raised(room)

    assert "max_steps" not in room
    assert (raised.max_steps, raised.max_tool_calls, raised.max_llm_cost_usd) == (100_000, 100_000, 1_000_000)
    assert (raised.max_tokens, raised.quotas) == (None, {"a.b": MOST})
    assert raised.room_for({name: more[name] for name in more if name != "max_tokens"}) == {}
    assert Budget(quotas={"a.b": 1}).room_for({"max_steps": 2, "quotas": {"a.b": 2}}) == {
        "max_steps": 2,
        "quotas": {"a.b": 2},
    }
