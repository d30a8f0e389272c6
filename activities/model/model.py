"""Ask the model once: render, check the reservation, send, price, parse."""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from temporalio import activity

from activities.model.completion import Completion, ContextTooLong, complete, written
from activities.model.pricing import Price, price_of
from activities.model.reply import Reply, ReplyReader, calls_of_json
from activities.model.request import closing_request, json_request, request_for
from activities.model.transcript import Item, Transcript, Transcripts
from activities.programs.writer import ProgramWriter
from activities.records import Records
from activities.resources import Body, Resources
from activities.retrying import body, ordered_at, retry_while_unavailable
from activities.tools.arguments import Arguments
from backstay import calls
from backstay.budgets.usage import ModelUsage
from backstay.errors import BackstayError, ReservationTooSmall
from backstay.shown import one_line
from backstay.task.context import BYTES_PER_TOKEN, weight
from backstay.task.decision import Decision
from backstay.task.event import Event
from toolbox.catalog.catalog import Catalog

HALVINGS = 3
Answered = tuple[Completion, int, int]
"""What came back, what it may have cost at most, and how much trimming left out."""


@dataclass(frozen=True)
class Prepared:
    """Hold what a request is rendered from; what is added is stored together with the answer."""

    stored: Transcript
    added: list[Item]
    seen: Transcript
    catalog: Catalog


class Model(Body):
    """The body of `ask_model`."""

    def __init__(self, resources: Resources, records: Records, transcripts: Transcripts) -> None:
        """Share the worker's transcripts."""
        super().__init__(resources)
        self.records = records
        self.transcripts = transcripts
        self.without_functions: set[str] = set()
        """Models whose endpoint has shown that it ignores functions."""

    @body(calls.ask_model)
    async def ask_model(self, ask: calls.AskModel) -> Decision:
        """Render the context, call the model once, price the answer and parse it into a Decision."""
        try:
            prepared = await retry_while_unavailable(lambda: self._prepared(ask), until=self._until())
        except BackstayError as error:
            error.facts["unbilled"] = True
            raise
        price = price_of(self.settings, ask.model)
        answer = await self._completed(ask, prepared.seen, prepared.catalog, price)
        # What was paid for is not lost because the store is locked for a while.
        return await retry_while_unavailable(
            lambda: self._decided(ask, prepared, answer, price), until=time.time() + self.transient_s
        )

    def _until(self) -> float:
        return activity.info().scheduled_time.timestamp() + self.transient_s

    async def _prepared(self, ask: calls.AskModel) -> Prepared:
        self.store.check(ask.store)
        catalog = await self.catalog(ask, ask.user_id)
        transcript = await self.transcripts.load(ask.run, ask.context)
        added = await self.transcripts.items_of(ask.run, ask.append)
        return Prepared(transcript, added, self.transcripts.ahead(transcript, added), catalog)

    async def _decided(
        self, ask: calls.AskModel, prepared: Prepared, answer: Answered, price: Price | None
    ) -> Decision:
        completion, worst, dropped = answer
        usage = _priced(completion, price, worst)
        if ask.closing:
            shown = await self.records.show(ask.run, completion.message.get("content") or "", "model")
            text = str(shown.payload)[:4000]
            await self.store.events.append(ask.run, ask.events)
            return Decision(context=ask.context, reason=text, usage=usage, worst_case_micro=worst)
        reply = await self._read(ask, prepared.seen, prepared.catalog, completion)
        extended = await self.transcripts.extend(ask.run, prepared.stored, [*prepared.added, *reply.items])
        await self.store.events.append(ask.run, (*ask.events, _event(ask, usage, reply)))
        version = prepared.catalog.version
        return _decision(reply, extended.ref, version, usage=usage, worst=worst, dropped=dropped)

    async def _completed(
        self, ask: calls.AskModel, transcript: Transcript, catalog: Catalog, price: Price | None
    ) -> Answered:
        """Send once; only a request that was refused as too long, and so not billed, is sent again, shorter."""
        cap = self.settings.context_tokens
        for halving in range(HALVINGS + 1):
            request, dropped = self._request(ask, transcript, catalog, cap)
            content = written(request)
            worst = 0 if price is None else price.worst(len(content), request["max_completion_tokens"])
            if ask.micro is not None and worst > ask.micro:
                needed = f"{worst / 1e6:.6f}"
                raise ReservationTooSmall(f"the call may cost {needed} USD; reserve that much", needed=worst)
            try:
                return await complete(self.resources.model, content), worst, dropped
            except ContextTooLong:
                if halving == HALVINGS:
                    raise
                # The cap itself may lie far above what there is to cut.
                cap = min(cap, int(weight(request["messages"]) / BYTES_PER_TOKEN)) // 2
        raise AssertionError

    def _request(
        self, ask: calls.AskModel, transcript: Transcript, catalog: Catalog, cap: int
    ) -> tuple[dict[str, Any], int]:
        most = min(
            self.settings.max_completion_tokens, ask.max_completion_tokens or self.settings.max_completion_tokens
        )
        role = self.settings.system_role
        if ask.closing:
            return closing_request(transcript, model=ask.model, most_output=most, system_role=role), 0
        request, dropped = request_for(
            transcript,
            catalog,
            model=ask.model,
            cap_tokens=cap,
            most_output=most,
            system_role=role,
            budget=ask.budget,
            programs=ask.programs,
        )
        return (json_request(request, role), dropped) if ask.model in self.without_functions else (request, dropped)

    async def _read(
        self, ask: calls.AskModel, transcript: Transcript, catalog: Catalog, completion: Completion
    ) -> Reply:
        message = completion.message
        content = message.get("content")
        if ask.model in self.without_functions and isinstance(content, str):
            found = calls_of_json(content)
            if found is not None:
                message = {"content": None, "tool_calls": [_with_step(call, ask.step) for call in found]}
        reply = await self._reader(ask, transcript, catalog).read(message, started=transcript.started)
        if not message.get("tool_calls") and reply.finish is None and content:
            # Text where a call was due: from now on the actions are asked for as JSON.
            self.without_functions.add(ask.model)
        elif completion.message.get("tool_calls"):
            self.without_functions.discard(ask.model)
        return reply

    def _reader(self, ask: calls.AskModel, transcript: Transcript, catalog: Catalog) -> ReplyReader:
        now = activity.info().scheduled_time.timestamp()
        writer = ProgramWriter(self.store.blobs.of(ask.run), catalog, run=ask.run, image=self.settings.image, now=now)
        write = partial(writer.write, transcript.visible()) if ask.programs else None
        return ReplyReader(Arguments(self.records), catalog, ask.run, write)


def _event(ask: calls.AskModel, usage: ModelUsage, reply: Reply) -> Event:
    data = {"tokens": usage.tokens, "cost_usd": usage.cost_micro / 1e6, "actions": [a.kind for a in reply.actions]}
    text = f"step {ask.step}: asked the model"
    return Event(n=ask.event, name="model.asked", at=ordered_at(), step=ask.step, text=text, data=data)


def _decision(reply: Reply, context: str, catalog: str, *, usage: ModelUsage, worst: int, dropped: int) -> Decision:
    said = next((item["text"] for item in reply.items if item["kind"] == "said"), "")
    more: dict[str, Any] = {}
    if said:
        more["reason"] = one_line(said, 200)[0]
    if reply.refused:
        more["refused"] = reply.refused
    if dropped:
        more["dropped"] = dropped
    return Decision(
        actions=reply.actions,
        context=context,
        catalog=catalog,
        usage=usage,
        worst_case_micro=worst,
        **more,
    )


def _priced(completion: Completion, price: Price | None, worst: int) -> ModelUsage:
    """Return the usage with its cost; an endpoint that does not say what it used is taken at its worst."""
    usage = completion.usage
    if price is None:
        return _compact(usage, 0)
    return _compact(usage, price.micro(usage) if completion.reported else worst)


def _compact(usage: ModelUsage, cost: int) -> ModelUsage:
    counted = {name: value for name, value in usage.model_dump().items() if value}
    return ModelUsage(**{**counted, "cost_micro": cost})


def _with_step(call: dict[str, Any], step: int) -> dict[str, Any]:
    return {**call, "id": f"s{step}-{call['id']}"}
