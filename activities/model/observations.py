"""The facts that the answers of the endpoint have shown of its models, for as long as the worker lives."""

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog

from activities.endpoints.endpoints import Target
from activities.model.learned import ForgottenModels
from activities.model.transcript import Transcript
from system.clock import uptime

RUNS = 2
"""In how many runs a model must have answered as JSON what it did not call, before others begin with JSON."""
CHATTY = 3
"""How many first answers in a row without a call make it doubtful again that a model calls functions."""
PROBE_EVERY = 20
"""One in this many runs begins with functions all the same, to find out whether they work by now."""
DOUBTED_S = 3600
"""How long a refusal is held against an endpoint."""
MOST_MODELS = 1000
"""Tasks name models, so there could be any number of them."""
TOKENS_PER_BYTE = 1 / 3
"""What a request is taken to hold until an endpoint has counted more: English and JSON hold about a quarter."""
Way = Literal["functions", "strict", "loose", "free"]
"""How a model is asked: for function calls, or for JSON by a strict schema, by a loose one, or by the prompt alone."""
Form = Literal["text", "json"]
"""How a model answered that was to call functions: in plain text, or, when asked for that, in JSON."""

_SCHEMAS: dict[bool | Literal["auto"], tuple[Way, ...]] = {
    "auto": ("strict", "loose"),
    True: ("strict",),
    False: ("loose",),
}
"""The ways of asking by a schema, by what models.yaml says of strict ones."""

log = structlog.get_logger("backstay.model")


@dataclass
class ModelObservation:
    """Hold what is known of one model."""

    calls_functions: bool = False
    refuses: dict[Way, float] = field(default_factory=dict)
    """The ways of asking that the endpoint has refused, and until when that is held against it."""
    texts: int = 0
    """How many first answers have been text since the model last called a function."""
    json_runs: set[str] = field(default_factory=set)
    """Runs in which JSON worked where functions were ignored; no more than count."""
    begun: int = 0
    whole_until: float = 0.0
    """Until when it is asked for no stream, because one was refused or did not say what it used."""
    tokens_per_byte: float = TOKENS_PER_BYTE
    """The most that it has counted for a request."""
    since: float = 0.0
    """Unix seconds."""


class Observations:
    """Choose by evidence how a model is asked."""

    def __init__(self, clock: Callable[[], float] = uptime, forgotten: ForgottenModels | None = None) -> None:
        """Know nothing; a lesson that an operator tells the workers to forget is forgotten."""
        self._clock = clock
        self.forgotten = forgotten or ForgottenModels()
        self._models: OrderedDict[str, ModelObservation] = OrderedDict()

    def of(self, model: str) -> ModelObservation:
        """Return what is known of a model."""
        seen = self._models.get(model)
        if seen is None or seen.since <= self.forgotten.at(model):
            self._models[model] = ModelObservation(since=self.forgotten.clock())
        self._models.move_to_end(model)
        while len(self._models) > MOST_MODELS:
            self._models.popitem(last=False)
        return self._models[model]

    def ways(self, target: Target, transcript: Transcript, *, perceives: bool = False) -> list[Way]:
        """Return how to ask a model, what is tried first first; a way that is refused, unbilled, leads to the next.

        A run's findings are in its transcript too, where they survive the worker.
        """
        last = self._last_of(target, transcript)
        refused = self._refused(target.name) | set(last.get("refuses", ()))
        schemas: list[Way] = [way for way in _SCHEMAS[target.strict] if way not in refused]
        if perceives or target.tools is False:
            return [*schemas, "free"]
        if target.tools is True:
            return ["functions"]
        if schemas and self._asks_as_json(target.name, last):
            return [*schemas, "free" if "functions" in refused else "functions"]
        if self.of(target.name).calls_functions or (last and "form" not in last):
            return ["functions"]
        # Some endpoints do not ignore functions, but refuse them.
        first: list[Way] = [] if "functions" in refused else ["functions"]
        return [*first, *schemas, "free"]

    def without_functions(self, target: Target, transcript: Transcript) -> list[Way]:
        """Return how to ask a model for JSON whose endpoint suddenly takes no functions."""
        if target.tools is True:
            return []
        last = self._last_of(target, transcript)
        refused = self._refused(target.name) | set(last.get("refuses", ()))
        return [*(way for way in _SCHEMAS[target.strict] if way not in refused), "free"]

    def refused_in(self, target: Target, transcript: Transcript) -> tuple[set[Way], float]:
        """Return what a run still holds against an endpoint, and since when."""
        last = self._last_of(target, transcript)
        return set(last.get("refuses", ())), last.get("refused_at", self.forgotten.clock())

    def _last_of(self, target: Target, transcript: Transcript) -> Mapping[str, Any]:
        """Return what the run keeps of the last answer of a model, without what was refused too long ago."""
        last = transcript.last_said(target.by) or {}
        if "refuses" not in last or self.forgotten.holds(target.name, last.get("refused_at")):
            return last
        # An answer of the model to another way of asking says no more of functions.
        return {name: said for name, said in last.items() if name not in {"refuses", "form"}}

    def note_refused(self, model: str, way: Way) -> None:
        """Note that the endpoint has refused to be asked so."""
        log.info("model.refuses", model=model, way=way)
        self.of(model).refuses[way] = self._clock() + DOUBTED_S

    def _refused(self, model: str) -> set[Way]:
        return {way for way, until in self.of(model).refuses.items() if self._clock() < until}

    def _asks_as_json(self, model: str, last: Mapping[str, Any]) -> bool:
        """Return whether a run asks for actions as JSON, instead of offering functions.

        A run whose model wrote text asks for JSON at its next step. Other runs begin so only where this has worked in
        several of them, and the model has never called a function.
        """
        seen = self.of(model)
        if seen.calls_functions and seen.texts < CHATTY:
            return False
        if last:
            return "form" in last
        if len(seen.json_runs) < RUNS:
            return False
        seen.begun += 1
        return seen.begun % PROBE_EVERY != 0

    def may_stream(self, model: str) -> bool:
        """Return whether a model may be asked for a stream, at no other cost than for a whole answer."""
        return self._clock() >= self.of(model).whole_until

    def note_unstreamed(self, model: str) -> None:
        """Note that the endpoint streams no answers, or does not say of streamed ones what they used."""
        log.info("model.streams_not", model=model)
        self.of(model).whole_until = self._clock() + DOUBTED_S

    def tokens_of(self, model: str, size: int) -> int:
        """Return how many tokens a request of the given number of bytes is expected to hold at most."""
        return math.ceil(self.of(model).tokens_per_byte * size)

    def note_tokens(self, model: str, size: int, counted: int) -> None:
        """Note how many tokens the endpoint has counted for a request; no token is shorter than a byte."""
        seen = self.of(model)
        seen.tokens_per_byte = min(1.0, max(seen.tokens_per_byte, counted / size))

    def note_form(self, model: str, run: str, form: Form | None) -> None:
        """Note how a run's model has answered; None: it called functions."""
        seen = self.of(model)
        match form:
            case None:
                seen.calls_functions, seen.texts = True, 0
                seen.refuses.pop("functions", None)
                seen.json_runs.clear()
            case "text":
                seen.texts += 1
                if seen.texts % CHATTY == 0:
                    # An endpoint that refused JSON once may take it by now.
                    seen.refuses.clear()
            case "json":
                if len(seen.json_runs) < RUNS:
                    seen.json_runs.add(run)
