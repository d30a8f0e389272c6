"""Price model calls, always in the activity: price data may change, history may not."""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Generic, TypeVar

from genai_prices import Usage as PricedUsage
from genai_prices.data_snapshot import DataSnapshot, get_snapshot
from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

from backstay.budgets.budget import MICRO
from backstay.budgets.usage import ModelUsage
from backstay.settings import Price as OwnPrice
from backstay.settings import Settings

OPENAI = "https://api.openai.com/v1"
"""The endpoint of those who name none."""
AHEAD_MIN = 10
"""A price that begins within these minutes may be that of the answer: an endpoint may take minutes for one."""
_Kept = TypeVar("_Kept")


@dataclass(frozen=True)
class TokenPrice:
    """Hold US dollars per million tokens; of packaged prices, those of the dearest tier that may count soon."""

    input: float
    cached: float
    output: float
    cache_write: float
    """For input that the endpoint keeps, so that it is cached later; endpoints bill it at up to twice the input."""
    request: float = 0
    """For each request, whatever its tokens."""
    packaged: str | None = None
    """The model whose packaged price applies, tiers included."""
    where: str | None = None
    """The address of the endpoint that bills it."""

    def micro(self, usage: ModelUsage) -> int:
        """Return the cost in millionths of a dollar, rounded up."""
        if self.packaged is None:
            return self.by_token(usage)
        # A question of noon may be answered, and billed, at the price of the evening.
        now = datetime.now(UTC)
        return max(_billed(each.get_prices(now), usage) for each in _listed(self.packaged, self.where))

    def by_token(self, usage: ModelUsage) -> int:
        """Return the same where each token costs this, however many there are."""
        exact = (
            Decimal(str(self.input)) * (usage.input_new_tokens - usage.input_written_tokens)
            + Decimal(str(self.cache_write)) * usage.input_written_tokens
            + Decimal(str(self.cached)) * usage.input_cached_tokens
            + Decimal(str(self.output)) * usage.output_tokens
            + Decimal(str(self.request)) * MICRO
        )
        return math.ceil(exact)

    def worst(self, request_bytes: int, output_tokens: int) -> int:
        """Return what a request can cost at most: one token per byte, each at the dearest price of input."""
        dearest = Decimal(str(max(self.input, self.cached, self.cache_write)))
        written = Decimal(str(self.output)) * output_tokens
        return math.ceil(dearest * request_bytes + written + Decimal(str(self.request)) * MICRO)


def price_of(
    settings: Settings, model: str, entry: OwnPrice | None = None, where: str | None = None
) -> TokenPrice | None:
    """Return the price of a model, as the endpoint at an address calls it; None when it is unknown.

    The operator's own prices come first, that of its entry before others, then the packaged data: what the provider at
    that address lists, or the dearest of all who list the name, where the address is that of no provider or it does not
    list the model.
    """
    own = entry or settings.prices.get(model)
    if own is not None:
        cached, written = (own.input if given is None else given for given in (own.cached, own.cache_write))
        return TokenPrice(own.input, cached, own.output, written, own.request)
    try:
        listed = _listed(model, where)
    except LookupError:
        return None
    soon = frozenset(_Same(price) for each in listed for price in _soon(each))
    return replace(_dearest(soon), packaged=model, where=where)


class _Same(Generic[_Kept]):
    """Keep what has no hash; two are equal when they keep the same.

    So what is computed from a listed price holds until one with a date begins, an hour of other prices, or another
    list.
    """

    __slots__ = ("kept",)

    def __init__(self, kept: _Kept) -> None:
        """Keep it as long as this is kept."""
        self.kept = kept

    def __hash__(self) -> int:
        """Return the same for the same."""
        return id(self.kept)

    def __eq__(self, other: object) -> bool:
        """Return whether both keep the same."""
        return isinstance(other, _Same) and other.kept is self.kept


def _listed(model: str, where: str | None) -> Sequence[ModelInfo]:
    """Return the entries of the packaged list that a model may be; raises LookupError where there are none."""
    return _found(_Same(get_snapshot()), model, where)


@lru_cache(maxsize=500)
def _found(snapshot: _Same[DataSnapshot], model: str, where: str | None) -> Sequence[ModelInfo]:
    find = snapshot.kept.find_provider_model
    if where is not None:
        with contextlib.suppress(LookupError):
            found = find(model, None, None, where.lower())[1]
            if _has_price(found):
                return (found,)
    first = find(model, None, None, None)[1]
    # Any provider that has it may be behind a gateway.
    others = [provider.find_model(model) for provider in snapshot.kept.providers]
    return (first, *(other for other in others if other is not None and _has_price(other)))


def _has_price(model: ModelInfo) -> bool:
    """Return whether tokens are priced: of some that come with a subscription only the names are listed."""
    price = vars(model.get_prices(datetime.now(UTC)))
    return price.get("input_mtok") is not None and price.get("output_mtok") is not None


def _soon(model: ModelInfo) -> list[ModelPrice]:
    """Return the prices that count now or may count when the answer comes: by day and by hour they differ."""
    if isinstance(model.prices, ModelPrice):
        return [model.prices]
    now = datetime.now(UTC)
    return [model.get_prices(now + timedelta(minutes=ahead)) for ahead in range(AHEAD_MIN + 1)]


@lru_cache(maxsize=500)
def _dearest(prices: frozenset[_Same[ModelPrice]]) -> TokenPrice:
    """Return the highest price of a million tokens of each kind, which is that of the dearest tier."""
    each = [_of(price.kept, MICRO) for price in prices]
    return TokenPrice(*(max(amounts) for amounts in zip(*(astuple(price)[:5] for price in each), strict=True)))


def _billed(price: ModelPrice, usage: ModelUsage) -> int:
    """Return the cost of what was used at a listed price, in millionths of a dollar."""
    first, below = _first_tier(_Same(price))
    if usage.input_new_tokens + usage.input_cached_tokens < below:
        return first.by_token(usage)
    return math.ceil(price.calc_price(_as_priced(usage))["total_price"] * MICRO)


@lru_cache(maxsize=500)
def _first_tier(price: _Same[ModelPrice]) -> tuple[TokenPrice, float]:
    """Return the price of a million tokens of each kind below a number of tokens of input, and that number."""
    tiers = [tier.start for each in vars(price.kept).values() if isinstance(each, TieredPrices) for tier in each.tiers]
    return _of(price.kept, 1), min(tiers, default=math.inf)


def _of(price: ModelPrice, tokens: int) -> TokenPrice:
    """Return what a million tokens of each kind cost where a request has that many, and what the request costs."""
    fee = price.calc_price(PricedUsage(input_tokens=0, output_tokens=0))["total_price"]

    def total(**more: int) -> Decimal:
        usage = PricedUsage(**({"input_tokens": tokens, "output_tokens": 0} | more))
        return (price.calc_price(usage)["total_price"] - fee) * (MICRO // tokens)

    given = total()
    return TokenPrice(
        float(given),
        float(total(cache_read_tokens=tokens)),
        # The tier of the output, too, is that of the input.
        float(total(output_tokens=tokens) - given),
        float(total(cache_write_tokens=tokens)),
        float(fee),
    )


def _as_priced(usage: ModelUsage) -> PricedUsage:
    return PricedUsage(
        input_tokens=usage.input_new_tokens + usage.input_cached_tokens,
        cache_read_tokens=usage.input_cached_tokens,
        cache_write_tokens=usage.input_written_tokens,
        output_tokens=usage.output_tokens,
    )
