"""Say what an undo of a run would undo, whether that is what a person agreed to, and who may stop a run."""

from typing import Any, NamedTuple

from backstay.approvals import approvers
from backstay.authority import Authority
from backstay.canonical import digest_of
from backstay.errors import BackstayError, NotVerified
from backstay.policies.policy import Policy
from people.runs.finding import KnownRun, RunSources

MOST_UNDO = 100
"""How many effects a preview names, unless all are asked for."""
_DIGITS = 32


class UndoPreview(NamedTuple):
    """Hold what would be undone, and what names exactly that."""

    undo: dict[str, Any]
    digest: str

    @property
    def newest(self) -> int:
        """Return the number of the newest effect that would be undone; 0 where there is none."""
        return max((effect["effect"] for effect in self.undo["effects"]), default=0)

    def is_what_was_seen(self, digest: str) -> bool:
        """Return whether this is what a person saw, who says so by its digest."""
        return digest == self.digest


async def preview(
    sources: RunSources,
    found: KnownRun,
    to_step: int | None = None,
    *,
    deed: str = "undo",
    most: int | None = MOST_UNDO,
) -> UndoPreview:
    """Return what an undo would do now; raises Pruned when nothing of it is known any more.

    `deed` is what the person agrees to. Of a run that the store at hand does not have, the run says it.
    """
    if found.row is not None:
        found.row.require_not_pruned()
        undo = await undo_of(sources, found, to_step, most=most)
    else:
        first = 0 if to_step is None else to_step + 1
        told = await sources.asked().run(found.workflow_id).preview()
        effects = [effect for effect in told.get("effects", []) if effect["step"] >= first]
        undo = {"count": told.get("count", 0) - len(told.get("effects", [])) + len(effects), "effects": effects}
    seen = [[effect.get(name) for name in ("effect", "shown", "unknown", "later")] for effect in undo["effects"]]
    return UndoPreview(undo, digest_of([deed, to_step, found.run, undo["count"], seen])[:_DIGITS])


async def undo_of(
    sources: RunSources, found: KnownRun, to_step: int | None = None, *, most: int | None = MOST_UNDO
) -> dict[str, Any]:
    """Return what an undo would do now, last first, as the run itself would say it.

    `to_step`: only what came after that step; `most`: how many effects it names, None for all.
    """
    store = sources.store
    if store is None or found.row is None or found.row.pruned_at is not None:
        return {"count": 0, "effects": []}
    count, _ = await store.effects.authorities_of_open(found.run, to_step=to_step)
    rows = await store.effects.open_of_run(found.run, to_step=to_step, limit=most)
    asked = await store.subruns.arguments_of(rows)
    later = await store.touching.later(found.run, rows)
    effects = [
        {
            "effect": row.n,
            "tool": row.tool,
            "step": row.step,
            "arguments": asked.get(row.n, {}),
            "shown": row.undo_shown,
            "unknown": row.effect().unknown,
            "later": [touch.plain() for touch in later.get(row.n, ())],
            **({"made_by": row.made_by} if row.made_by else {}),
        }
        for row in rows
    ]
    return {"count": count, "effects": effects}


def require_may_stop(found: KnownRun, by: str, *, signs: bool) -> None:
    """Raise NotVerified or DecisionRefused where the policy of a run names who may stop it, and not this person.

    `signs`: whether this door proves who asks.
    """
    authority = authority_over(found).for_stopping()
    refused: BackstayError | None = approvers.refused_person(authority, by, "the page knows who asks", frozenset())
    if authority.restricts and not signs:
        refused = NotVerified("this page has no approver key, so nobody can be sure who asks")
    if refused is not None:
        raise refused


def authority_over(found: KnownRun) -> Authority:
    """Return who may change a run as a whole, by the policy with which it began."""
    given = {} if found.row is None else found.row.opened.get("policy")
    return approvers.authority_over_run(Policy.model_validate(given)) if given else Authority()
