"""Add schedules and triggers, pause and remove them: in the store, and at Temporal."""

import secrets
import uuid
from typing import Any

from backstay.client import Backstay
from backstay.client.schedules import Schedules
from backstay.client.sending import signed
from backstay.errors import BackstayError, NotVerified, TaskInvalid
from backstay.policies.policy import Policy
from backstay.shown import one_line
from backstay.task.standing import Kind, StandingTask
from store.standing.tasks import KeptTask
from store.store import Store

_KEY_BYTES = 32


class Keeping:
    """Keep the schedules and triggers of one store and one task queue."""

    def __init__(self, backstay: Backstay, store: Store, policy: Policy) -> None:
        """`policy` is the operator's; it says who may have schedules."""
        self.schedules = Schedules(backstay.client, backstay.task_queue)
        self._namespace = backstay.client.namespace
        self._store = store
        self._policy = policy

    async def add(self, asked: dict[str, Any], key: bytes | None) -> str:
        """Add one in the name of `by`; `key` is the approver key. Return the key of a trigger, which is shown once.

        Raises TaskInvalid naming field, value and fix, NotVerified for a proof that does not hold, or SettingsInvalid.
        """
        standing = StandingTask.admit(asked)
        if standing.proof is None:
            payload = standing.model_dump(mode="json", exclude_unset=True)
            standing = StandingTask.admit(signed(key, standing.binding(self._namespace), payload))
        if not self._policy.lets_schedule(standing.by):
            raise TaskInvalid(
                f"by: {one_line(standing.by, 100)} may add no schedules and triggers; policy.yaml names under "
                "scheduling who may"
            )
        await self._prove(standing, key)
        if standing.kind == "trigger":
            made = secrets.token_urlsafe(_KEY_BYTES)
            await self._store.standing.add(standing, made.encode())
            return made
        await self._store.standing.add(standing)
        try:
            await self.schedules.create(standing)
        except BackstayError:
            await self._store.standing.remove(standing.kind, standing.name)
            raise
        return ""

    async def pause(self, kind: Kind, name: str, reason: str) -> None:
        """Start nothing from now on; raises TaskInvalid for a name that is not there."""
        await self.named(kind, name)
        await self._store.standing.pause(kind, name, reason)
        if kind == "schedule":
            await self.schedules.pause(name, reason)

    async def resume(self, kind: Kind, name: str) -> None:
        """Start runs again; raises TaskInvalid for a name that is not there, or an author who may not start any."""
        kept = await self.named(kind, name)
        if not self._policy.lets_schedule(kept.standing.by):
            raise TaskInvalid(
                f"name: {name} is of {one_line(kept.standing.by, 100)}, who may have no schedules; let somebody whom "
                "policy.yaml names under scheduling add it again"
            )
        await self._store.standing.pause(kind, name, "")
        if kind == "schedule" and not await self.schedules.resume(name):
            raise TaskInvalid(f"name: Temporal has lost the schedule {name}; remove it, and add it again")

    async def run_now(self, name: str) -> None:
        """Start a run of a schedule now; raises TaskInvalid for one that is not there, or is paused."""
        kept = await self.named("schedule", name)
        if kept.paused:
            raise TaskInvalid(f"name: {name} is paused ({one_line(kept.paused, 200)}); resume it first")
        if not await self.schedules.run_now(name):
            raise TaskInvalid(f"name: Temporal has lost the schedule {name}; remove it, and add it again")

    async def remove(self, kind: Kind, name: str) -> None:
        """Forget one; runs that it has started go on. Raises TaskInvalid for a name that is not there."""
        if kind == "schedule":
            await self.schedules.remove(name)
        if not await self._store.standing.remove(kind, name):
            raise _unknown(kind, name)

    async def named(self, kind: Kind, name: str) -> KeptTask:
        """Return the one of that name; raises TaskInvalid."""
        kept = await self._store.standing.get(kind, name)
        if kept is None:
            raise _unknown(kind, name)
        return kept

    async def _prove(self, standing: StandingTask, key: bytes | None) -> None:
        payload = standing.model_dump(mode="json", exclude_unset=True)
        binding, run = standing.binding(self._namespace), f"{standing.kind}-{standing.name}"
        used_by = f"{binding.update} {uuid.uuid4()}"
        proven = await self._store.decisions.prove(key, binding, payload, run=run, used_by=used_by)
        if not proven.verified or proven.used:
            raise NotVerified(f"proof: {proven.reason or 'used already; sign it again'}")


def _unknown(kind: Kind, name: str) -> TaskInvalid:
    return TaskInvalid(f"name: there is no {kind} {one_line(name, 80)}; see `backstay {kind} list`")
