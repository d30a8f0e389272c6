"""Read and settle what is recorded of effects."""

from collections.abc import Iterable

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.resources import Activities, facts_of
from activities.retrying import implements
from backstay import calls
from backstay.effects.effect import Effect, EffectState
from backstay.errors import EffectConflict, RunNotFound, RunOpen, StoreUnavailable
from store.effects.types import EffectRow

VERDICTS = {"happened": EffectState.APPLIED, "did_not_happen": EffectState.NOT_SENT, "kept": EffectState.KEPT}


class Outcomes(Activities):
    """Implement `settle_effect` and `load_effects`."""

    @implements(calls.settle_effect)
    async def settle_effect(self, ask: calls.SettleEffect) -> Effect:
        """Read or settle what is recorded of one effect."""
        await self.begin(ask)
        effect_id = f"{ask.run}/{ask.effect}{'/undo' if ask.undo else ''}"
        row = await self.store.effects.get(effect_id)
        if row is None:
            return Effect(id=effect_id, n=ask.effect, tool="", args_digest="", state=EffectState.PLANNED)
        if ask.verdict != "look" and row.state is not VERDICTS[ask.verdict]:
            row = await self._settled(row, ask)
        return shown(row)

    async def _settled(self, row: EffectRow, ask: calls.SettleEffect) -> EffectRow:
        state = VERDICTS[ask.verdict]
        try:
            if ask.verdict == "kept":
                return await self.store.effects.mark(row.effect_id, state)
            return await self.store.effects.resolve(row.effect_id, state=state, outcome=ask.by)
        except EffectConflict as error:
            row = await self.store.effects.get(row.effect_id) or row
            if row.lease_left_s > 0:
                raise StoreUnavailable(str(error), retry_after=row.lease_left_s + 0.2) from error
            return row

    @implements(calls.load_effects)
    async def load_effects(self, ask: calls.LoadEffects) -> calls.LoadedEffects:
        """Read the effects of a run, in shown form."""
        run, user_id, opened, builtin = ask.run, "", None, ask.builtin
        if ask.workflow_id is not None:
            row = await self.store.runs.get(ask.workflow_id, ask.workflow_run_id)
            if row is None:
                raise RunNotFound(f"workflow_id: this store knows no run of {ask.workflow_id[:100]!r}")
            await self._refuse_open(ask.workflow_id, row.run)
            info = activity.info()
            await self.store.runs.add_execution(
                row.run, workflow_id=info.workflow_id or "", workflow_run_id=info.workflow_run_id or ""
            )
            run, user_id, opened = row.run, row.user_id, calls.Opened.model_validate(row.opened)
            builtin = opened.builtin
        rows = [row for row in await self.store.effects.of_run(run) if not row.undo]
        if ask.open_only:
            rows = [row for row in rows if row.state in _COULD_BE_UNDONE]
        effects = [await self._with_facts(row, user_id, builtin) for row in rows]
        ref = None
        if len(effects) > 100:
            ref = await self.store.blobs.of(run).put_json([effect.plain() for effect in effects])
        return calls.LoadedEffects(
            run=run,
            user_id=user_id,
            opened=opened,
            effects=tuple(effects if ask.open_only else effects[-100:]),
            count=len(effects),
            effects_ref=ref,
        )

    async def _with_facts(self, row: EffectRow, user_id: str, builtin: Iterable[str]) -> Effect:
        effect = shown(row)
        if not effect.unknown and (row.state is not EffectState.APPLIED or row.undo_shown is not None):
            return effect
        catalog = await self.toolbox.catalog(user_id or row.user_id, builtin=frozenset(builtin))
        definition = catalog.definitions.get(row.tool)
        if definition is None:
            return effect
        tool = facts_of(catalog, definition)
        update = {
            "undo": effect.undo or tool.undo,
            "undo_tool": effect.undo_tool or (tool.undo_tool if effect.unknown or tool.undo_by_effect_id else None),
            "undo_by_effect_id": tool.undo_by_effect_id,
            "verify": tool.verify,
        }
        return effect.model_copy(update=update)

    async def _refuse_open(self, workflow_id: str, run: str) -> None:
        """Refuse while any run of the chain is open; only Temporal knows, since a terminated run never said goodbye."""
        try:
            described = await self.resources.temporal.get_workflow_handle(workflow_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return
            raise StoreUnavailable(f"Temporal does not say whether {workflow_id} is open: {error.message}") from error
        first = described.raw_description.workflow_execution_info.first_run_id
        # A later run may bear the same name; where Temporal does not tell them apart, caution says it is this one.
        if described.status is WorkflowExecutionStatus.RUNNING and (not first or run == f"{workflow_id}/{first}"):
            raise RunOpen(f"{workflow_id} is still open; cancel it or use its own undo first")


_COULD_BE_UNDONE = frozenset({EffectState.APPLIED, EffectState.KEPT, EffectState.DISPATCHED, EffectState.UNKNOWN})


def shown(row: EffectRow) -> Effect:
    """Return what people and workflows see of a row."""
    return row.effect().model_copy(update={"undo_tool": row.undo_tool, "settle_in_s": round(row.lease_left_s, 3)})
