"""Send a request, and send it again in another form where its endpoint does not take it, which costs nothing."""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from activities.endpoints.dialect import PLAIN, Dialect, shipped
from activities.endpoints.endpoints import Endpoints, Target, names_at
from activities.endpoints.pausing import Pausing
from activities.endpoints.usage import usage_in
from activities.media.parts import NOTHING, MediaParts
from activities.model.bills import Bills
from activities.model.completion import (
    ApiRequest,
    ChatRequest,
    Completion,
    ContextTooLong,
    HttpPost,
    RequestRefused,
    TooManyRequests,
    complete,
    say_nothing,
    with_media,
    written,
)
from activities.model.ends import end_of
from activities.model.learned import LearnedDialects
from activities.model.learning import EFFORT, GUESSES, LEAST_ANSWER, LEAST_CONTEXT, NATIVE_GUESSES, Lessons
from activities.model.message import MessageExtras
from activities.model.observations import Observations, Way
from activities.model.opaque import maker
from activities.model.output import WantedOutput
from activities.model.refusals import numbers_in
from activities.model.request import request_for
from activities.model.shaping import LIMIT, shaped
from activities.model.streaming import STREAMED, open_telling
from activities.model.transcript import Transcript
from activities.records import RunHandles
from activities.resources import Resources
from backstay import calls
from backstay.canonical import canonical
from backstay.errors import ModelUnavailable, ReservationTooSmall
from backstay.shown import one_line
from backstay.task.context import BYTES_PER_TOKEN, weight
from toolbox.catalog.catalog import Catalog

HALVINGS = 3
MALFORMED = "malformed_function_call"
_WAYS_ON = frozenset({"", "no_functions", "no_schema", "function_schema", "too_many_functions"})
"""Causes for which a model is asked in the next way."""
_OF_WAYS = frozenset({"", "no_functions", "no_schema"})
"""Causes that say of the way itself that it is refused."""


@dataclass(frozen=True)
class RequestMaterial:
    """Hold what a request is made of."""

    transcript: Transcript
    catalog: Catalog
    held: RunHandles
    wanted: WantedOutput | None
    beside: dict[str, MessageExtras]
    """What was beside the messages of the model that is asked, by ref."""
    media: MediaParts = NOTHING
    """What the model is shown of the pictures and PDFs of the run."""
    results: dict[int, str] = field(default_factory=dict[int, str])
    """What the steps of a plan brought, where its work is to be looked at."""


@dataclass(frozen=True)
class ModelReply:
    """Hold what came back, and how it was asked for."""

    completion: Completion
    worst: int
    """What it may cost at most, by what is known of the endpoint."""
    way: Way
    refused: tuple[Way, ...]
    """The ways of asking that the endpoint has refused before."""
    dropped: int
    """How many items trimming left out."""
    lesson: dict[str, Any]
    """What the run knows of how the endpoint is spoken to."""
    news: dict[str, Any]
    """What of it this request has taught."""
    lesson_at: float
    """When the first of what the run knows was learned: endpoints change, so it counts for a day only."""


@dataclass
class _Trial:
    """Hold how one request is tried."""

    ways: list[Way]
    every: tuple[Way, ...]
    lessons: Lessons
    begun: Dialect
    cap: int
    target: Target
    begun_at: float | None
    """When the run learned the first of what it has begun with; None where it has learned nothing."""
    refused: list[Way] = field(default_factory=list[Way])
    halvings: int = 0
    streamed: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the request held beside, because its answer was to be streamed."""
    first: RequestRefused | None = None
    last: RequestRefused | None = None

    @property
    def dialect(self) -> Dialect:
        return self.lessons.dialect


@dataclass(frozen=True)
class _ReadyRequest:
    """Hold a request that is ready to be sent."""

    request: dict[str, Any]
    """In the engine's own form."""
    written: ApiRequest
    """In the form of its endpoint."""
    post: HttpPost
    size: int
    """In bytes of Chat Completions, by which tokens are told beforehand."""
    media_tokens: int
    """As how many tokens its pictures and PDFs may be counted."""
    honest: int
    worst: int
    dropped: int
    key: str


class Sending:
    """Ask endpoints, and remember how they want to be asked."""

    def __init__(self, resources: Resources, observations: Observations) -> None:
        """Keep what is learned in the worker's home."""
        self.resources = resources
        self.settings = resources.settings
        self.observations = observations
        self.bills = Bills(self.settings.home)
        self.learned = LearnedDialects(self.settings.home)
        self.pausing = Pausing(resources.store.pauses)
        self.forgotten = observations.forgotten
        load_natives(resources.endpoints)

    async def send(self, ask: calls.AskModel, loaded: RequestMaterial, target: Target) -> ModelReply:
        """Send once; only what was refused, and so not billed, is sent again: shorter, or in another form."""
        trial = self._trial(ask, loaded, target)
        while True:
            prepared = await self._prepared(ask, loaded, trial)
            try:
                completion = await self._completed(ask, loaded.held, prepared, trial)
            except TooManyRequests as error:
                await self.pausing.note(_limited(target), float(error.facts["retry_after"]))
                raise
            except RequestRefused as error:
                if not _costs_nothing(error) and error.refusal.cause != "bad_generation":
                    # A request that may have been billed is charged, and not sent again here.
                    raise self._charged(error, trial, prepared) from error
                trial.first, trial.last = trial.first or error, error
                found = await self._after(error, trial, prepared, loaded)
                if found is None:
                    continue
                completion = found
            self._note(ask, trial, prepared, completion)
            lesson = trial.dialect.lesson(self._given(target))
            news = trial.dialect.lesson(trial.begun)
            ways = tuple(trial.refused)
            known: Any = {"lesson": lesson, "news": news, "lesson_at": self._learned_at(trial)}
            return ModelReply(completion, prepared.worst, trial.ways[0], ways, prepared.dropped, **known)

    def _learned_at(self, trial: _Trial) -> float:
        known = (trial.begun_at, self.learned.at(trial.target))
        return min((at for at in known if at is not None), default=self.forgotten.clock())

    def _trial(self, ask: calls.AskModel, loaded: RequestMaterial, target: Target) -> _Trial:
        known = self._given(target).taught(self.learned.of(target))
        own = maker(target)
        kept = (item.get("dialect") for item in reversed(loaded.transcript.items) if item["kind"] == "said")
        last = next((found for found in kept if found is not None and found.get("of") == own), None)
        if last is not None and not self.forgotten.holds(target.name, last.get("at")):
            last = None
        begun = known if last is None else known.taught(last["lesson"])
        ways = self._ways(ask, loaded, target)
        if not begun.answers and ways[0] == "functions":
            ways = self.observations.without_functions(target, loaded.transcript) or ways
        begun_at = None if last is None else float(last["at"])
        guesses = GUESSES if target.api == "chat" else NATIVE_GUESSES
        lessons = Lessons(begun, guesses, given=self._given(target))
        return _Trial(ways, tuple(ways), lessons, begun, self.settings.context_tokens, target, begun_at)

    def _given(self, target: Target) -> Dialect:
        """Return how an endpoint is spoken to before anything was learned."""
        return dialect_of(target)

    def _ways(self, ask: calls.AskModel, loaded: RequestMaterial, target: Target) -> list[Way]:
        if ask.closing:
            return ["free"]
        return self.observations.ways(target, loaded.transcript, perceives=ask.purpose in {"perception", "review"})

    async def _prepared(self, ask: calls.AskModel, loaded: RequestMaterial, trial: _Trial) -> _ReadyRequest:
        target, dialect = trial.target, trial.dialect
        if dialect.context_tokens is not None:
            room = min(dialect.context_tokens, target.context_tokens or dialect.context_tokens)
            target = replace(target, context_tokens=room)
        request, dropped = self._request(ask, loaded, target, trial)
        most = request[LIMIT] if dialect.answer_tokens is None else min(request[LIMIT], dialect.answer_tokens)
        if trial.halvings:
            # The answer that there is to be room for may be what makes it too long.
            most = max(min(most, LEAST_ANSWER), most >> trial.halvings)
        request = request | {LIMIT: most}
        clean, asked, content = self._within_tokens(ask, request, dialect, loaded.media)
        form = await request_in(target, asked, content)
        post, size, seen = form.whole(), len(content), loaded.media.tokens_in(content)
        # An endpoint counts no more than its model can be shown.
        seen = min(seen, target.context_tokens or seen)
        # An endpoint that takes no limit writes as much as its model can.
        most = clean[LIMIT] if dialect.limit != "none" else target.context_tokens or self.settings.context_tokens
        price = target.price
        honest = 0 if price is None else price.worst(len(post.content) + seen, most)
        key = f"{target.where} {target.model} {price}"
        worst = math.ceil(honest * self.bills.factor(key))
        if ask.micro is not None and worst > ask.micro:
            raise _too_small(worst, self.bills.why(key))
        written_whole = with_media(form, loaded.media) if seen else form
        return _ReadyRequest(clean, written_whole, written_whole.whole(), size, seen, honest, worst, dropped, key)

    def _request(
        self, ask: calls.AskModel, loaded: RequestMaterial, target: Target, trial: _Trial
    ) -> tuple[dict[str, Any], int]:
        finish = loaded.wanted.function() if loaded.wanted else None
        options: Any = {"target": target, "cap_tokens": trial.cap, "way": trial.ways[0], "finish": finish}
        options |= {"offered": self.resources.definitions.offered, "beside": loaded.beside, "results": loaded.results}
        options["media"] = loaded.media
        options["redactor"] = loaded.held.redactor if loaded.held.handles else None
        request, dropped = request_for(ask, loaded.transcript, loaded.catalog, self.settings, **options)
        if target.effort is not None and ask.purpose == "step":
            request[EFFORT] = target.effort
        return request, dropped

    def _within_tokens(
        self, ask: calls.AskModel, request: dict[str, Any], dialect: Dialect, media: MediaParts
    ) -> tuple[dict[str, Any], dict[str, Any], bytes]:
        """Return the request with no longer an answer than the token limit holds beside it, shaped and written.

        Raises ReservationTooSmall where it holds no answer that is worth the question.
        """
        asked = shaped(request, dialect)
        content = written(asked)
        if ask.tokens_left is None:
            return request, asked, content
        most = request[LIMIT]
        told = self.observations.tokens_of(ask.model, len(content)) + media.tokens_in(content)
        least = min(most, LEAST_ANSWER)
        if ask.tokens_left < told + least:
            said = f"the call may take {told + least} tokens: {told} to ask, {least} to answer"
            raise ReservationTooSmall(said, asks_tokens=told, answer_tokens=least)
        if most <= ask.tokens_left - told:
            return request, asked, content
        request = request | {LIMIT: ask.tokens_left - told}
        asked = shaped(request, dialect)
        return request, asked, written(asked)

    async def _completed(
        self, ask: calls.AskModel, held: RunHandles, prepared: _ReadyRequest, trial: _Trial
    ) -> Completion:
        """Send a request once; where somebody watches the run, what the model says is passed on while it arrives.

        An endpoint that answers in streams only is asked for one in any case.
        """
        target, way, dialect = trial.target, trial.ways[0], trial.dialect
        trial.streamed = {}
        await self.pausing.wait(_limited(target))
        client = await target.client.opened()
        whole = partial(complete, client, prepared.post, listed=target.listed)
        async with open_telling(self.resources.store.deltas, ask, held.redactor) as telling:
            # Words are only told where they are for people: not what is to be read as JSON.
            is_said = ask.closing or (way == "functions" and ask.purpose == "step")
            may_stream = dialect.stream or self.observations.may_stream(ask.model)
            is_told = telling is not None and is_said and may_stream
            if not is_told and not dialect.stream:
                return await whole()
            say = telling.say if telling is not None and is_told else say_nothing
            streamed = prepared.written.streamed(dialect.without)
            # A dialect of streams adds this itself.
            trial.streamed = {} if dialect.stream else STREAMED
            try:
                completion = await complete(client, streamed, listed=target.listed, say=say)
            except RequestRefused as error:
                if not _may_be_the_stream(error, dialect):
                    raise
                # A refusal of this request is none of a stream.
                trial.streamed = {}
                completion = await whole()
                self.observations.note_unstreamed(ask.model)
                return completion
            is_broken = end_of(completion.finish_reason, completion.message) == "broken"
            if not (dialect.stream or completion.reported or is_broken):
                self.observations.note_unstreamed(ask.model)
            return completion

    async def _after(
        self, error: RequestRefused, trial: _Trial, prepared: _ReadyRequest, loaded: RequestMaterial
    ) -> Completion | None:
        """Learn from a refusal; None where another form is to be sent, else what stands for an answer.

        Raises the refusal where there is no other form.
        """
        refusal, request = error.refusal, {**prepared.request, **trial.streamed}
        if refusal.cause == "bad_generation":
            message = {"role": "assistant", "content": None}
            usage, reported = usage_in(refusal.data)
            return Completion(message, MALFORMED, usage, reported=reported)
        if trial.lessons.leaves_out(refusal, request):
            return None
        if isinstance(error, ContextTooLong):
            self._shorten(error, trial, request)
            return None
        if trial.lessons.learns(refusal, request):
            return None
        if refusal.cause == "form" and self._as_json(trial, loaded, request):
            return None
        if refusal.cause in _WAYS_ON and not trial.lessons.guessed and self._in_next_way(trial, loaded, error):
            return None
        if not refusal.cause and trial.lessons.learns(refusal, request, guess=True):
            # Not the way was refused.
            trial.ways = list(trial.every)
            trial.refused.clear()
            return None
        first = trial.first or error
        raise await with_names(first, trial.target) if first.refusal.cause == "unknown_model" else first

    def _as_json(self, trial: _Trial, loaded: RequestMaterial, request: dict[str, Any]) -> bool:
        """Ask for JSON where an endpoint takes the answers of tools in no form, though it took functions."""
        if trial.ways[0] != "functions" or all(message["role"] != "tool" for message in request["messages"]):
            return False
        ways = self.observations.without_functions(trial.target, loaded.transcript)
        if ways:
            # In which form they were refused says nothing of the next one.
            trial.lessons.dialect = (trial.lessons.sure or trial.begun).taught({"answers": False})
            trial.ways = ways
        return bool(ways)

    def _in_next_way(self, trial: _Trial, loaded: RequestMaterial, error: RequestRefused) -> bool:
        way = trial.ways[0]
        if error.refusal.cause == "no_functions" and way == "functions" and len(trial.ways) == 1:
            # It has taken functions before; a gateway may lead to another model now.
            trial.ways += self.observations.without_functions(trial.target, loaded.transcript)
        if len(trial.ways) == 1:
            return False
        if error.refusal.cause in _OF_WAYS:
            trial.refused.append(way)
        trial.ways.pop(0)
        return True

    def _shorten(self, error: ContextTooLong, trial: _Trial, request: dict[str, Any]) -> None:
        if trial.halvings == HALVINGS:
            raise error
        if (known := _room_told(error, trial, request)) is not None:
            trial.lessons.dialect = trial.dialect.taught({"context_tokens": known})
        # The cap itself may lie far above what there is to cut.
        trial.cap = min(trial.cap, int(weight(request["messages"]) / BYTES_PER_TOKEN)) // 2
        trial.halvings += 1

    def _charged(
        self, error: RequestRefused, trial: _Trial, prepared: _ReadyRequest
    ) -> RequestRefused | ModelUnavailable:
        """Return the error for a refusal that may have been billed: one to try again where the next request is shorter.

        It is tried again by the run, which reserves for it anew.
        """
        known = _room_told(error, trial, prepared.request) if isinstance(error, ContextTooLong) else None
        if known is None:
            return error
        self.learned.note(trial.target, {"context_tokens": known}, error.refusal.told)
        return ModelUnavailable(str(error), **error.facts)

    def _note(self, ask: calls.AskModel, trial: _Trial, prepared: _ReadyRequest, completion: Completion) -> None:
        """Remember what an answer has shown of its endpoint."""
        for way in trial.refused:
            self.observations.note_refused(ask.model, way)
        target, usage = trial.target, completion.usage
        # One picture that cannot be read says nothing of those of other runs.
        unseeing = {"images", "files"}
        lesson = {name: value for name, value in trial.dialect.lesson(trial.begun).items() if name not in unseeing}
        if lesson and trial.last is not None:
            self.learned.note(target, lesson, trial.last.refusal.told)
        if not completion.reported or completion.finish_reason == MALFORMED:
            return
        counted = usage.input_cached_tokens + usage.input_new_tokens
        if not prepared.media_tokens:
            # How many of them are those of a picture, nobody says.
            self.observations.note_tokens(ask.model, prepared.size, counted)
        if target.price is not None:
            billed = target.price.micro(usage)
            self.bills.note(prepared.key, target.name, target.where, billed=billed, most=prepared.honest)


async def request_in(target: Target, asked: dict[str, Any], content: bytes) -> ApiRequest:
    """Return a request in the form of the API that its endpoint speaks; `content` is it as Chat Completions has it."""
    if target.api == "chat":
        return ChatRequest(asked, content)
    return await native_model(target).request(asked)


def load_natives(endpoints: Endpoints) -> None:
    """Load what native APIs need before a run waits for it."""
    for target in endpoints.natives():
        native_model(target)


def native_model(target: Target) -> Any:
    """Return what writes requests for a native API."""
    from activities.model.native.writing import native  # noqa: PLC0415 - only who uses it pays for the library

    return native(target.api, target.model)


def dialect_of(target: Target) -> Dialect:
    """Return how an endpoint is spoken to before anything was learned; vendors' own APIs are not dialects."""
    return (shipped(target.where) if target.api == "chat" else PLAIN).taught(target.dialect)


def _limited(target: Target) -> str:
    """Return whose requests an endpoint counts together: those for one model, with one key."""
    return f"{target.name} at {target.where}"


def _room_told(error: ContextTooLong, trial: _Trial, request: dict[str, Any]) -> int | None:
    """Return how many tokens an endpoint says that the model takes, where that is less than was known."""
    told = numbers_in(error.refusal, canonical(request)).get("context_tokens")
    room = trial.dialect.context_tokens or trial.target.context_tokens
    return told if told is not None and told >= LEAST_CONTEXT and (room is None or told < room) else None


def _may_be_the_stream(error: RequestRefused, dialect: Dialect) -> bool:
    """Return whether it may be the stream that an endpoint does not take, though it may take the rest."""
    said = error.refusal.text.lower()
    if dialect.stream or not _costs_nothing(error):
        return False
    if "stream_options" in said and "stream_options" not in dialect.without:
        # It is asked again for a stream, and not what it used.
        return False
    return not error.refusal.cause or "stream" in said


def _costs_nothing(error: RequestRefused) -> bool:
    return error.facts.get("unbilled") is True


async def with_names(error: RequestRefused, target: Target) -> RequestRefused:
    """Return the refusal of a model with the names of those that its endpoint has."""
    names = await names_at(target)
    if not names:
        return error
    found = RequestRefused(f"{error}; it has {one_line(', '.join(names), 400)}", **error.facts)
    found.refusal = error.refusal
    return found


def _too_small(needed: int, why: str) -> ReservationTooSmall:
    """Return the refusal of a call that may cost more than was reserved, with the cause where it is a doubt."""
    said = f"the call may cost {needed / 1e6:.6f} USD; reserve that much{f' ({why})' if why else ''}"
    return ReservationTooSmall(said, needed=needed, **({"why": why} if why else {}))
