"""What a call costs, and what it can cost at most."""

import datetime as dt
import math
import random
from decimal import Decimal
from types import SimpleNamespace

import pytest
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import DataSnapshot, get_snapshot, set_custom_snapshot
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    Provider,
    StartDateConstraint,
    TieredPrices,
)

from activities.endpoints import pricing
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


@promise("budget:cache-writes")
def test_no_long_request_to_any_packaged_model_costs_more_than_the_worst_case():
    tokens = 500_000
    usage = ModelUsage(calls=1, input_new_tokens=tokens, output_tokens=tokens)
    models = [model for provider in get_snapshot().providers for model in provider.models]
    now, own = dt.datetime.now(dt.UTC), settings()
    tiered = {
        each.id for each in models if any(isinstance(row, TieredPrices) for row in vars(each.get_prices(now)).values())
    }
    priced = {name: found for name in sorted(tiered) if (found := price_of(own, name)) is not None}
    dearer = [name for name, found in priced.items() if found.micro(usage) > found.worst(tokens, tokens)]

    # The price of output goes up with the input in many lists.
    assert len(priced) > 20
    assert dearer == []


@promise("models:budget-usage")
def test_no_more_is_kept_for_later_than_was_new():
    details = {"cached_tokens": 60, "cache_write_tokens": 90}
    usage, reported = usage_in(
        {"usage": {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": details}}
    )

    assert reported
    assert (usage.input_cached_tokens, usage.input_new_tokens, usage.input_written_tokens) == (60, 40, 40)


def is_tiered(model):
    prices = model.prices if isinstance(model.prices, list) else [SimpleNamespace(prices=model.prices)]
    return any(isinstance(price, TieredPrices) for each in prices for price in vars(each.prices).values())


@promise("budget:packaged-prices")
def test_a_packaged_price_bills_what_the_list_says_below_and_above_its_tiers():
    listed = [model for provider in get_snapshot().providers for model in provider.models]
    listed = [*[model for model in listed if is_tiered(model)][::8], *listed[::100]]
    dice, compared = random.Random(1), 0
    for name in sorted({model.id for model in listed}):
        price = price_of(settings(), name)
        for most in (0, 1000, 200_000, 200_001, 400_000) if price else ():
            new, cached, output = dice.randint(0, most), dice.randint(0, most), dice.randint(0, 50_000)
            written = dice.randint(0, new)
            usage = ModelUsage(
                input_new_tokens=new, input_cached_tokens=cached, input_written_tokens=written, output_tokens=output
            )
            said = Usage(
                input_tokens=new + cached, cache_read_tokens=cached, cache_write_tokens=written, output_tokens=output
            )
            assert price.micro(usage) == math.ceil(calc_price(said, name).total_price * 1_000_000), (name, usage)
            compared += 1
    assert compared > 50


@pytest.fixture
def listing():
    """Return what puts a list of prices of the model `m`, by the day from which each holds, in the place of others."""

    def put(**prices):
        listed = [
            ConditionalPrice(
                constraint=StartDateConstraint(dt.date(int(year.removeprefix("y")), 1, 1)),
                prices=ModelPrice(input_mtok=Decimal(price), output_mtok=Decimal(price)),
            )
            for year, price in prices.items()
        ]
        match = ClauseEquals("m")
        model = ModelInfo(id="m", match=match, prices=listed)
        provider = Provider(id="p", name="p", api_pattern="p", model_match=match, models=[model])
        set_custom_snapshot(DataSnapshot(providers=[provider], from_auto_update=False))

    yield put
    set_custom_snapshot(None)


@promise("budget:packaged-prices")
def test_a_price_is_computed_once_until_its_day_the_list_or_the_settings_change(listing, monkeypatch):
    computed, compute = [], ModelPrice.calc_price
    monkeypatch.setattr(ModelPrice, "calc_price", lambda *asked: computed.append(asked) or compute(*asked))
    usage = ModelUsage(input_new_tokens=1000, output_tokens=1000)

    def billed(own=None):
        price = price_of(settings(), "m", own)
        return None if price is None else (price.input, price.micro(usage))

    listing(y2020="2", y2999="3")
    asked_for = price_of(settings(), "m")
    assert billed() == (2, 4000)
    computed.clear()
    assert {billed() for _ in range(50)} == {(2, 4000)}
    assert computed == []
    assert billed(Price(input=5, output=5)) == (5, 10_000)
    later = dt.datetime(3000, 1, 1, tzinfo=dt.UTC)
    with monkeypatch.context() as moved:
        moved.setattr(pricing, "datetime", SimpleNamespace(now=lambda _: later))
        assert billed() == (3, 6000)
        # It is billed by the price of when it is answered.
        assert asked_for.micro(usage) == 6000
    assert billed() == (2, 4000)
    listing(y2020="7")
    assert billed() == (7, 14_000)
    assert price_of(settings(), "another") is None
