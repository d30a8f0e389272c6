"""What endpoints have refused, and how they are spoken to since; the worker keeps it in a file of its home.

`backstay doctor` shows it. What a run has learned stands in its transcript too, so that any worker knows it.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import structlog

from activities.endpoints.dialect import PLAIN, told
from activities.endpoints.endpoints import Target
from backstay.frozen import Frozen

FILE = "dialects.json"
HELD_S = 86_400.0
"""Endpoints change: after a day it is tried again whether they take what they have refused."""
MOST_ENDPOINTS = 1000

log = structlog.get_logger("backstay.model")


class Learned(Frozen):
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


class Lessons:
    """Remember how each model is spoken to."""

    def __init__(self, home: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """Keep it in the folder, or in memory only."""
        self._file = None if home is None else home / FILE
        self._clock = clock
        self._known: dict[str, Learned] = {}
        self._read_at = 0

    def of(self, target: Target) -> dict[str, Any]:
        """Return what was learned of a model lately."""
        found = self._read().get(_key(target))
        return {} if found is None or self._clock() - found.at > HELD_S else found.lesson

    def note(self, target: Target, lesson: Mapping[str, Any], why: str) -> None:
        """Note what was learned besides what is known."""
        known = dict(self._read())
        last = self.of(target)
        before = PLAIN.taught(last)
        together = before.taught(lesson).lesson(PLAIN)
        if together == before.lesson(PLAIN):
            return
        log.info("model.learned", model=target.name, where=target.where, lesson=dict(lesson))
        key = _key(target)
        replaced = known.pop(key, None)
        # What is added does not keep for longer what was there.
        at = replaced.at if replaced is not None and last else self._clock()
        known[key] = Learned(model=target.name, where=target.where, lesson=together, why=why, at=at)
        self._known = {name: known[name] for name in [*known][-MOST_ENDPOINTS:]}
        if self._file is not None:
            _write(self._file, self._known)
            self._read_at = self._file.stat().st_mtime_ns

    def _read(self) -> dict[str, Learned]:
        """Return what is known; another process may have learned more meanwhile."""
        if self._file is None:
            return self._known
        try:
            written = self._file.stat().st_mtime_ns
        except OSError:
            written = 0
        if written != self._read_at:
            self._known, self._read_at = learned_in(self._file), written
        return self._known


def _key(target: Target) -> str:
    return f"{target.where} {target.model}"


def learned_in(file: Path) -> dict[str, Learned]:
    """Return what a file holds; nothing where it cannot be read."""
    try:
        return {key: Learned.model_validate(found) for key, found in json.loads(file.read_bytes()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _write(file: Path, known: Mapping[str, Learned]) -> None:
    unfinished = file.with_name(f".{file.name}-{os.getpid()}")
    unfinished.touch(mode=0o600)
    unfinished.write_text(json.dumps({key: found.plain() for key, found in known.items()}), encoding="utf-8")
    unfinished.replace(file)
