"""Read and settle what is recorded of effects."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.resources import Activities, Resources, facts_of
from activities.retrying import implements
from activities.tools.declared import DeclaredActivities
from activities.tools.effects import FIRST_LATE
from backstay import calls
from backstay.client.executions import described
from backstay.effects.compensation import all_of
from backstay.effects.effect import Effect, EffectState, Touch
from backstay.errors import ArgumentsInvalid, BackstayError, EffectConflict, RunNotFound, RunOpen, StoreUnavailable
from store.effects.types import EffectRow
from toolbox.catalog.catalog import Catalog

MOST_CHARACTERS = 500_000
"""Of all effects in one answer; the server refuses payloads of 2 MiB."""
_MOST_NAMED = 20
VERDICTS = {
    "happened": EffectState.APPLIED,
    "did_not_happen": EffectState.NOT_SENT,
    "failed": EffectState.FAILED,
    "kept": EffectState.KEPT,
    "undone_by_hand": EffectState.COMPENSATED,
}


class Outcomes(Activities):
    """Implement `settle_effect` and `load_effects`."""

    def __init__(self, resources: Resources) -> None:
        """Share the worker's resources."""
        super().__init__(resources)
        self.declared = DeclaredActivities(resources)

    @implements(calls.settle_effect)
    async def settle_effect(self, ask: calls.SettleEffect) -> Effect:
        """Read or settle what is recorded of one effect."""
        await self.begin(ask)
        made = await self.as_made(ask)
        effect_id = f"{made.run}/{made.effect}{'/undo' if ask.undo else ''}"
        row = await self.store.effects.get(effect_id)
        if row is None:
            return Effect(id=effect_id, n=ask.effect, tool="", args_digest="", state=EffectState.PLANNED)
        if ask.verdict == "show_undo":
            undo = await self.declared.shown_compensation(made, ask.run)
            found = {"undo_tool": undo.tool, "undo_arguments": undo.arguments, "undo_digest": undo.digest}
            return shown(row).model_copy(update=found)
        if ask.verdict != "look" and row.state is not VERDICTS[ask.verdict]:
            row = await self._settled(row, ask)
        return shown(row)

    async def _settled(self, row: EffectRow, ask: calls.SettleEffect) -> EffectRow:
        state = VERDICTS[ask.verdict]
        try:
            if ask.verdict in {"kept", "undone_by_hand"}:
                return await self.store.effects.mark(row.effect_id, state)
            return await self.store.effects.resolve(row.effect_id, state=state, outcome=ask.by)
        except EffectConflict as error:
            row = await self.store.effects.get(row.effect_id) or row
            if row.lease_left_s > 0:
                raise StoreUnavailable(str(error), retry_after=row.lease_left_s + 0.2) from error
            return row

    @implements(calls.load_effects)
    async def load_effects(self, ask: calls.LoadEffects) -> calls.LoadedEffects:
        """Read effects of a run that could still be undone, in shown form; a large answer is cut and says so."""
        if ask.workflow_id is None:
            await self.begin(ask)
        loaded = (
            calls.LoadedEffects(run=ask.run) if ask.workflow_id is None else await self._found(ask, ask.workflow_id)
        )
        run, open_of_run = loaded.run, self.store.effects.open_of_run
        if ask.parked is None:
            rows = await open_of_run(run, to_step=ask.to_step, before=ask.before, limit=ask.limit + 1)
        else:
            rows = await self._parked(run, ask.parked)
        builtin = ask.builtin if loaded.opened is None else loaded.opened.builtin
        page = await self.shown_page(run, rows[: ask.limit], loaded.user_id, builtin)
        answer: dict[str, Any] = {"effects": page, "more": len(page) < len(rows)}
        if ask.before is None:
            count, authorities = await self.store.effects.authorities_of_open(run, to_step=ask.to_step)
            answer |= {"count": count, "authority": all_of(authorities)}
        return loaded.model_copy(update=answer)

    async def shown_page(
        self, run: str, rows: Sequence[EffectRow], user_id: str, builtin: Iterable[str]
    ) -> tuple[Effect, ...]:
        """Return effects of a run with what is needed to undo them, as many as fit into one answer."""
        effects = await self._with_facts(run, rows, user_id, builtin)
        asked = await self.store.subruns.arguments_of(rows)
        effects = tuple(effect.model_copy(update={"arguments": asked.get(effect.n, {})}) for effect in effects)
        later = await self.store.touching.later(run, rows)
        return _cut(tuple(_with_later(effect, later) for effect in effects))

    async def _parked(self, run: str, effect: int) -> list[EffectRow]:
        parked = await self.store.parked.of_run(run)
        if effect not in parked:
            known = ", ".join(map(str, sorted(parked)[:_MOST_NAMED])) or "none"
            raise ArgumentsInvalid(f"done: the undo of effect {effect} is not parked; parked are {known}")
        # It may have been dealt with since: another one is never meant.
        return [row for row in await self.store.effects.open_of_run(run, before=effect + 1, limit=1) if row.n == effect]

    async def _found(self, ask: calls.LoadEffects, workflow_id: str) -> calls.LoadedEffects:
        """Find an ended run by its workflow id, and note that this workflow works on it."""
        row = await self.store.runs.get(workflow_id, ask.workflow_run_id)
        if row is None:
            raise RunNotFound(f"workflow_id: this store knows no run of {workflow_id[:100]!r}")
        row.require_not_pruned()
        if not row.opened:
            raise RunNotFound(
                f"workflow_id: the store does not know how {workflow_id[:100]!r} began, nor who may undo it; "
                "look at its effects, and undo them by hand"
            )
        await self._refuse_open(workflow_id, row.run)
        for below in await self.store.subruns.below(row.run):
            if below.run is not None:
                await self._refuse_open(below.workflow_id, below.run)
        # Of a run that was terminated, nobody has taken over what its sub-runs did; of those, the deepest come first.
        for below in reversed(await self.store.subruns.below(row.run)):
            await self.store.subruns.adopt(below.parent, None)
        info = activity.info()
        await self.store.runs.add_execution(
            row.run, workflow_id=info.workflow_id or "", workflow_run_id=info.workflow_run_id or ""
        )
        # The undo begins now, and so in another epoch than its run, perhaps.
        stamp = {"store": await self.first_stamp()}
        opened = calls.OpenedRun.model_validate(row.opened).model_copy(update=stamp)
        last = await self.store.events.last(row.run, below=FIRST_LATE)
        return calls.LoadedEffects(
            run=row.run, user_id=row.user_id, session_id=row.session_id, opened=opened, last_event=last
        )

    async def _with_facts(
        self, run: str, rows: Iterable[EffectRow], user_id: str, builtin: Iterable[str]
    ) -> tuple[Effect, ...]:
        """Return effects with what today's tools say of how to undo them, where the store does not say it."""
        effects: list[Effect] = []
        catalogs: dict[str, Catalog] = {}
        for row in rows:
            effect = shown(row)
            if effect.unknown or (row.state is EffectState.APPLIED and row.undo_shown is None):
                user = user_id or row.user_id
                if user not in catalogs:
                    owner = await self.resources.owners.of(run)
                    catalogs[user] = await self.toolbox.catalog(user, owner=owner, builtin=frozenset(builtin))
                effect = _with_facts(effect, catalogs[user])
            effects.append(effect)
        return tuple(effects)

    async def _refuse_open(self, workflow_id: str, run: str) -> None:
        """Refuse while any run of the chain is open; only Temporal knows, since a terminated run never said goodbye."""
        try:
            newest = await described(self.resources.temporal, workflow_id)
        except RunNotFound:
            return
        except BackstayError as error:
            raise StoreUnavailable(f"Temporal does not say whether {workflow_id} is open: {error}") from error
        # A later run may bear the same name; where Temporal does not tell them apart, the store does.
        known = await self.store.runs.get(workflow_id, newest.first_run_id)
        is_this = run == f"{workflow_id}/{newest.first_run_id}" or (known is not None and known.run == run)
        if newest.is_open and is_this:
            raise RunOpen(f"{workflow_id} is still open; cancel it or use its own undo first")


def _with_facts(effect: Effect, catalog: Catalog) -> Effect:
    definition = catalog.definitions.get(effect.tool)
    if definition is None:
        return effect
    tool = facts_of(catalog, definition)
    update: dict[str, Any] = {
        "undo_by_effect_id": tool.undo_by_effect_id,
        "undo_by_id": tool.undo_by_id,
        "undo_by_id_tool": tool.undo_by_id_tool,
        "verify": tool.verify,
    }
    if effect.undo_tool is None and effect.unknown:
        update |= {"undo": tool.undo_before_answer, "undo_tool": tool.undo_tool}
    elif effect.undo_tool is None:
        # Nothing is bound to its answer.
        by_id = tool.undo_by_effect_id
        update |= {"undo": tool.undo_by_id if by_id else tool.undo, "undo_tool": tool.undo_by_id_tool or None}
    return effect.model_copy(update=update)


def _with_later(effect: Effect, later: Mapping[int, tuple[Touch, ...]]) -> Effect:
    return effect.model_copy(update={"later": later[effect.n]}) if effect.n in later else effect


def _cut(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """Return as many as fit into one answer, at least one."""
    left = MOST_CHARACTERS
    for place, effect in enumerate(effects):
        left -= len(effect.model_dump_json())
        if left < 0:
            return effects[: max(1, place)]
    return effects


def shown(row: EffectRow) -> Effect:
    """Return what people and workflows see of a row."""
    return row.effect().model_copy(update={"undo_tool": row.undo_tool, "settle_in_s": round(row.lease_left_s, 3)})
