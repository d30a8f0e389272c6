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
    TimeOfDateConstraint,
)

from activities.endpoints import pricing
from activities.endpoints.endpoints import open_endpoints
from activities.endpoints.pricing import price_of
from activities.endpoints.usage import usage_in
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


def sells(provider, name):
    """Return whether a provider lists what tokens of a model cost, in and out."""
    model = provider.find_model(name)
    price = {} if model is None else vars(model.get_prices(dt.datetime.now(dt.UTC)))
    return price.get("input_mtok") is not None and price.get("output_mtok") is not None


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
            # Without an address, the dearest that has it may be behind the name.
            sellers = [each.id for each in get_snapshot().providers if sells(each, name)]
            dearest = max(calc_price(said, name, provider_id=seller).total_price for seller in sellers)
            assert price.micro(usage) == math.ceil(dearest * 1_000_000), (name, usage)
            compared += 1
    assert compared > 50


@pytest.fixture
def listing():
    """Return what puts a list of prices of the model `m`, by the day from which each holds, in the place of others.

    `hours` are prices by the hours of the day at which they begin and end.
    """

    def put(hours=(), **prices):
        days = [
            (StartDateConstraint(dt.date(int(year.removeprefix("y")), 1, 1)), price) for year, price in prices.items()
        ]
        times = [(TimeOfDateConstraint(dt.time(begin), dt.time(end)), price) for begin, end, price in hours]
        listed = [
            ConditionalPrice(
                constraint=constraint,
                prices=ModelPrice(input_mtok=Decimal(price), output_mtok=Decimal(price)),
            )
            for constraint, price in [*days, *times]
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


@pytest.fixture
def at(monkeypatch):
    """Return what sets the clock by which prices are found."""

    def put(*when):
        moment = dt.datetime(*when, tzinfo=dt.UTC)
        monkeypatch.setattr(pricing, "datetime", SimpleNamespace(now=lambda _: moment))

    return put


@promise("budget:price-changes")
@pytest.mark.parametrize(
    ("asked", "answered", "reserved", "billed"),
    [
        # Shortly before the dear hours, and before a day from which it is dearer
        ((2026, 11, 30, 0, 59, 30), (2026, 11, 30, 1, 0, 30), 4, 4),
        ((2026, 12, 31, 23, 56), (2027, 1, 1, 0, 0), 3, 3),
        # In the dear hours, and amid others
        ((2026, 11, 30, 1, 30), (2026, 11, 30, 1, 31), 4, 4),
        ((2026, 11, 30, 1, 59), (2026, 11, 30, 2, 1), 4, 2),
        ((2026, 11, 30, 12, 0), (2026, 11, 30, 12, 1), 2, 2),
    ],
)
def test_a_call_is_reserved_at_the_dearest_price_that_may_count_when_it_is_answered(
    listing, at, asked, answered, reserved, billed
):
    listing(hours=[(1, 2, "4")], y2020="2", y2027="3")
    at(*asked)
    price = price_of(settings(), "m")
    at(*answered)

    assert price.worst(1000, 1000) == 2000 * reserved
    assert price.micro(ModelUsage(input_new_tokens=1000, output_tokens=1000)) == 2000 * billed


@promise("budget:request-fees")
def test_what_an_endpoint_bills_for_each_request_is_reserved_and_charged_once():
    usage = ModelUsage(calls=1, input_new_tokens=1000, output_tokens=50)
    own = price_of(settings(), "m", Price(input=1, output=2, request=0.012))
    packaged = price_of(settings(), "sonar", None, "https://api.perplexity.ai")

    assert (own.micro(usage), own.worst(4000, 400)) == (12_000 + 1100, 12_000 + 4800)
    assert packaged.micro(usage) == math.ceil(
        calc_price(
            Usage(input_tokens=1000, output_tokens=50), "sonar", provider_api_url="https://api.perplexity.ai"
        ).total_price
        * 1_000_000
    )
    assert packaged.request > 0
    assert packaged.micro(usage) <= packaged.worst(1000, 50)


def tokens_of(provider, name):
    """Return what a provider's own list says of a million tokens in and out of a model."""
    into = calc_price(Usage(input_tokens=1), name, provider_id=provider).total_price * 1_000_000
    both = calc_price(Usage(input_tokens=1, output_tokens=1), name, provider_id=provider).total_price * 1_000_000
    return float(into), float(both - into)


@promise("budget:price-of-endpoint")
@pytest.mark.parametrize(
    ("where", "name", "provider"),
    [
        ("https://api.cerebras.ai/v1", "gpt-oss-120b", "cerebras"),
        ("https://api.z.ai/api/paas/v4", "glm-4.5-air", "zai"),
        ("https://API.Z.AI/api/paas/v4", "glm-4.5-air", "zai"),
        ("https://open.bigmodel.cn/api/paas/v4", "glm-4.5-air", "zhipuai"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", "claude-opus-4-5", "aws"),
        ("https://api.anthropic.com/v1", "claude-opus-4-5", "anthropic"),
        ("https://api.groq.com/openai/v1", "openai/gpt-oss-120b", "groq"),
        ("https://api.openai.com/v1", "gpt-5.4-mini", "openai"),
        ("https://here.openai.azure.com/openai/v1", "gpt-5.4-mini", "openai"),
        # Behind a gateway may be the dearest; and what a provider only names is priced as elsewhere.
        ("http://127.0.0.1:4000/v1", "gpt-oss-120b", "cerebras"),
        ("http://127.0.0.1:4000/v1", "gpt-5.4-mini", "openai"),
        ("https://api.githubcopilot.com", "gpt-4o", "openai"),
        ("https://api.cerebras.ai/v1", "gpt-5.4-mini", "openai"),
        (None, "gpt-5.4-mini", "openai"),
    ],
)
def test_a_model_costs_what_its_own_endpoint_lists(where, name, provider):
    price = price_of(settings(), name, None, where)

    dearest = ModelUsage(input_new_tokens=1_000), ModelUsage(input_new_tokens=1_000, output_tokens=1_000)
    into, both = (price.micro(usage) / 1000 for usage in dearest)
    assert (into, both - into) == pytest.approx(tokens_of(provider, name))
    assert price.worst(1000, 1000) >= price.micro(dearest[1])


@promise("budget:price-of-endpoint")
async def test_the_address_of_a_model_is_that_of_its_entry_or_of_the_default_endpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.yaml").write_text(
        "endpoints: {fast: {base_url: 'https://api.cerebras.ai/v1', key: null}}\n"
        "models: {quick: {endpoint: fast, model: gpt-oss-120b}}\n"
    )
    given = Settings(_env_file=None, models=tmp_path / "models.yaml", openai_base_url="https://api.z.ai/api/paas/v4")
    async with open_endpoints(given) as endpoints:
        listed, other = endpoints.target("quick", listed=True), endpoints.target("glm-4.5-air", listed=False)
    assert listed.price.input == tokens_of("cerebras", "gpt-oss-120b")[0]
    assert other.price.input == tokens_of("zai", "glm-4.5-air")[0]
