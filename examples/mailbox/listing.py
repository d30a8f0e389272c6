"""Collect the pages of a paged tool from a conversation."""

from typing import Any

from backstay.testing import Call, Conversation, payload_of

PAGE = 10
"""Rows per page: few enough for an answer to come back whole."""
TRIES = 3


class Listing:
    """Collect the rows that were read so far, and list the calls that are still needed."""

    def __init__(self, conversation: Conversation, tool: str, key: str, wanted: dict[str, Any]) -> None:
        self.key = key
        self.fault: str | None = None
        self._tool = tool
        self._wanted = wanted
        self._pages: dict[int, list[dict[str, Any]]] = {}
        self._ends: dict[int, bool] = {}
        self._reads: list[tuple[str, dict[str, Any]]] = []
        self._total: int | None = None
        failures = [self._fault(conversation, call) for call in conversation.calls(tool) if call.answered]
        faults = [fault for fault in failures if fault]
        if len(faults) >= TRIES:
            self.fault = faults[-1]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return all rows that were read so far, in order."""
        return [row for _, page in sorted(self._pages.items()) for row in page]

    def next_calls(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the calls that are still needed; none if everything was read."""
        if self._reads:
            return self._reads
        if self._total is not None:
            offsets = [offset for offset in range(0, self._total, PAGE) if offset not in self._pages]
        elif not self._pages:
            offsets = [0]
        else:
            last = max(self._pages)
            offsets = [] if self._ends[last] else [last + PAGE]
        return [(self._tool, {**self._wanted, "offset": offset, "limit": PAGE}) for offset in offsets]

    def _fault(self, conversation: Conversation, call: Call) -> str | None:
        """Add the rows of one answered call; return what went wrong, if anything."""
        offset = int(call.arguments.get("offset", 0))
        page = payload_of(call.answer)
        if isinstance(page, dict) and isinstance(page.get(self.key), list):
            self._total = page.get("total")
            self._keep(offset, page[self.key], ended=not page.get("has_more"))
            return None
        ref = call.answer.get("storage_ref") or call.answer.get("ref") if isinstance(call.answer, dict) else None
        if ref is None or call.answer.get("error"):
            return reason(call.answer)
        return self._in_parts(conversation, offset, str(ref))

    def _in_parts(self, conversation: Conversation, offset: int, ref: str) -> str | None:
        rows: list[dict[str, Any]] = []
        for read in conversation.calls("read_result"):
            if read.arguments.get("ref") == ref and read.answered:
                part = payload_of(read.answer)
                part = part.get("data") if isinstance(part, dict) else part
                if not isinstance(part, list):
                    return reason(read.answer)
                rows.extend(part)
                if len(part) < PAGE // 2:
                    self._keep(offset, rows, ended=len(rows) < PAGE)
                    return None
        part = {"ref": ref, "path": self.key, "offset": len(rows), "limit": PAGE // 2}
        self._reads.append(("read_result", part))
        return None

    def _keep(self, offset: int, rows: list[dict[str, Any]], *, ended: bool) -> None:
        self._pages[offset] = rows
        self._ends[offset] = ended


def reason(answer: Any) -> str:
    """Return in one line why an answer has no payload."""
    if isinstance(answer, dict):
        answer = answer.get("error") or answer.get("notes") or "no reason was given"
    return " ".join(str(answer).split())[:200]
