"""Which models a run may ask, each purpose in turn, and what its first calls may cost."""

from dataclasses import dataclass
from typing import Any

from activities.endpoints.endpoints import Target
from activities.model.request import CLOSING_OUTPUT, CLOSING_TOKENS, PERCEPTION_OUTPUT, VERDICT_BYTES
from backstay.responses import ModelChoice
from backstay.task.context import BYTES_PER_TOKEN


@dataclass(frozen=True)
class ChosenModels:
    """Hold the models that a run may ask, each purpose in turn."""

    act: tuple[Target, ...]
    """For its steps; the first of them has a price where the run has a limit in USD."""

    closing: tuple[Target, ...]
    perception: tuple[Target, ...]
    reviewer: tuple[Target, ...]

    def opened(self, first_bytes: int, most_tokens: int) -> dict[str, Any]:
        """Return the fields that say so, and what first calls may cost."""
        closing_bytes = int(CLOSING_TOKENS * BYTES_PER_TOKEN) + 2000
        last = [_choice(target, closing_bytes, CLOSING_OUTPUT) for target in self.closing or self.act]
        return {
            "listed": self.act[0].listed,
            "reserve_micro": _choice(self.act[0], first_bytes, most_tokens).reserve_micro,
            "finalize_micro": max(choice.reserve_micro for choice in last),
            "fallbacks": tuple(_choice(target, first_bytes, most_tokens) for target in self.act[1:]),
            "closing": tuple(last) if self.closing else (),
            "perception": tuple(_choice(target, first_bytes, PERCEPTION_OUTPUT) for target in self.perception),
            "reviewer": tuple(_choice(target, VERDICT_BYTES, PERCEPTION_OUTPUT) for target in self.reviewer),
        }


def _choice(target: Target, request_bytes: int, most_tokens: int) -> ModelChoice:
    reserve = 0 if target.price is None else target.price.worst(request_bytes, most_tokens)
    return ModelChoice(name=target.name, reserve_micro=reserve, listed=target.listed)
