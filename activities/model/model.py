"""Ask the model once: render the request, check the reservation, send, price the answer, parse it."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError
from temporalio import activity

from activities.endpoints.endpoints import Target
from activities.endpoints.pricing import Price
from activities.model.bills import Bills
from activities.model.completion import Completion, ContextTooLong, RequestRefused, complete, written
from activities.model.observations import Form, Observations, Way
from activities.model.output import WantedOutput, WantedOutputs, value_in
from activities.model.parsing import CompletionParser, calls_of_json
from activities.model.request import request_for
from activities.model.streaming import STREAMED, open_telling
from activities.model.tracing import Tracing
from activities.model.transcript import Transcript, Transcripts, said_by
from activities.payloads import apart
from activities.programs.bundling import store_program
from activities.records import Held
from activities.resources import Activities, Resources
from activities.retrying import implements, retry_while_unavailable
from activities.tools.arguments import Arguments
from backstay import calls
from backstay.budgets.usage import ModelUsage
from backstay.canonical import digest_of
from backstay.errors import BackstayError, Pruned, ReservationTooSmall, WorkerMisfit
from backstay.provenance.source import Sources
from backstay.shown import one_line
from backstay.task.context import BYTES_PER_TOKEN, weight
from backstay.task.decision import Decision, Perception
from backstay.tools.tool import Tool
from sandbox.programs.check import blocked_uses
from store.blobs.shown import Missing
from toolbox.catalog.catalog import Catalog

HALVINGS = 3
PATIENCE_S = 10.0
LEAST_ANSWER = 200
"""Tokens of an answer that can hold a call; a shorter one is cut off, and what was asked is paid for nothing."""


@dataclass(frozen=True)
class Loaded:
    """Hold what a request is made of."""

    transcript: Transcript
    catalog: Catalog
    held: Held
    wanted: WantedOutput | None


@dataclass(frozen=True)
class Sent:
    """Hold what came back, and how it was asked for."""

    completion: Completion
    worst: int
    """What it may cost at most, by what is known of the endpoint."""
    way: Way
    refused: tuple[Way, ...]
    """The ways of asking that the endpoint has refused before."""
    dropped: int
    """How many items trimming left out."""


class Model(Activities):
    """Implement `ask_model`."""

    def __init__(self, resources: Resources, transcripts: Transcripts) -> None:
        """Share the worker's transcripts."""
        super().__init__(resources)
        self.transcripts = transcripts
        self.observations = Observations()
        self.bills = Bills(resources.settings.home)
        self.tracing = Tracing(self.records)
        self.outputs = WantedOutputs(self.store.blobs)

    @implements(calls.ask_model)
    async def ask_model(self, ask: calls.AskModel) -> Decision:
        """Render the context, call the model once, price the answer and parse it into a Decision."""
        try:
            target = self._target(ask)
            loaded = await retry_while_unavailable(lambda: self._load(ask), for_s=self.transient_s)
        except BackstayError as error:
            fault = await self._pruned(ask.run) if isinstance(error, Missing) else None
            (fault or error).facts["unbilled"] = True
            raise fault or error from error
        sent = await self._send(ask, loaded, target)
        # What was paid for is not lost because the store is locked for a while.
        return await retry_while_unavailable(lambda: self._decision(ask, loaded, target, sent), for_s=self.transient_s)

    def _target(self, ask: calls.AskModel) -> Target:
        """Return whom to ask; raises WorkerMisfit where this worker cannot keep to what the run began with."""
        target = self.resources.endpoints.target(ask.model, listed=ask.listed)
        if ask.micro is not None and target.price is None:
            name = one_line(ask.model, 80)
            raise WorkerMisfit(
                f"this worker knows no price for {name!r}, and the run has a limit in USD; set one again"
            )
        return target

    async def _pruned(self, run: str) -> Pruned | None:
        """Return why a run finds nothing of its own any longer, when it was pruned and then reset."""
        workflow_id, _, workflow_run_id = run.rpartition("/")
        row = await self.store.runs.get(workflow_id, workflow_run_id)
        try:
            return None if row is None else row.require_not_pruned()
        except Pruned as error:
            return error

    async def _load(self, ask: calls.AskModel) -> Loaded:
        await self.admit(ask)
        # Servers that are starting are waited for where the answer depends on which there are.
        catalog = await self.catalog(ask, ask.user_id, patience_s=PATIENCE_S if ask.perception else 0)
        transcript = await self.transcripts.load(ask.run, ask.context)
        items = await self.transcripts.items_of(ask.run, ask.append)
        transcript = transcript.with_items(items, said_by(transcript, ask.append, items, catalog))
        wanted = await self.outputs.of(ask.run, ask.output_schema)
        return Loaded(transcript, catalog, await self.records.secrets.of(ask.run), wanted)

    async def _send(self, ask: calls.AskModel, loaded: Loaded, target: Target) -> Sent:
        """Send once; only what was refused, and so not billed, is sent again: shorter, or in another way."""
        cap, price, halvings = self.settings.context_tokens, target.price, 0
        ways, refused = self._ways(ask, loaded, target), list[Way]()
        while True:
            request, dropped = self._request(ask, loaded, target, cap, ways[0])
            held = loaded.held
            # What servers say of their tools is no answer, and can be made to carry a secret all the same.
            asked = self._within_tokens(ask, held.redactor.without_known(request) if held.handles else request)
            content = written(asked)
            honest = 0 if price is None else price.worst(len(content), asked["max_completion_tokens"])
            key = f"{target.where} {target.model} {price}"
            worst = math.ceil(honest * self.bills.factor(key))
            if ask.micro is not None and worst > ask.micro:
                raise _too_small(worst, self.bills.why(key))
            try:
                completion = await self._completed(ask, target, held, asked, ways[0])
            except RequestRefused:
                if len(ways) == 1:
                    raise
                # The endpoint does not take this; nothing was billed, and it is asked in the next way instead.
                refused.append(ways.pop(0))
                continue
            except ContextTooLong:
                if halvings == HALVINGS:
                    raise
                # The cap itself may lie far above what there is to cut.
                cap, halvings = min(cap, int(weight(request["messages"]) / BYTES_PER_TOKEN)) // 2, halvings + 1
                continue
            for way in refused:
                self.observations.note_refused(ask.model, way)
            if completion.reported:
                usage = completion.usage
                self.observations.note_tokens(
                    ask.model, len(content), usage.input_cached_tokens + usage.input_new_tokens
                )
                self._note_bill(key, target, usage, honest)
            return Sent(completion, worst, ways[0], tuple(refused), dropped)

    def _note_bill(self, key: str, target: Target, usage: ModelUsage, honest: int) -> None:
        if target.price is not None:
            self.bills.note(key, target.name, target.where, billed=target.price.micro(usage), most=honest)

    def _within_tokens(self, ask: calls.AskModel, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request with no longer an answer than the token limit holds beside it.

        Raises ReservationTooSmall where it holds no answer that is worth the question.
        """
        if ask.tokens_left is None:
            return request
        most, told = request["max_completion_tokens"], self.observations.tokens_of(ask.model, len(written(request)))
        least = min(most, LEAST_ANSWER)
        if ask.tokens_left < told + least:
            said = f"the call may take {told + least} tokens: {told} to ask, {least} to answer"
            raise ReservationTooSmall(said, asks_tokens=told, answer_tokens=least)
        return request | {"max_completion_tokens": min(most, ask.tokens_left - told)}

    async def _completed(
        self, ask: calls.AskModel, target: Target, held: Held, request: dict[str, Any], way: Way
    ) -> Completion:
        """Send a request once; where somebody watches the run, what the model says is passed on while it arrives."""
        whole = partial(complete, target.client, written(request), listed=target.listed)
        async with open_telling(self.store.deltas, ask, held.redactor) as telling:
            # Words are only told where they are for people: not what is to be read as JSON.
            is_said = ask.closing or (way == "functions" and not ask.perception)
            if telling is None or not is_said or not self.observations.may_stream(ask.model):
                return await whole()
            streamed = written({**request, **STREAMED})
            try:
                completion = await complete(target.client, streamed, listed=target.listed, say=telling.say)
            except RequestRefused:
                # It may be the stream that the endpoint does not take; nothing was billed.
                completion = await whole()
                self.observations.note_unstreamed(ask.model)
                return completion
            if not completion.reported:
                self.observations.note_unstreamed(ask.model)
            return completion

    def _ways(self, ask: calls.AskModel, loaded: Loaded, target: Target) -> list[Way]:
        if ask.closing:
            return ["free"]
        return self.observations.ways(target, loaded.transcript, perceives=ask.perception)

    def _request(
        self, ask: calls.AskModel, loaded: Loaded, target: Target, cap: int, way: Way
    ) -> tuple[dict[str, Any], int]:
        finish = loaded.wanted.function() if loaded.wanted else None
        options: Any = {"target": target, "cap_tokens": cap, "way": way, "finish": finish}
        options["offered"] = self.resources.definitions.offered
        return request_for(ask, loaded.transcript, loaded.catalog, self.settings, **options)

    async def _decision(self, ask: calls.AskModel, loaded: Loaded, target: Target, sent: Sent) -> Decision:
        completion, worst = sent.completion, sent.worst
        usage = _priced(completion, target.price, worst)
        billed = Decision(context=ask.context, usage=usage, worst_case_micro=worst)
        if ask.closing:
            shown = await self.records.show(ask.run, completion.message.get("content") or "", "model")
            await self.tell(ask)
            return billed.model_copy(update={"reason": str(shown.payload)[:4000]})
        if ask.perception:
            found = await self._perceived(ask.run, completion.message.get("content"), loaded.catalog)
            await self.tell(ask)
            return billed.model_copy(
                update={"perception": found} if isinstance(found, Perception) else {"reason": found}
            )
        parser = await self._parse(ask, loaded, target, sent)
        extended = await self.transcripts.extend(ask.run, loaded.transcript, parser.items)
        reason = next((item["text"] for item in parser.items if item["kind"] == "said"), "")
        decision = Decision(
            actions=parser.actions,
            context=extended.ref,
            catalog=loaded.catalog.version,
            usage=usage,
            worst_case_micro=worst,
            reason=one_line(reason, 200),
            refused=parser.refused,
            dropped=sent.dropped,
            fault=one_line(parser.fault, 300),
            output_fault=one_line(parser.output_fault, 300),
        )
        await self.tell(ask, ask.happened(decision), ask.draft)
        return decision

    async def _perceived(self, run: str, content: Any, catalog: Catalog) -> Perception | str:
        """Return what the task is about, without its secrets, or why the answer cannot be read."""
        try:
            value = await apart(content, lambda: value_in(content if isinstance(content, str) else ""))
            given = Perception.model_validate(value, extra="forbid", strict=False)
            found = Perception.model_validate((await self.records.show(run, given.plain(), "model")).payload)
        except ValidationError as error:
            fault = error.errors()[0]
            # It may name what the model has written.
            said = f"{'.'.join(map(str, fault['loc'])) or 'the answer'}: {fault['msg']}"
            return one_line(await self.records.text(run, said), 200)
        except ValueError:
            return "the answer is no JSON object"
        known = {definition.provider for definition in catalog.definitions.values() if not definition.hidden}
        servers = tuple(name for name in dict.fromkeys(found.selected_servers) if name in known)
        return found.model_copy(update={"selected_servers": servers})

    async def _parse(self, ask: calls.AskModel, loaded: Loaded, target: Target, sent: Sent) -> CompletionParser:
        transcript, catalog = loaded.transcript, loaded.catalog
        message = sent.completion.message
        content = message.get("content")
        form: Form | None = None
        found = calls_of_json(content) if sent.way != "functions" and isinstance(content, str) else None
        if found is not None:
            named = [{**call, "id": f"s{ask.step}-{call['id']}"} for call in found]
            message, form = {"content": None, "tool_calls": named}, "json"
        store = partial(self._store_program, ask, transcript, catalog) if ask.programs else None
        trace = partial(self._sources, ask, transcript)
        cut = sent.completion.finish_reason == "length"
        parser = CompletionParser(
            Arguments(self.records),
            catalog,
            ask.run,
            store,
            trace,
            loaded.wanted,
            planning=ask.planning,
            offered=self.resources.definitions.offered,
            most_steps=self.settings.max_steps_per_plan,
            cut=cut,
            markers=ask.markers,
        )
        await parser.parse(message, started=transcript.started)
        if not message.get("tool_calls") and parser.finish is None and content:
            form = "text"
        if form is not None or message.get("tool_calls"):
            self.observations.note_form(ask.model, ask.run, form)
        seen = (transcript.last_said(target.by) or {}).get("refuses", ())
        notes = {"form": form, "by": target.by, "refuses": sorted({*seen, *sent.refused} - {sent.way})}
        for item in parser.items[:1]:
            if item["kind"] == "said":
                item |= {name: note for name, note in notes.items() if note}
        return parser

    async def _sources(
        self, ask: calls.AskModel, transcript: Transcript, tool: Tool, arguments: dict[str, Any]
    ) -> Sources | None:
        """Return where the arguments of a call came from, where somebody needs to know."""
        if not (ask.sources if tool.effectful else tool.egress):
            return None
        lookup = await self.tracing.lookup(ask.run, transcript)
        return await apart(arguments, lambda: lookup.sources_of(arguments, tool=tool.name, egress=tool.egress))

    async def _store_program(
        self, ask: calls.AskModel, transcript: Transcript, catalog: Catalog, call_id: str, source: str
    ) -> tuple[str, tuple[str, ...]]:
        traced = ask.sources or any(definition.tool.egress for definition in catalog.definitions.values())
        lookup = await self.tracing.lookup(ask.run, transcript) if traced else None
        ref = await store_program(
            self.store.blobs.of(ask.run),
            catalog,
            transcript.visible(),
            source,
            image=ask.image or self.settings.image,
            chosen=ask.image,
            markers=ask.markers,
            seed=digest_of([ask.run, call_id, source])[:32],
            now=activity.info().scheduled_time.timestamp(),
            lookup=lookup,
        )
        blocked = self.settings.blocked_modules
        return ref, tuple(await apart(source, lambda: blocked_uses(source, blocked)))


def _too_small(needed: int, why: str) -> ReservationTooSmall:
    """Return the refusal of a call that may cost more than was reserved, with the cause where it is a doubt."""
    said = f"the call may cost {needed / 1e6:.6f} USD; reserve that much{f' ({why})' if why else ''}"
    return ReservationTooSmall(said, needed=needed, **({"why": why} if why else {}))


def _priced(completion: Completion, price: Price | None, worst: int) -> ModelUsage:
    """Return the usage with its cost; an endpoint that does not say what it used is charged the most it can cost."""
    usage = completion.usage
    cost = 0 if price is None else price.micro(usage) if completion.reported else worst
    return ModelUsage(**{name: value for name, value in usage.model_dump().items() if value} | {"cost_micro": cost})
