"""Runs as workers record them, small and large, for tests of the ledger."""

import contextlib
from datetime import UTC, datetime

from backstay.approvals.approval import RecordedDecision
from backstay.effects.effect import EffectState
from backstay.task.event import Event
from backstay.task.ledger.keys import PublicKeys, Signer, Verifier
from store.effects.types import Intent
from store.opening import open_store

KEY, SIGNER = Signer.make()
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()
DAY = 86_400
FIRST = {"idempotency_ttl": None, "attempt": 1, "epoch_differs": False}


class Clock:
    def __init__(self, now=NOON):
        self.now = now

    def __call__(self):
        return self.now


def keys_of(*signers, first="2026-01-01", last=""):
    return PublicKeys([Verifier(signer.verifier.public, first, last) for signer in signers or (SIGNER,)])


@contextlib.asynccontextmanager
async def a_store(home, url=None, *, signer=SIGNER, clock=None):
    async with open_store(database_url=url, home=home, signer=signer, clock=clock or Clock()) as store:
        yield store


def event(n, name="action.called", **data):
    return Event(
        n=n, name=name, at=f"2026-03-04T12:00:{n % 60:02}.000+00:00", step_index=n, text=f"step {n}", data=data
    )


async def begin(store, run, steps=1):
    """Record the beginning of a run and some steps of it, each with an effect and a decision."""
    workflow_id, _, first = run.rpartition("/")
    named = {"run": run, "workflow_id": workflow_id, "workflow_run_id": first, "user_id": "ana", "text": "send it"}
    await store.runs.opened(**named, opened={"model": "m", "policy_hash": "p"})
    for n in range(1, steps + 1):
        await step(store, run, n)


async def step(store, run, n):
    decided = {"n": n, "at": f"{n}", "update": "decide", "by": "ana@example.com", "verified": True}
    decision = RecordedDecision(**decided, verdict="approve", request_id=f"r{n}")
    intent = Intent(
        effect_id=f"{run}/{n}", run=run, n=n, tool="mail.send", args_digest="d", step=n, lease_s=30, user_id="ana",
        decisions=(decision,), ruling="ask: mail.* asks",
    )  # fmt: skip
    begun = await store.effects.begin(intent, **FIRST)
    await store.effects.settle(intent.effect_id, begun.token, EffectState.APPLIED, result_ref="ref")
    await store.events.append(run, [event(n, pin="4711")])


async def whole(store, run, steps=1):
    """Record a run from beginning to end, and return its head."""
    await begin(store, run, steps)
    return await store.runs.closed(run, {"outcome": "completed", "success": True})


async def chain_of(store, run):
    return await anext(store.chains.read([run]))
