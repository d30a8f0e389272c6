"""Make the mailbox fail on demand, to test its clients. Each fault happens once per database, or is bounded.

MAILBOX_DIE_BEFORE_SEND=n   record the n-th request to send, then die before the mail is sent
MAILBOX_DIE_AFTER_SEND=n    send the n-th mail, then die before answering
MAILBOX_HANG_ON_SEND=n      send the n-th mail, then do not answer for ten minutes
MAILBOX_SLOW_SECONDS=x      delay every call by x seconds, at most 60
MAILBOX_TODAY=2026-01-31    use this date as today, so that a test does not depend on midnight

Requests and mails are counted in the database from 1, so a restarted server does not fail again.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

_LONGEST_SILENCE_S = 600
_LONGEST_DELAY_S = 60


@dataclass(frozen=True)
class Faults:
    """Hold the switches; all are off by default."""

    die_before_send: int = 0
    die_after_send: int = 0
    hang_on_send: int = 0
    slow_seconds: float = 0
    pinned_day: date | None = None

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Faults":
        """Read the switches from the environment. Raises ValueError with the name of a variable that is not valid."""

        def number(name: str) -> float:
            text = environment.get(name) or "0"
            try:
                return float(text)
            except ValueError:
                raise ValueError(f"{name}: {text!r} is not a number; give a number or remove it") from None

        day = environment.get("MAILBOX_TODAY")
        return cls(
            die_before_send=int(number("MAILBOX_DIE_BEFORE_SEND")),
            die_after_send=int(number("MAILBOX_DIE_AFTER_SEND")),
            hang_on_send=int(number("MAILBOX_HANG_ON_SEND")),
            slow_seconds=min(max(number("MAILBOX_SLOW_SECONDS"), 0), _LONGEST_DELAY_S),
            pinned_day=date.fromisoformat(day) if day else None,
        )

    def today(self) -> date:
        """Return today's date, or the pinned one."""
        return self.pinned_day or datetime.now(UTC).date()

    async def on_request(self) -> None:
        """Delay a call."""
        await asyncio.sleep(self.slow_seconds)

    def before_send(self, request: int) -> None:
        """Exit the process if this is the chosen request."""
        if request == self.die_before_send:
            os._exit(70)

    async def after_send(self, mail: int) -> None:
        """Exit the process or hang if this is the chosen mail."""
        if mail == self.die_after_send:
            os._exit(71)
        if mail == self.hang_on_send:
            await asyncio.sleep(_LONGEST_SILENCE_S)
