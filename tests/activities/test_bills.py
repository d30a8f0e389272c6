"""What is reserved for a model whose endpoint billed more than was asked for."""

import pytest
from structlog.testing import capture_logs

from activities.model.bills import FILE, HALF_S, Bills
from tests.requirements import promise


def note(bills, billed, most, key="m"):
    bills.note(key, "model", "https://models.example", billed=billed, most=most)


@promise("budget:marked")
@pytest.mark.parametrize(("billed", "most", "factor"), [(50, 100, 1), (100, 100, 1), (300, 100, 3), (5, 0, 1)])
def test_what_a_model_billed_beyond_what_was_asked_is_assumed_from_then_on(billed, most, factor):
    bills = Bills(clock=lambda: 0.0)
    with capture_logs() as logs:
        note(bills, billed, most)
    assert bills.factor("m") == factor
    assert [entry["event"] for entry in logs] == (["model.overbilled"] if factor > 1 else [])


@promise("budget:marked")
def test_honest_bills_bring_the_trust_back_step_by_step():
    bills = Bills(clock=lambda: 0.0)
    note(bills, 300, 100)
    factors = []
    for _ in range(3):
        note(bills, 90, 100)
        factors.append(bills.factor("m"))
    assert factors == [1.5, 1, 1]


@promise("budget:doubt-ends")
def test_a_doubt_concerns_one_endpoint_at_one_price_and_fades_where_no_bill_comes():
    now = [0.0]
    bills = Bills(clock=lambda: now[0])
    note(bills, 4500, 100)
    assert (bills.factor("m"), bills.factor("another price")) == (45, 1)
    now[0] = HALF_S
    assert bills.factor("m") == 22.5
    now[0] = 6 * HALF_S
    assert (bills.factor("m"), bills.why("m")) == (1, "")


@promise("budget:doubt-named")
def test_a_doubt_says_what_was_billed_where_and_what_an_operator_can_do():
    bills = Bills(clock=lambda: 0.0)
    note(bills, 2_250_000, 50_000)
    why = bills.why("m")
    assert "model at https://models.example billed 2.25 USD at 00:00 UTC" in why
    assert "may cost 0.05 USD at most" in why
    assert "backstay doctor --believe model" in why


@promise("budget:doubt-cleared")
def test_a_doubt_outlives_the_worker_and_ends_when_an_operator_clears_it(tmp_path):
    bills = Bills(tmp_path, clock=lambda: 0.0)
    note(bills, 300, 100)
    assert Bills(tmp_path, clock=lambda: 0.0).factor("m") == 3
    assert [doubt.model for doubt in Bills(tmp_path).doubts().values()] == ["model"]
    assert Bills(tmp_path).believe("model")
    assert bills.factor("m") == 1
    # A file that somebody broke doubts nothing.
    (tmp_path / FILE).write_text("[1")
    assert Bills(tmp_path).factor("m") == 1
