"""Price model calls, always in the activity: price data may change, history may not."""

import math
from dataclasses import dataclass
from decimal import Decimal

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

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
        if self.packaged is not None:
            return math.ceil(calc_price(_as_priced(usage), self.packaged).total_price * MICRO)
        return self._at_most(usage)

    def _at_most(self, usage: ModelUsage) -> int:
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
        # A million tokens of each kind: dear enough that nothing is lost to rounding.
        fresh = calc_price(PricedUsage(input_tokens=MICRO, output_tokens=0), model).total_price
        cached = calc_price(
            PricedUsage(input_tokens=MICRO, cache_read_tokens=MICRO, output_tokens=0), model
        ).total_price
        written = calc_price(
            PricedUsage(input_tokens=MICRO, cache_write_tokens=MICRO, output_tokens=0), model
        ).total_price
        output = calc_price(PricedUsage(input_tokens=0, output_tokens=MICRO), model).total_price
    except LookupError:
        return None
    return TokenPrice(float(fresh), float(cached), float(output), float(written), packaged=model)


def _as_priced(usage: ModelUsage) -> PricedUsage:
    return PricedUsage(
        input_tokens=usage.input_new_tokens + usage.input_cached_tokens,
        cache_read_tokens=usage.input_cached_tokens,
        cache_write_tokens=usage.input_written_tokens,
        output_tokens=usage.output_tokens,
    )
