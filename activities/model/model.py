"""Ask the model once: render the request, check the reservation, send, price the answer, parse it."""

from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from pydantic import ValidationError
from temporalio import activity

from activities.endpoints.dialect import told as lesson_told
from activities.endpoints.endpoints import Target
from activities.endpoints.pricing import TokenPrice
from activities.media.fitting import Fitting
from activities.media.parts import NOTHING, shown_in
from activities.model.completion import Completion
from activities.model.disguise import MOST_READ, without_thoughts
from activities.model.ends import noted
from activities.model.learned import ForgottenModels
from activities.model.message import MessageExtras
from activities.model.observations import Observations
from activities.model.opaque import Opaque, maker
from activities.model.output import WantedOutputs, value_in
from activities.model.parsing import CompletionParser
from activities.model.sending import ModelReply, RequestMaterial, Sending
from activities.model.tracing import Tracing
from activities.model.transcript import Transcript, Transcripts, said_by
from activities.model.understanding import Understood, functions_of, understood
from activities.payloads import apart
from activities.programs.bundling import store_program
from activities.resources import Activities, Resources
from activities.retrying import implements, is_retry, retry_while_unavailable
from activities.tools.arguments import Arguments
from backstay import calls
from backstay.budgets.usage import ModelUsage
from backstay.canonical import canonical, digest_of
from backstay.digests.broken_up import put_together
from backstay.errors import BackstayError, Pruned, WorkerLost, WorkerMisfit
from backstay.frozen import Frozen
from backstay.plans.review import PlanWork
from backstay.provenance.source import ArgumentSources
from backstay.shown import one_line
from backstay.task.decision import Decision, Perception, PlanVerdict
from backstay.task.event import as_drafts
from backstay.tools.tool import Tool
from sandbox.programs.check import blocked_uses
from store.blobs.shown import Missing
from toolbox.catalog.catalog import Catalog

PATIENCE_S = 10.0
Noun = TypeVar("Noun", bound=Frozen)


class Model(Activities):
    """Implement `ask_model`."""

    def __init__(self, resources: Resources, transcripts: Transcripts) -> None:
        """Share the worker's transcripts."""
        super().__init__(resources)
        self.transcripts = transcripts
        self.observations = Observations(forgotten=ForgottenModels(self.settings.home))
        self.sending = Sending(resources, self.observations)
        self.opaque = Opaque(self.records, transcripts)
        self.tracing = Tracing(self.records)
        self.outputs = WantedOutputs(self.store.blobs)
        self.fitting = Fitting()

    @implements(calls.ask_model)
    async def ask_model(self, ask: calls.AskModel) -> Decision:
        """Render the context, call the model once, price the answer and parse it into a Decision.

        Only the first attempt asks: what is reserved may be spent once. There is another one only where an operator has
        paused or reset the activity, or has reset the run while it waited.
        """
        if is_retry():
            raise WorkerLost("an operator had the activity scheduled again, and it may have asked the model before")
        return await self.asked(ask)

    async def asked(self, ask: calls.AskModel) -> Decision:
        """Ask the model once; raises BackstayError, whose facts say `unbilled` where nothing was sent."""
        try:
            target = self._target(ask)
            loaded = await retry_while_unavailable(lambda: self._load(ask, target), for_s=self.transient_s)
        except BackstayError as error:
            fault = await self._pruned(ask.run) if isinstance(error, Missing) else None
            (fault or error).facts["unbilled"] = True
            raise fault or error from error
        sent = await self.sending.send(ask, loaded, target)
        # An answer that was paid for is not lost because the store is locked for a while.
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

    async def _load(self, ask: calls.AskModel, target: Target) -> RequestMaterial:
        await self.admit(ask)
        # Servers that are starting are waited for where the answer depends on which there are.
        catalog = await self.catalog(ask, ask.user_id, patience_s=PATIENCE_S if ask.perception else 0)
        transcript = await self.transcripts.load(ask.run, ask.context)
        items = await self.transcripts.items_of(ask.run, ask.append)
        transcript = transcript.with_items(items, said_by(transcript, ask.append, items, catalog))
        wanted = await self.outputs.of(ask.run, ask.output_schema)
        beside = await self.opaque.of(ask.run, target, transcript.items if ask.purpose == "step" else ())
        results = {} if ask.work is None else await self._results(ask.run, ask.work)
        media = NOTHING
        if ask.purpose == "step":
            read = self.store.blobs.of(ask.run).unseal
            media = await shown_in(transcript.items, target.sight, self.fitting, read)
        return RequestMaterial(
            transcript, catalog, await self.records.secrets.of(ask.run), wanted, beside, media, results
        )

    async def _results(self, run: str, work: PlanWork) -> dict[int, str]:
        """Return what the steps of a plan brought, as a model is shown it."""
        return {place: canonical(await self.records.digest(run, ref)) for place, ref in work.results.items()}

    async def _decision(
        self, ask: calls.AskModel, loaded: RequestMaterial, target: Target, sent: ModelReply
    ) -> Decision:
        completion, worst = sent.completion, sent.worst
        usage = _priced(completion, target.price, worst)
        billed = Decision(context=ask.context, usage=usage, worst_case_micro=worst)
        if ask.closing:
            shown = await self.records.show(ask.run, completion.message.get("content") or "", "model")
            said = put_together(without_thoughts(str(shown.payload)))[:4000]
            await self.tell(ask)
            return billed.model_copy(update={"reason": noted(said, completion.finish_reason, completion.message)})
        if ask.perception:
            found = await self._perceived(ask.run, completion.message.get("content"), loaded.catalog)
            await self.tell(ask)
            return billed.model_copy(
                update={"perception": found} if isinstance(found, Perception) else {"reason": found}
            )
        if ask.work is not None:
            said = await self._verdict(ask.run, completion.message.get("content"))
            await self.tell(ask)
            return billed.model_copy(update={"verdict": said} if isinstance(said, PlanVerdict) else {"reason": said})
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
            learned=one_line(lesson_told(sent.news), 300),
            private=loaded.transcript.private_of,
        )
        await self.tell(ask, as_drafts(ask.happened(decision), ask.draft))
        return decision

    async def _perceived(self, run: str, content: Any, catalog: Catalog) -> Perception | str:
        """Return what the task is about, without its secrets, or why the answer cannot be read."""
        found = await self._read(run, content, Perception)
        if not isinstance(found, Perception):
            return found
        known = {definition.provider for definition in catalog.definitions.values() if not definition.hidden}
        servers = tuple(name for name in dict.fromkeys(found.selected_servers) if name in known)
        return found.model_copy(update={"selected_servers": servers})

    async def _verdict(self, run: str, content: Any) -> PlanVerdict | str:
        """Return what a model says of the work of a plan, without secrets, or why that cannot be read."""
        return await self._read(run, content, PlanVerdict)

    async def _read(self, run: str, content: Any, kind: type[Noun]) -> Noun | str:
        """Return an answer that is one JSON object of a certain form, or why it cannot be read."""
        try:
            text = without_thoughts(content[:MOST_READ]) if isinstance(content, str) else ""
            value = await apart(text, lambda: value_in(text))
            given = kind.model_validate(value, extra="forbid")
            return kind.model_validate((await self.records.show(run, given.plain(), "model")).payload)
        except ValidationError as error:
            fault = error.errors()[0]
            # It may name what the model has written.
            said = f"{'.'.join(map(str, fault['loc'])) or 'the answer'}: {fault['msg']}"
            return one_line(await self.records.text(run, said), 200)
        except ValueError:
            return "the answer is not a JSON object"

    async def _parse(
        self, ask: calls.AskModel, loaded: RequestMaterial, target: Target, sent: ModelReply
    ) -> CompletionParser:
        transcript, catalog, completion = loaded.transcript, loaded.catalog, sent.completion
        offered = self.resources.definitions.offered
        known: Any = {"way": sent.way, "step": ask.step, "transcript": transcript, "by": target.by}
        known["functions"] = functions_of(catalog, offered, loaded.wanted)
        found = await apart(
            completion.message, lambda: understood(completion.message, completion.finish_reason, **known)
        )
        store = partial(self._store_program, ask, transcript, catalog) if ask.programs else None
        parser = CompletionParser(
            Arguments(self.records),
            catalog,
            ask.run,
            store,
            partial(self._sources, ask, transcript),
            loaded.wanted,
            planning=ask.planning,
            plans=ask.plans,
            offered=offered,
            most_steps=self.settings.max_steps_per_plan,
            end=found.end,
            finish_reason=completion.finish_reason,
            again=_asked_again(transcript),
            markers=ask.markers,
            memory=ask.memory,
            delegation=ask.delegation,
        )
        await parser.parse(found.message, started=transcript.started)
        self._note(ask, loaded.transcript, target, sent, found=found, parser=parser)
        if parser.items and parser.items[0]["kind"] == "said":
            beside = _beside(sent.completion, found, parser)
            parser.items[0] |= await self.opaque.keep(ask.run, target, beside)
        if hidden := sent.news.get("hidden"):
            names = ", ".join(sorted(name.partition("#")[0] for name in hidden))
            text = f"These functions are not offered, because the model endpoint does not take their schemas: {names}."
            parser.items.insert(0, {"kind": "note", "text": text})
        return parser

    def _note(
        self,
        ask: calls.AskModel,
        transcript: Transcript,
        target: Target,
        sent: ModelReply,
        *,
        found: Understood,
        parser: CompletionParser,
    ) -> None:
        """Note with the message how it came."""
        message, form = found.message, found.form
        if not message.get("tool_calls") and parser.finish is None and message.get("content") and found.end == "done":
            form = "text"
        if not found.written and (form is not None or message.get("tool_calls")):
            self.observations.note_form(ask.model, ask.run, form)
        seen, since = self.observations.refused_in(target, transcript)
        # Where the only lesson was undone, an older message still has it.
        is_learned = bool(sent.lesson or sent.news)
        notes: dict[str, Any] = {
            "form": form or ("text" if sent.way != "functions" else None),
            "by": target.by,
            "refuses": sorted({*seen, *sent.refused} - {sent.way}),
            "written": found.written,
            "dialect": {"of": maker(target), "lesson": sent.lesson, "at": sent.lesson_at} if is_learned else None,
        }
        notes["refused_at"] = since if notes["refuses"] else None
        for item in parser.items[:1]:
            if item["kind"] == "said":
                item |= {name: note for name, note in notes.items() if note}

    async def _sources(
        self, ask: calls.AskModel, transcript: Transcript, tool: Tool, arguments: dict[str, Any]
    ) -> ArgumentSources | None:
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
        blobs = self.store.blobs.of(ask.run)
        await blobs.share()
        ref = await store_program(
            blobs,
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


def _asked_again(transcript: Transcript) -> int:
    """Return how many times in a row the model was asked again because of how its answers ended."""
    ended = (item.get("end") for item in reversed(transcript.items) if item["kind"] == "said")
    return sum(1 for _ in takewhile(bool, ended))


def _beside(completion: Completion, found: Understood, parser: CompletionParser) -> MessageExtras:
    """Return what was beside the message that is kept; nothing where its calls are not those that came."""
    beside = completion.beside
    if len(parser.items[0].get("calls", ())) == len(beside.calls) and found.message is completion.message:
        return beside
    return MessageExtras() if beside.calls else MessageExtras(beside.message)


def _priced(completion: Completion, price: TokenPrice | None, worst: int) -> ModelUsage:
    """Return the usage with its cost; an endpoint that does not say what it used is charged the most it can cost."""
    usage, cost = completion.usage, 0
    if price is not None:
        cost = price.micro(usage) if completion.reported else worst
    return ModelUsage(**{name: value for name, value in usage.model_dump().items() if value} | {"cost_micro": cost})
