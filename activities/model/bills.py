"""The amounts that endpoints have billed beyond the request, by model and price, so that later calls reserve more.

The worker keeps them in a file of its home, where `backstay doctor` shows them and an operator can clear them. A
doubt raises what is reserved, never what is charged: a run is charged what was billed.
"""

import time
from collections.abc import Callable
from pathlib import Path

import structlog

from activities.endpoints.home_file import HomeFile
from backstay.frozen import Frozen

HALF_S = 300.0
"""After so long without a bill, half of a doubt is gone: where nobody can afford the call, no honest bill can come."""
MOST_DOUBTS = 1000
"""Tasks name models, so there could be any number of them."""
FILE = "doubts.json"

log = structlog.get_logger("backstay.model")


class Doubt(Frozen):
    """Hold what one model at one endpoint, at one price, was seen to bill."""

    model: str
    where: str
    factor: float
    """What it billed, as a multiple of the most that the request could cost."""
    billed_micro: int
    most_micro: int
    at: float
    """Unix seconds."""

    def now(self, at: float) -> float:
        """Return what a call may cost now, as a multiple of what it is asked for."""
        return max(1.0, self.factor * 0.5 ** (max(0.0, at - self.at) / HALF_S))

    def told(self, at: float) -> str:
        """Say why more is reserved, and what to do about it."""
        when = time.strftime("%H:%M UTC", time.gmtime(self.at))
        return (
            f"{self.model} at {self.where} billed {self.billed_micro / 1e6:g} USD at {when} for a call that may cost "
            f"{self.most_micro / 1e6:g} USD at most, so {self.now(at):.1f} times as much is reserved for now; if that "
            f"was a mistake: backstay doctor --believe {self.model}"
        )


class Bills:
    """Know how far the bills of each endpoint can be believed."""

    def __init__(self, home: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """Keep doubts in the folder, or in memory only."""
        self._file = HomeFile(None if home is None else home / FILE, Doubt, most=MOST_DOUBTS)
        self._clock = clock

    def doubts(self) -> dict[str, Doubt]:
        """Return what is doubted; an operator may have cleared it meanwhile."""
        return self._file.entries()

    def factor(self, key: str) -> float:
        """Return what a call may cost, as a multiple of what it is asked for."""
        doubt = self.doubts().get(key)
        return 1.0 if doubt is None else doubt.now(self._clock())

    def why(self, key: str) -> str:
        """Say why more is reserved than a call should cost; empty where nothing is doubted."""
        doubt = self.doubts().get(key)
        return "" if doubt is None or doubt.now(self._clock()) <= 1 else doubt.told(self._clock())

    def note(self, key: str, model: str, where: str, *, billed: int, most: int) -> None:
        """Note what an answer was billed that could cost so much at most, had the endpoint kept to what was asked."""
        known, now = self.doubts(), self._clock()
        doubts = dict(known)
        before = doubts.pop(key, None)
        if billed > most > 0:
            factor = max(1.0 if before is None else before.now(now), billed / most)
            made = Doubt(model=model, where=where, factor=factor, billed_micro=billed, most_micro=most, at=now)
            doubts[key] = made
            log.warning("model.overbilled", model=model, billed_micro=billed, most_micro=most, factor=factor)
        elif before is not None and (left := before.now(now) / 2) > 1:
            # An endpoint that keeps to it again is believed again, step by step.
            doubts[key] = before.model_copy(update={"factor": left, "at": now})
        if doubts != known:
            self._file.keep(doubts)

    def believe(self, model: str) -> bool:
        """Clear what is doubted of the bills of a model; return whether anything was."""
        doubts = self.doubts()
        kept = {key: doubt for key, doubt in doubts.items() if doubt.model != model}
        if len(kept) == len(doubts):
            return False
        self._file.keep(kept)
        return True
