"""The lessons from refusals of endpoints, and how they are spoken to since; the worker keeps them in a file.

`backstay doctor` shows them. A run's lessons are in its transcript too, so that any worker knows them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import structlog

from activities.endpoints.dialect import PLAIN, told
from activities.endpoints.endpoints import Target
from activities.endpoints.home_file import HomeFile
from backstay.frozen import Frozen

FILE = "dialects.json"
FORGOTTEN = "forgotten.json"
HELD_S = 86_400.0
"""Endpoints change: after a day it is tried again whether they take what they have refused."""
MOST_ENDPOINTS = 1000

log = structlog.get_logger("backstay.model")


class EndpointKnowledge(Frozen):
    """Hold what one model at one endpoint has taught."""

    model: str
    where: str
    lesson: dict[str, Any]
    """The fields of its dialect, as models.yaml would name them."""
    why: str
    """What the endpoint said."""
    at: float
    """Unix seconds."""

    def told(self) -> str:
        """Say what was learned, and from which words."""
        when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self.at))
        return f"{self.model} at {self.where} is asked with {told(self.lesson)} since {when}{self.why}"


class LearnedDialects:
    """Remember how each model is spoken to."""

    def __init__(self, home: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """Keep it in the folder, or in memory only."""
        self._file = HomeFile(None if home is None else home / FILE, EndpointKnowledge, most=MOST_ENDPOINTS)
        self._clock = clock

    def lately(self) -> Iterator[EndpointKnowledge]:
        """Yield what was learned lately, of every model."""
        return (found for found in self._file.entries().values() if self._clock() - found.at <= HELD_S)

    def of(self, target: Target) -> dict[str, Any]:
        """Return what was learned of a model lately."""
        found = self._file.entries().get(_key(target))
        return {} if found is None or self._clock() - found.at > HELD_S else found.lesson

    def at(self, target: Target) -> float | None:
        """Return when the first of what still counts was learned of a model; None where nothing does."""
        found = self._file.entries().get(_key(target))
        return found.at if found is not None and self.of(target) else None

    def forget(self, model: str) -> bool:
        """Forget what was learned of a model, at whatever endpoint; return whether anything was."""
        known = self._file.entries()
        kept = {key: found for key, found in known.items() if found.model != model}
        if len(kept) == len(known):
            return False
        self._file.keep(kept)
        return True

    def note(self, target: Target, lesson: Mapping[str, Any], why: str) -> None:
        """Note what was learned besides what is known; a lesson that names a default undoes an older one."""
        known = dict(self._file.entries())
        last = self.of(target)
        before = PLAIN.taught(last)
        together = before.taught(lesson).lesson(PLAIN)
        if together == before.lesson(PLAIN):
            return
        log.info("model.learned", model=target.name, where=target.where, lesson=dict(lesson))
        key = _key(target)
        replaced = known.pop(key, None)
        if together:
            # A new lesson does not keep the older ones for longer.
            at = replaced.at if replaced is not None and last else self._clock()
            known[key] = EndpointKnowledge(model=target.name, where=target.where, lesson=together, why=why, at=at)
        self._file.keep(known)


class ForgetMark(Frozen):
    """Hold when an operator told the workers of a home to forget what a model has shown."""

    model: str
    at: float
    """Unix seconds."""


class ForgottenModels:
    """Know which models are to be asked as at first, whatever a worker or a run has learned before."""

    def __init__(self, home: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """Keep it in the folder, or in memory only."""
        self._file = HomeFile(None if home is None else home / FORGOTTEN, ForgetMark, most=MOST_ENDPOINTS)
        self.clock = clock

    def at(self, model: str) -> float:
        """Return when a model was last forgotten; 0 where it never was."""
        found = self._file.entries().get(model)
        return 0.0 if found is None else found.at

    def holds(self, model: str, learned_at: Any) -> bool:
        """Return whether what was learned of a model then still counts."""
        if not isinstance(learned_at, int | float) or self.clock() - learned_at > HELD_S:
            return False
        return learned_at > self.at(model)

    def forget(self, model: str) -> None:
        """Tell the workers of this home to forget what the model has shown until now."""
        known = {name: found for name, found in self._file.entries().items() if name != model}
        self._file.keep({**known, model: ForgetMark(model=model, at=self.clock())})


def _key(target: Target) -> str:
    return f"{target.where} {target.model}" + ("" if target.api == "chat" else f" {target.api}")
