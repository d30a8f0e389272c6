"""Let a run go on from one that has ended: check whose it is, take its context over, and leave one behind."""

import structlog

from activities.model.opaque import FIELD
from activities.model.request import prompt
from activities.model.transcript import Item, Transcripts, Utterance, said_by
from activities.resources import Activities, Resources
from backstay import calls
from backstay.approvals.approvers import restricts_anybody
from backstay.canonical import canonical
from backstay.effects.effect import EffectState
from backstay.errors import BackstayError, Pruned, StoreUnavailable, TaskInvalid
from backstay.policies.policy import Policy
from backstay.shown import one_line
from backstay.task.result import Result
from backstay.task.task import Task
from store.runs.runs import RunRow

MOST_UNDONE = 20
"""How many effects that were undone after the end of their run are named, the last ones."""
_log = structlog.get_logger("backstay.runs")


class Following(Activities):
    """Take over what a run has left, and leave what a later one needs."""

    def __init__(self, resources: Resources, transcripts: Transcripts) -> None:
        """Share the worker's transcripts."""
        super().__init__(resources)
        self.transcripts = transcripts

    async def admitted(self, run: str, task: Task, policy: Policy, started_by: str) -> tuple[RunRow | None, Policy]:
        """Return the run that a task follows, None when it follows none, and the policy that then holds.

        What the task of the followed run ruled goes on to rule: its answers and its handles are taken over. Raises
        TaskInvalid when it may not be followed, or cannot be.
        """
        if task.follows is None:
            return None, policy
        row = await self.store.runs.get(task.follows.workflow_id, task.follows.run_id)
        if row is None or row.run == run:
            named = one_line(f"{task.follows.workflow_id}/{task.follows.run_id}", 160)
            raise TaskInvalid(f"follows: this store knows no run {named}; `backstay list` shows the runs")
        if row.pruned_at is None and row.opened:
            policy = _as_strict_as(row, policy)
        if (why := _refusal(row, task, policy, started_by)) is not None:
            raise TaskInvalid(f"follows: {why}")
        return row, policy

    async def take_over(self, run: str, followed: RunRow) -> None:
        """Let a run use the handles and the refs of the one that it follows; raises TaskInvalid when it is pruned."""
        try:
            await self.store.runs.take_handles(run, followed.run)
        except Pruned as error:
            raise TaskInvalid(f"follows: {error}") from None
        await self.store.blobs.of(run).follow(followed.run)

    async def first_context(
        self, run: str, followed: RunRow, items: list[Item], said: list[Utterance], *, proven: bool
    ) -> str:
        """Store how the run begins, after the context of the one that it follows; return the ref.

        `proven`: whether what a person says vouches for a value only when it is proven who that is.
        """
        told: Item = {"kind": "fact", "text": prompt("following", undone=await self._undone_since(followed))}
        place = next(place for place, item in enumerate(items) if item["kind"] == "task")
        unproven = proven and not calls.OpenedRun.model_validate(followed.opened).policy.vouches_by_name
        items = [*items[:place], told, *items[place:]]
        return await self.transcripts.follow(run, followed.context or "", items, said, unproven=unproven)

    async def weight(self, run: str, context: str) -> int:
        """Return how many bytes of a context the model is shown at most."""
        transcript = await self.transcripts.load(run, context)
        # Whose model goes on with it is not known yet: it may be the one that what stands apart belongs to.
        beside = sum(item[FIELD]["bytes"] for item in transcript.items if FIELD in item)
        return min(transcript.weight + beside, self.transcripts.window)

    async def leave(self, ask: calls.CloseRun) -> str | None:
        """Store how the run ended behind its context, and return the ref for runs that follow it.

        None when there is none: nobody can follow the run then, and it ends all the same.
        """
        if not ask.context:
            return None
        try:
            return await self._left(ask)
        except StoreUnavailable:
            raise
        except BackstayError as error:
            _log.warning("run.not_to_be_followed", run=ask.run, reason=str(error))
            return None

    async def _left(self, ask: calls.CloseRun) -> str:
        transcript = await self.transcripts.load(ask.run, ask.context)
        items = await self.transcripts.items_of(ask.run, ask.append)
        said = said_by(transcript, ask.append, items, await self.catalog(ask, ask.user_id))
        transcript = transcript.with_items(items, said)
        # A model endpoint refuses a conversation in which a call has no answer.
        note = canonical({"note": "the run ended here"})
        answers = [{"kind": "answer", "call_id": call_id, "text": note} for call_id in transcript.open_calls()]
        kept = (await self.records.write(ask.run, "result", _told(ask.result))).ref
        ended = canonical(await self.records.digest(ask.run, kept))
        last = {"kind": "note", "text": prompt("ended", ended=ended)}
        transcript = transcript.with_items([*answers, last], [Utterance("!engine.result", kept)])
        return (await self.transcripts.extend(ask.run, transcript, [])).ref

    async def _undone_since(self, followed: RunRow) -> list[str]:
        """Return which effects of the earlier runs were undone after these had ended, in words."""
        found: list[str] = []
        for row in await self.store.runs.earlier(followed):
            known = {undone.effect for undone in Result.model_validate(row.result).undone} if row.result else set[int]()
            found += [
                f"{effect.tool} (effect {effect.n} of {one_line(row.workflow_id, 80)})"
                for effect in await self.store.effects.of_run(row.run)
                if not effect.undo and effect.state is EffectState.COMPENSATED and effect.n not in known
            ]
        return found[-MOST_UNDONE:]


def _as_strict_as(row: RunRow, policy: Policy) -> Policy:
    """Return a policy under which the rules of the followed run's own tasks hold, too; the operator's is today's."""
    *own, _ = calls.OpenedRun.model_validate(row.opened).policy.layers
    for layer in reversed([layer.model_copy(update={"floor": None}) for layer in own]):
        if layer not in [known.model_copy(update={"floor": None}) for known in policy.layers]:
            policy = layer.model_copy(update={"floor": policy})
    return policy


def _refusal(row: RunRow, task: Task, policy: Policy, started_by: str) -> str | None:
    """Return why a task may not follow a run, or None."""
    name = one_line(row.workflow_id, 100)
    if row.pruned_at is not None:
        return f"{name} was pruned, so nothing is left of it to go on from; start a new run"
    if not row.opened:
        # A store that was restored knows only the end of a run that began after the backup.
        return f"the store does not know how {name} began; start a new run"
    if row.user_id != task.user_id:
        return f"{name} belongs to another user; a run can only follow one of its own user_id"
    if row.session_id != task.session_id:
        return f"{name} belongs to another session; a run can only follow one of its own session_id"
    if row.state != "closed":
        return (
            f"{name} has not ended; send it a message while it works, or wait for its end. "
            "A run that was terminated in Temporal cannot be followed"
        )
    if row.context is None:
        return f"{name} left no context when it ended; start a new run"
    if not restricts_anybody(policy):
        return None
    if not started_by:
        return "proof: required to follow a run, because the policy names who may decide; start it with by and proof"
    by = str(row.opened.get("started_by") or "")
    if by != started_by:
        who = f"{one_line(by, 100)} has" if by else "nobody has"
        return f"{who} proved to have started {name}, and only the same person may go on from it"
    return None


def _told(result: Result) -> dict[str, object]:
    """Return what the model of a later run is told of how this one ended."""
    told = {
        "outcome": result.outcome.value,
        "summary": result.final_summary,
        "outputs": result.raw_outputs,
        "output": result.output,
        "error": None if result.error is None else result.error.message,
        "undone": [f"{undone.tool}: {undone.state}" for undone in result.undone],
    }
    return {name: value for name, value in told.items() if value}
