"""Answer a model that asks what earlier runs of the same user have left."""

from typing import Any

from activities.retrying import implements
from activities.runs.remembering import MemoryActivities
from backstay import calls
from backstay.memory.item import TOLD_CHARACTERS, RecalledItem
from backstay.provenance.source import doubted
from backstay.redaction.handles import escape_lookalikes
from backstay.tools.tool import ToolResult

_AROUND = 400
"""The words around the text of an item take at most this many bytes."""
_LEAST = 120
_WHOLE_UNDER = 32_768
NOTHING = "Nothing is remembered about this."


class Recalling(MemoryActivities):
    """Implement `recall`."""

    @implements(calls.recall)
    async def recall(self, ask: calls.RecallMemory) -> ToolResult:
        """Search the memory of the run's user, and store what is found as a digest."""
        await self.begin(ask)
        row = await self.row(ask.run)
        owner = self.owner(row)
        if row is None or not owner or not _reads(row.opened):
            error = "recall: this run has no memory; it is not proven to be that of a user, or its profile reads none"
            return ToolResult(success=False, error=error, error_type="Denied")
        room = (self.records.digest_characters - _AROUND) // max(ask.limit, 1) - _AROUND
        most = max(_LEAST, min(TOLD_CHARACTERS, room))
        found = await self.store.memory.search(owner, ask.query, limit=ask.limit, without=ask.run, most=most)
        payload: dict[str, Any] = {"items": [recalled.told() for recalled in found]}
        payload |= {} if found else {"note": NOTHING}
        shown = (await self.records.show(ask.run, payload, "memory")).payload
        # A handle of another run is none here.
        said = escape_lookalikes(shown, self.records.secrets.kept(ask.run).handles)
        asked = [recalled.asked for recalled in found]
        codes = [_code(recalled) for recalled in found]
        kept = await self.records.write(
            ask.run, "recall", said, whole_under=_WHOLE_UNDER, read=codes, asked=asked if any(asked) else None
        )
        runs = len({recalled.item.run for recalled in found})
        return ToolResult(
            success=True, ref=kept.ref, snippet=f"{len(found)} items of {runs} runs" if found else "nothing"
        )


def _reads(opened: dict[str, Any]) -> bool:
    return bool(opened.get("profile", {}).get("memory", {}).get("read"))


def _code(recalled: RecalledItem) -> str:
    """Return as whose words an item counts; a part of a table does not tell which of its fields vouch for what."""
    return doubted(recalled.item.source) if recalled.is_cut else recalled.item.source
