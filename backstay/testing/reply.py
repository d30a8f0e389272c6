"""The reply of a scripted model to one request."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Tokens(BaseModel):
    """Count the tokens of one request and its answer; cached tokens are part of `prompt`, reasoning of `completion`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: int = Field(default=0, ge=0)
    cached: int = Field(default=0, ge=0)
    completion: int = Field(default=0, ge=0)
    reasoning: int = Field(default=0, ge=0)

    def wire(self) -> dict[str, Any]:
        """Return the `usage` object of Chat Completions."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning},
        }


class Reply(BaseModel):
    """Say what is answered, what it costs, and how the answer goes wrong if it does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str | None = None
    """The message's content; with an error status, the error's message."""
    calls: Sequence[tuple[str, dict[str, Any] | str]] = ()
    """Function calls: a name and arguments; a string is sent as it is, malformed or not."""
    usage: Tokens | None = None
    """What is billed and reported; by default what the sizes of request and answer give."""
    reports_usage: bool = True
    """Whether the answer carries its usage."""
    finish_reason: str | None = None
    """By default `tool_calls`, `stop`, or `length` when the answer had to be cut."""
    status: int = Field(default=200, ge=100, le=599)
    code: str | None = None
    """The error's code, such as `context_length_exceeded` or `insufficient_quota`."""
    headers: dict[str, str] = Field(default_factory=dict)
    body: bytes | None = None
    """Answered instead of anything above, such as a page of HTML."""
    delay_s: float = Field(default=0, ge=0, le=600)
    """How long the answer takes after it was billed."""
    bill: bool | None = None
    """Whether this costs money; by default as real services do: everything but a 4xx other than 408."""
    piece: int = Field(default=0, ge=0)
    """How many characters of a string or of arguments come at once when the answer is streamed; 0: all of them."""
    pause_s: float = Field(default=0, ge=0, le=600)
    """How long a streamed answer pauses before each further piece."""
    then: Literal["answer", "drop", "cut", "hang"] = "answer"
    """answer it, close the socket without a word or amid the answer, or hold the socket open in silence."""

    @property
    def billed(self) -> bool:
        """Return whether this reply is put on the bill."""
        if self.bill is not None:
            return self.bill
        return not 400 <= self.status < 500 or self.status == 408


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
        total = Decimal(0)
        for model, tokens in self._entries:
            if model not in prices:
                raise ValueError(f"prices: no price for model {model!r}; add it as (input, cached input, output)")
            new, cached, output = (Decimal(str(part)) for part in prices[model])
            # A dollar per million tokens is a millionth of a dollar per token.
            total += (tokens.prompt - tokens.cached) * new + tokens.cached * cached + tokens.completion * output
        return int(total.to_integral_value(rounding=ROUND_CEILING))
