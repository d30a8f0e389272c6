"""What a scripted model has charged, by its own account."""

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal

from backstay.testing.reply import Tokens

Prices = Mapping[str, tuple[float, float, float]]
"""By model: USD per million tokens of new input, of cached input, of output."""


class Bill:
    """Add up what was billed, answered or not."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, Tokens]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[str, Tokens]]:
        return iter(self._entries)

    def add(self, model: str, tokens: Tokens) -> None:
        """Charge one request."""
        self._entries.append((model, tokens))

    def micro(self, prices: Prices) -> int:
        """Return the sum in millionths of a US dollar, rounded up once.

        Raises ValueError when a billed model has no price.
        """
        total = sum((_exact(tokens, _price(model, prices)) for model, tokens in self._entries), Decimal(0))
        return int(total.to_integral_value(rounding=ROUND_CEILING))


def _price(model: str, prices: Prices) -> tuple[float, float, float]:
    if model not in prices:
        raise ValueError(f"prices: no price for model {model!r}; add it as (input, cached input, output)")
    return prices[model]


def _exact(tokens: Tokens, price: tuple[float, float, float]) -> Decimal:
    new, cached, output = (Decimal(str(part)) for part in price)
    # A dollar per million tokens is a millionth of a dollar per token.
    return (tokens.prompt - tokens.cached) * new + tokens.cached * cached + tokens.completion * output
