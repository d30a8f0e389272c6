"""Price model calls, always in the activity: price data may change, history may not."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

from genai_prices import Usage as PricedUsage
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelPrice, TieredPrices

from backstay.budgets.budget import MICRO
from backstay.budgets.usage import ModelUsage
from backstay.settings import Price as OwnPrice
from backstay.settings import Settings


@dataclass(frozen=True)
class TokenPrice:
    """Hold US dollars per million tokens; of packaged prices, those of the dearest tier."""

    input: float
    cached: float
    output: float
    cache_write: float
    """For input that the endpoint keeps, so that it is cached later; endpoints bill it at up to twice the input."""
    packaged: str | None = None
    """The model whose packaged price applies, tiers included."""

    def micro(self, usage: ModelUsage) -> int:
        """Return the cost in millionths of a dollar, rounded up."""
        if self.packaged is None:
            return self.by_token(usage)
        # A question of noon may be answered, and billed, at the price of the evening.
        listed = _ListedNow(self.packaged)
        first, below = _first_tier(listed)
        if usage.input_new_tokens + usage.input_cached_tokens < below:
            return first.by_token(usage)
        return math.ceil(listed.price.calc_price(_as_priced(usage))["total_price"] * MICRO)

    def by_token(self, usage: ModelUsage) -> int:
        """Return the same where each token costs this, however many there are."""
        exact = (
            Decimal(str(self.input)) * (usage.input_new_tokens - usage.input_written_tokens)
            + Decimal(str(self.cache_write)) * usage.input_written_tokens
            + Decimal(str(self.cached)) * usage.input_cached_tokens
            + Decimal(str(self.output)) * usage.output_tokens
        )
        return math.ceil(exact)

    def worst(self, request_bytes: int, output_tokens: int) -> int:
        """Return what a request can cost at most: one token per byte, each at the dearest price of input."""
        dearest = max(self.input, self.cached, self.cache_write)
        return math.ceil(Decimal(str(dearest)) * request_bytes + Decimal(str(self.output)) * output_tokens)


def price_of(settings: Settings, model: str, entry: OwnPrice | None = None) -> TokenPrice | None:
    """Return the price of a model, as endpoints call it; None when it is unknown.

    The operator's own prices come first, that of its entry before others, then the packaged data.
    """
    own = entry or settings.prices.get(model)
    if own is not None:
        cached, written = (own.input if given is None else given for given in (own.cached, own.cache_write))
        return TokenPrice(own.input, cached, own.output, written)
    try:
        return replace(_of_many(_ListedNow(model)), packaged=model)
    except LookupError:
        return None


class _ListedNow:
    """Find the packaged price of a model that counts at this moment; two are equal when they are the same listed one.

    So what is computed from it holds until a price with a date begins, an hour of cheaper prices, or another list.
    """

    __slots__ = ("price",)

    def __init__(self, model: str) -> None:
        """Raise LookupError for a model that is not listed."""
        found = get_snapshot().find_provider_model(model, None, None, None)[1]
        self.price: ModelPrice = found.get_prices(datetime.now(UTC))

    def __hash__(self) -> int:
        """Return the same for the same listed price, which is kept as long as this is."""
        return id(self.price)

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same listed price."""
        return isinstance(other, _ListedNow) and other.price is self.price


@lru_cache(maxsize=500)
def _of_many(listed: _ListedNow) -> TokenPrice:
    """Return the price of a million tokens of each kind, which is that of the dearest tier."""
    return _of(listed, MICRO)


@lru_cache(maxsize=500)
def _first_tier(listed: _ListedNow) -> tuple[TokenPrice, float]:
    """Return the price of a million tokens of each kind below a number of tokens of input, and that number."""
    if listed.price.requests_kcount is not None:
        return _of_many(listed), 0
    tiers = [
        tier.start for price in vars(listed.price).values() if isinstance(price, TieredPrices) for tier in price.tiers
    ]
    return _of(listed, 1), min(tiers, default=math.inf)


def _of(listed: _ListedNow, tokens: int) -> TokenPrice:
    """Return what a million tokens of each kind cost where a request has that many."""

    def total(**more: int) -> Decimal:
        usage = PricedUsage(**({"input_tokens": tokens, "output_tokens": 0} | more))
        return listed.price.calc_price(usage)["total_price"] * (MICRO // tokens)

    given = total()
    return TokenPrice(
        float(given),
        float(total(cache_read_tokens=tokens)),
        # The tier of the output, too, is that of the input.
        float(total(output_tokens=tokens) - given),
        float(total(cache_write_tokens=tokens)),
    )


def _as_priced(usage: ModelUsage) -> PricedUsage:
    return PricedUsage(
        input_tokens=usage.input_new_tokens + usage.input_cached_tokens,
        cache_read_tokens=usage.input_cached_tokens,
        cache_write_tokens=usage.input_written_tokens,
        output_tokens=usage.output_tokens,
    )
