"""The command `policy try`: rule on every call that was recorded under another policy, without a model."""

import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from backstay.errors import BackstayError
from backstay.settings import Settings
from backstay.shown import one_line
from backstay.task.ledger.chain import time_of
from backstay.tools.recipients import call_line
from gateways.terminal.exit_codes import DONE
from gateways.terminal.flags import Output, User, duration
from gateways.terminal.policies.testing import facts_of_all, policy_of, ruling_on
from gateways.terminal.session import open_store, require_store
from gateways.terminal.terminal import Terminal

_CALLED = frozenset({"action.called", "action.failed"})
_WIDTH = 300
_DONE_WORDS = {"allow": "allowed", "ask": "asked", "deny": "denied"}


class RecordedCall(NamedTuple):
    """Hold one call as it was recorded."""

    run: str
    at: str
    tool: str
    told: dict[str, Any]
    """Its arguments as the timeline shows them."""
    arguments: dict[str, Any] | None
    """As they were sent, which nobody is shown; None where they are not known any more."""
    was: str
    """What the policy of that time said: allow, ask or deny."""
    rejected_by: str
    """Who rejected it; empty where nobody did."""


async def try_policy(policy: Path, *, since: str = "30d", user: User = "singleton", output: Output = "text") -> int:
    """Rule on every call that was recorded under another policy, without a model, and say what would be different.

    Where arguments came from, and what people accepted for later, is not looked at.

    Parameters
    ----------
    policy
        The file of the other policy.
    since
        How far back, such as 30d or 12h.
    """
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    tried = policy_of(policy, "policy")
    begins = time_of(time.time() - duration(since, "--since"))
    facts = await facts_of_all(settings, user)
    rows: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    async with open_store(settings) as store:
        async for call in _calls(store, begins):
            counts["calls"] += 1
            ruling = None if call.arguments is None else ruling_on(tried, facts, call.tool, call.arguments)
            if ruling is None or not call.was:
                counts["unknown"] += 1
            elif ruling.verdict != call.was:
                told = {"run": call.run, "at": call.at, "tool": call.tool, "told": call.told, "was": call.was}
                rejected = {"rejected_by": call.rejected_by}
                rows.append(told | rejected | {"now": ruling.verdict, "by": ruling.rule})
    found = {"calls": counts["calls"], "unknown": counts["unknown"], "different": rows}
    terminal.results(output, found, [*map(_told, rows), *_summary(found)])
    return DONE


async def _calls(store: Any, since: str) -> AsyncIterator[RecordedCall]:
    async for chain in store.chains.read(since=since):
        sealed: dict[int, Any] = {}
        for effect in await store.effects.of_run(chain.run):
            if not effect.undo and effect.arguments_sealed is not None:
                sealed[effect.n] = effect.arguments_sealed
        for row in chain.rows:
            if row.kind == "event" and row.name in _CALLED and row.at >= since:
                body = json.loads(row.body)
                arguments = await _arguments(store, chain.run, body["data"], sealed)
                was, who = _said(body)
                tool, told = str(body["data"].get("tool", "")), body["data"].get("arguments", {})
                yield RecordedCall(chain.run, row.at, tool, told, arguments, was, who)


async def _arguments(store: Any, run: str, data: dict[str, Any], sealed: dict[int, Any]) -> dict[str, Any] | None:
    """Return the arguments of a call: as they were sent, or as the timeline shows them where it shows all of them."""
    ref = sealed.get(data.get("effect", 0))
    if ref is not None:
        try:
            return await store.blobs.of(run).unseal_json(ref)
        except BackstayError:
            return None
    return None if data.get("clipped") else data.get("arguments")


def _said(body: dict[str, Any]) -> tuple[str, str]:
    """Return what the policy of that time said of a call, and who rejected it."""
    match body["data"].get("type"):
        case "Denied":
            return "deny", ""
        case "Rejected":
            return "ask", body["data"].get("by", "")
        case _:
            return body.get("ruling", "").partition(":")[0], ""


def _told(row: dict[str, Any]) -> str:
    rejected = f", rejected by {row['rejected_by']}" if row["rejected_by"] else ""
    return one_line(
        f"{row['at'][:16]} {call_line(row['tool'], row['told'])}: was {_DONE_WORDS[row['was']]}{rejected}, "
        f"now {_DONE_WORDS[row['now']]} ({row['by']})",
        _WIDTH,
    )


def _summary(found: dict[str, Any]) -> list[str]:
    parts: list[str] = []
    for verdict, word in _DONE_WORDS.items():
        rows = [row for row in found["different"] if row["now"] == verdict]
        rejected = Counter(row["rejected_by"] for row in rows if row["rejected_by"])
        by = ", ".join(f"{count} were rejected by {who}" for who, count in rejected.items())
        if rows:
            parts.append(f"{len(rows)} now {word}{f', of which {by}' if by else ''}")
    unknown = f"; of {found['unknown']} not enough is known" if found["unknown"] else ""
    return [f"{found['calls']} calls: {'; '.join(parts) or 'nothing is different'}{unknown}"]
