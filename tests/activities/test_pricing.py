"""What a call costs, and what it can cost at most."""

import pytest

from activities.endpoints.pricing import price_of
from activities.model.completion import usage_in
from backstay.budgets.usage import ModelUsage
from backstay.settings import Price, Settings
from tests.requirements import promise


def settings() -> Settings:
    return Settings(_env_file=None)


@promise("budget:cache-writes")
def test_what_an_endpoint_keeps_for_later_is_billed_at_its_own_price():
    usage = ModelUsage(calls=1, input_cached_tokens=1000, input_new_tokens=500, input_written_tokens=300)
    own = price_of(settings(), "m", Price(input=2, cached=0.2, cache_write=2.5, output=8))
    plain = price_of(settings(), "m", Price(input=2, output=8))
    packaged = price_of(settings(), "claude-sonnet-4-5")

    assert own is not None
    assert plain is not None
    assert packaged is not None
    assert own.micro(usage) == 200 * 2 + 300 * 2.5 + 1000 * 0.2
    assert plain.micro(usage) == 1500 * 2
    assert packaged.micro(usage) == 200 * 3 + 300 * 3.75 + 1000 * 0.3


@promise("budget:cache-writes")
@pytest.mark.parametrize(
    "price",
    [
        Price(input=2, cached=0.2, cache_write=4, output=8),
        Price(input=2, cached=0.2, output=8),
        Price(input=1, cached=3, output=8),
        None,
    ],
)
def test_no_use_of_so_many_tokens_costs_more_than_the_worst_case(price):
    found = price_of(settings(), "claude-sonnet-4-5", price)

    assert found is not None
    for cached in (0, 400, 1000):
        for kept in (0, 1000 - cached):
            usage = ModelUsage(input_cached_tokens=cached, input_new_tokens=1000 - cached, input_written_tokens=kept)
            assert found.micro(usage.model_copy(update={"output_tokens": 50})) <= found.worst(1000, 50)


@promise("models:budget-usage")
def test_no_more_is_kept_for_later_than_was_new():
    details = {"cached_tokens": 60, "cache_write_tokens": 90}
    usage, reported = usage_in(
        {"usage": {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": details}}
    )

    assert reported
    assert (usage.input_cached_tokens, usage.input_new_tokens, usage.input_written_tokens) == (60, 40, 40)
