"""The ledger of effects: who may send, and what became of it."""

import secrets
from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, and_, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backstay.effect import LEGAL, EffectState
from backstay.errors import ArgumentsInvalid, EffectConflict
from store.admission import admit_again, admit_first
from store.begun import Begun, Go
from store.bound_undo import BoundUndo
from store.database import Database
from store.effect_row import EffectRow
from store.faults import Collision
from store.intent import Intent
from store.schema import effects

_UNDONE_FROM = frozenset(before for before, after in LEGAL.items() if EffectState.COMPENSATED in after)
_SETTLED_AS = LEGAL[EffectState.DISPATCHED]


class Effects:
    """Keep one row per effect; of all attempts that begin, one at a time is told to go."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Read time from `clock`, in unix seconds."""
        self._database = database
        self._clock = clock

    async def begin(self, intent: Intent, *, idempotency_ttl: float | None, attempt: int, epoch_differs: bool) -> Begun:
        """Record that an attempt is about to send, and say whether it may.

        `idempotency_ttl`: how long after the first send a repeat is harmless; None when it never is. A lost row is
        recorded as unknown, so that it can be resolved like any other.
        """
        try:
            return await self._begin(intent, idempotency_ttl, attempt, epoch_differs=epoch_differs)
        except Collision:
            return await self._begin(intent, idempotency_ttl, attempt, epoch_differs=epoch_differs)

    async def settle(
        self,
        effect_id: str,
        token: str,
        state: EffectState,
        *,
        outcome: str | None = None,
        result_ref: str | None = None,
        undo: BoundUndo | None = None,
    ) -> bool:
        """Record what came of a send; False when it is no longer this attempt's to say."""
        if state not in _SETTLED_AS:
            raise EffectConflict(f"effect {effect_id} cannot go from dispatched to {state}")
        mine = and_(
            effects.c.effect_id == effect_id,
            effects.c.token == token,
            effects.c.token != "",
            effects.c.state == EffectState.DISPATCHED,
        )
        values = {"state": state, "outcome": outcome, "result_ref": result_ref, **_undo_columns(undo)}
        async with self._database.write() as connection:
            settled = await self._set(connection, mine, values)
            if settled and state is EffectState.APPLIED:
                await self._close_parent(connection, effect_id)
            return settled

    async def resolve(
        self,
        effect_id: str,
        *,
        state: EffectState,
        outcome: str | None,
        result_ref: str | None = None,
        undo: BoundUndo | None = None,
    ) -> EffectRow:
        """Record what a check or a person says of an effect; the attempt that sent it may say nothing any more.

        To say again what is recorded changes nothing. Raises EffectConflict while it may still be sent and when the
        row says otherwise, ArgumentsInvalid when there is no row.
        """
        values = {"state": state, "token": "", "outcome": outcome, "result_ref": result_ref, **_undo_columns(undo)}
        return await self._move(effect_id, state, values)

    async def mark(self, effect_id: str, state: EffectState) -> EffectRow:
        """Record that an effect was compensated or kept; its outcome stays. Raises as `resolve`."""
        return await self._move(effect_id, state, {"state": state, "token": ""})

    async def get(self, effect_id: str) -> EffectRow | None:
        """Return what is known of one effect, or None."""
        async with self._database.read() as connection:
            return await _find(connection, effect_id)

    async def of_run(self, run: str) -> list[EffectRow]:
        """Return all effects of a run by number, each before its compensation."""
        chosen = select(effects).where(effects.c.run == run).order_by(effects.c.n, effects.c.undo)
        async with self._database.read() as connection:
            return [EffectRow.model_validate(dict(row)) for row in (await connection.execute(chosen)).mappings()]

    async def _begin(self, intent: Intent, ttl: float | None, attempt: int, *, epoch_differs: bool) -> Begun:
        async with self._database.write() as connection:
            now = self._clock()
            row = await _find(connection, intent.effect_id, lock=True)
            if row is None:
                kind = admit_first(intent, attempt=attempt, epoch_differs=epoch_differs)
                return await self._insert(connection, intent, kind, now)
            kind = admit_again(row, intent, now=now, idempotency_ttl=ttl)
            if kind != "go":
                return Begun(kind=kind, row=row)
            values = {
                "state": EffectState.DISPATCHED,
                "send": intent.send,
                "token": secrets.token_hex(16),
                "lease": intent.lease,
                "outcome": None,
                "result_ref": None,
            }
            unchanged = and_(effects.c.effect_id == row.effect_id, effects.c.token == row.token)
            if not await self._set(connection, unchanged, values):
                raise Collision
            changed = row.model_copy(update={**values, "updated_at": now})
            return Begun(kind="go", token=changed.token, row=changed)

    async def _insert(self, connection: AsyncConnection, intent: Intent, kind: Go, now: float) -> Begun:
        going = kind == "go"
        row = EffectRow(
            **intent.model_dump(exclude={"lease"}),
            lease=intent.lease if going else 0,
            state=EffectState.DISPATCHED if going else EffectState.UNKNOWN,
            token=secrets.token_hex(16) if going else "",
            outcome=None if going else "the record of an earlier attempt is lost",
            first_sent_at=now,
            updated_at=now,
        )
        await connection.execute(insert(effects).values(row.model_dump()))
        return Begun(kind=kind, token=row.token, row=row)

    async def _move(self, effect_id: str, state: EffectState, values: dict[str, Any]) -> EffectRow:
        async with self._database.write() as connection:
            row = await _find(connection, effect_id, lock=True)
            if row is None:
                raise ArgumentsInvalid(f"no effect {effect_id!r} is recorded in this store")
            if row.state is EffectState.DISPATCHED and self._clock() < row.lease:
                raise EffectConflict(f"effect {effect_id} may still be sent until its lease ends; try again then")
            if row.state is state:
                # A person's "did not happen" also closes a send that its own attempt found not sent.
                values = {"token": ""}
            elif state not in LEGAL[row.state]:
                raise EffectConflict(f"effect {effect_id} is recorded as {row.state}, which cannot become {state}")
            await self._set(connection, effects.c.effect_id == effect_id, values)
            if state is EffectState.APPLIED:
                await self._close_parent(connection, effect_id)
            return row.model_copy(update=values)

    async def _close_parent(self, connection: AsyncConnection, effect_id: str) -> None:
        """Mark an effect compensated in the transaction that records its compensation as applied."""
        row = await _find(connection, effect_id)
        if row is None or not row.undo:
            return
        parent = and_(
            effects.c.run == row.run,
            effects.c.n == row.n,
            effects.c.undo.is_(False),
            effects.c.state.in_(_UNDONE_FROM),
        )
        await self._set(connection, parent, {"state": EffectState.COMPENSATED, "token": ""})

    async def _set(self, connection: AsyncConnection, where: ColumnElement[bool], values: dict[str, Any]) -> bool:
        changed = await connection.execute(update(effects).where(where).values(**values, updated_at=self._clock()))
        return changed.rowcount == 1


async def _find(connection: AsyncConnection, effect_id: str, *, lock: bool = False) -> EffectRow | None:
    chosen = select(effects).where(effects.c.effect_id == effect_id)
    row = (await connection.execute(chosen.with_for_update() if lock else chosen)).mappings().one_or_none()
    return None if row is None else EffectRow.model_validate(dict(row))


def _undo_columns(undo: BoundUndo | None) -> dict[str, str]:
    if undo is None:
        return {}
    return {"undo_tool": undo.tool, "undo_sealed": undo.sealed_ref, "undo_shown": undo.shown}
