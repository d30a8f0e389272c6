"""Ask the model once: render the request, check the reservation, send, price the answer, parse it."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from temporalio import activity

from activities.model.completion import Completion, ContextTooLong, RequestRefused, complete, written
from activities.model.observations import Form, Observations
from activities.model.output import WantedOutput, WantedOutputs
from activities.model.parsing import CompletionParser, calls_of_json
from activities.model.pricing import Price, price_of
from activities.model.request import request_for
from activities.model.tracing import Tracing, said_by
from activities.model.transcript import Transcript, Transcripts
from activities.payloads import apart
from activities.programs.bundling import store_program
from activities.records import Records
from activities.resources import Activities, Resources
from activities.retrying import implements, retry_while_unavailable
from activities.run_secrets import Held
from activities.tools.arguments import Arguments
from backstay import calls
from backstay.budgets.usage import ModelUsage
from backstay.canonical import digest_of
from backstay.errors import BackstayError, Pruned, ReservationTooSmall
from backstay.provenance.source import Sources
from backstay.shown import one_line
from backstay.task.context import BYTES_PER_TOKEN, weight
from backstay.task.decision import Decision
from backstay.tools.tool import Tool
from store.blobs.shown import Missing
from toolbox.catalog.catalog import Catalog

HALVINGS = 3


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
    as_json: bool
    dropped: int
    """How many items trimming left out."""


class Model(Activities):
    """Implement `ask_model`."""

    def __init__(self, resources: Resources, records: Records, transcripts: Transcripts) -> None:
        """Share the worker's transcripts."""
        super().__init__(resources)
        self.records = records
        self.transcripts = transcripts
        self.observations = Observations()
        self.tracing = Tracing(records)
        self.outputs = WantedOutputs(self.store.blobs)

    @implements(calls.ask_model)
    async def ask_model(self, ask: calls.AskModel) -> Decision:
        """Render the context, call the model once, price the answer and parse it into a Decision."""
        try:
            loaded = await retry_while_unavailable(lambda: self._load(ask), for_s=self.transient_s)
        except BackstayError as error:
            fault = await self._pruned(ask.run) if isinstance(error, Missing) else None
            (fault or error).facts["unbilled"] = True
            raise fault or error from error
        price = price_of(self.settings, ask.model)
        sent = await self._send(ask, loaded, price)
        # What was paid for is not lost because the store is locked for a while.
        return await retry_while_unavailable(lambda: self._decision(ask, loaded, price, sent), for_s=self.transient_s)

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
        catalog = await self.catalog(ask, ask.user_id)
        transcript = await self.transcripts.load(ask.run, ask.context)
        items = await self.transcripts.items_of(ask.run, ask.append)
        transcript = transcript.with_items(items, said_by(transcript, ask.append, items, catalog))
        wanted = await self.outputs.of(ask.run, ask.output_schema)
        return Loaded(transcript, catalog, await self.records.secrets.of(ask.run), wanted)

    async def _send(self, ask: calls.AskModel, loaded: Loaded, price: Price | None) -> Sent:
        """Send once; only a request that was refused as too long, and so not billed, is sent again, shorter."""
        cap = self.settings.context_tokens
        seen = self.observations.of(ask.model)
        as_json = not ask.closing and self.observations.asks_as_json(ask.model, loaded.transcript)
        for halving in range(HALVINGS + 1):
            request, dropped = self._request(ask, loaded, cap, as_json=as_json)
            held = loaded.held
            # What servers say of their tools is no answer, and can be made to carry a secret all the same.
            content = written(held.redactor.without_known(request) if held.handles else request)
            honest = 0 if price is None else price.worst(len(content), request["max_completion_tokens"])
            worst = math.ceil(honest * self.observations.factor(ask.model))
            if ask.micro is not None and worst > ask.micro:
                needed = f"{worst / 1e6:.6f}"
                raise ReservationTooSmall(f"the call may cost {needed} USD; reserve that much", needed=worst)
            try:
                completion = await complete(self.resources.model, content)
            except RequestRefused:
                if not as_json or halving == HALVINGS:
                    raise
                # The endpoint does not take a JSON Schema; nothing was billed, and functions are asked for instead.
                as_json, seen.takes_no_json = False, True
                continue
            except ContextTooLong:
                if halving == HALVINGS:
                    raise
                # The cap itself may lie far above what there is to cut.
                cap = min(cap, int(weight(request["messages"]) / BYTES_PER_TOKEN)) // 2
                continue
            if price is not None and completion.reported:
                self.observations.note_bill(ask.model, price.micro(completion.usage), honest)
            return Sent(completion, worst, as_json, dropped)
        raise AssertionError

    def _request(self, ask: calls.AskModel, loaded: Loaded, cap: int, *, as_json: bool) -> tuple[dict[str, Any], int]:
        finish = loaded.wanted.function() if loaded.wanted else None
        options: Any = {"cap_tokens": cap, "as_json": as_json, "finish": finish}
        return request_for(ask, loaded.transcript, loaded.catalog, self.settings, **options)

    async def _decision(self, ask: calls.AskModel, loaded: Loaded, price: Price | None, sent: Sent) -> Decision:
        completion, worst = sent.completion, sent.worst
        usage = _priced(completion, price, worst)
        if ask.closing:
            shown = await self.records.show(ask.run, completion.message.get("content") or "", "model")
            await self.tell(ask)
            text = str(shown.payload)[:4000]
            return Decision(context=ask.context, reason=text, usage=usage, worst_case_micro=worst)
        parser = await self._parse(ask, loaded, sent)
        extended = await self.transcripts.extend(ask.run, loaded.transcript, parser.items)
        reason = next((item["text"] for item in parser.items if item["kind"] == "said"), "")
        more: dict[str, Any] = {"reason": one_line(reason, 200), "refused": parser.refused, "dropped": sent.dropped}
        more |= {"fault": one_line(parser.fault, 300), "output_fault": one_line(parser.output_fault, 300)}
        decision = Decision(
            actions=parser.actions,
            context=extended.ref,
            catalog=loaded.catalog.version,
            usage=usage,
            worst_case_micro=worst,
            # Defaults that are set would reach history.
            **{name: value for name, value in more.items() if value},
        )
        await self.tell(ask, ask.happened(decision), ask.draft)
        return decision

    async def _parse(self, ask: calls.AskModel, loaded: Loaded, sent: Sent) -> CompletionParser:
        transcript, catalog = loaded.transcript, loaded.catalog
        message = sent.completion.message
        content = message.get("content")
        form: Form | None = None
        found = calls_of_json(content) if sent.as_json and isinstance(content, str) else None
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
            most_steps=self.settings.max_steps_per_plan,
            cut=cut,
            markers=ask.markers,
        )
        await parser.parse(message, started=transcript.started)
        if not message.get("tool_calls") and parser.finish is None and content:
            form = "text"
        if form is not None or message.get("tool_calls"):
            self.observations.note_form(ask.model, ask.run, form)
        if form is not None:
            for item in parser.items[:1]:
                item["form"] = form
        return parser

    async def _sources(
        self, ask: calls.AskModel, transcript: Transcript, tool: Tool, arguments: dict[str, Any]
    ) -> Sources | None:
        """Return where the arguments of a call came from, where somebody needs to know."""
        if not (ask.sources if tool.effectful else tool.egress):
            return None
        lookup = await self.tracing.lookup(ask.run, transcript)
        return await apart(arguments, lambda: lookup.sources_of(arguments, egress=tool.egress))

    async def _store_program(
        self, ask: calls.AskModel, transcript: Transcript, catalog: Catalog, call_id: str, source: str
    ) -> str:
        traced = ask.sources or any(definition.tool.egress for definition in catalog.definitions.values())
        lookup = await self.tracing.lookup(ask.run, transcript) if traced else None
        return await store_program(
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


def _priced(completion: Completion, price: Price | None, worst: int) -> ModelUsage:
    """Return the usage with its cost; an endpoint that does not say what it used is charged the most it can cost."""
    usage = completion.usage
    cost = 0 if price is None else price.micro(usage) if completion.reported else worst
    return ModelUsage(**{name: value for name, value in usage.model_dump().items() if value} | {"cost_micro": cost})
