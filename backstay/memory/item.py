"""One thing that is remembered of a run, whose it is, and how it is told."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from backstay.frozen import Frozen
from backstay.provenance.source import MODEL, is_others
from backstay.shown import NOBODY, one_line

ItemKind = Literal["run_metadata", "tool_call", "tool_output", "final_answer"]
UNKNOWN_SOURCE = "!engine.recall"
"""The source of what nobody recorded one for: others may have written it."""
TOLD_CHARACTERS = 700
"""How much of an item a model is told."""


class MemoryItem(Frozen):
    """Refer to a part of a run's record; its text is there and nowhere else."""

    id: int = 0
    """Given by the store."""
    run: str
    n: int
    """Its place in the run: 0 for what the run was about, then the numbers of events, and the answer last."""
    owner: str
    """The user whose memory it is."""
    kind: ItemKind
    tool: str = ""
    ref: str = ""
    """The stored result of a tool's output."""
    source: str = UNKNOWN_SOURCE
    """The code of whose words it holds."""
    written_by: str = ""
    """The person, tool or model that wrote it."""
    approved_by: str = ""
    """The person who let the call go."""
    session_id: str | None = None
    at: float = 0
    """When it happened, in unix seconds."""
    size: int = 0
    """How many different words it has."""


class RecalledItem(Frozen):
    """Hold an item with its text, as far as that is told."""

    item: MemoryItem
    text: str
    is_cut: bool = False
    """Whether only a part of the text is told."""
    asked: Any = None
    """The arguments of the call that an own answer came from: for what it only repeats of them it does not vouch."""

    @property
    def content(self) -> Literal["own", "others", "model"]:
        """Return whose words it holds, in one word."""
        if is_others(self.item.source):
            return "others"
        return "model" if self.item.source == MODEL else "own"

    def told(self) -> dict[str, Any]:
        """Return it as models, people and other programs read it."""
        item = self.item
        told: dict[str, Any] = {
            "id": item.id,
            "run": one_line(item.run.rpartition("/")[0], 200),
            "date": datetime.fromtimestamp(item.at, UTC).date().isoformat(),
            "kind": item.kind,
            "text": self.text,
            "source": self.content,
            "written_by": one_line(item.written_by, 200),
        }
        told |= {"tool": one_line(item.tool, 200)} if item.tool else {}
        return told | ({"approved_by": one_line(item.approved_by, 200)} if item.approved_by else {})


def owner_of(user_id: str, started_by: str, may_act_for: Collection[str]) -> str:
    """Return whose memory a run reads and fills; nothing where nobody proved to have started it.

    A task that names no user is its starter's. One for somebody else is that user's only where the operator lists the
    service that started it. Such a service acts for many, so what it starts without naming one is nobody's.
    """
    names_nobody = user_id in {NOBODY, ""}
    if started_by in {NOBODY, ""} or (names_nobody and started_by in may_act_for):
        return ""
    if names_nobody or user_id == started_by:
        return started_by
    return user_id if started_by in may_act_for else ""


def least_trusted(codes: Sequence[str]) -> str:
    """Return the source of what a model wrote after it had read all of these: others' words, or its own.

    A model's text never vouches for anything, whatever it was written from.
    """
    others = next((code for code in codes if is_others(code)), None)
    return MODEL if others is None else without_ref(others)


def without_ref(code: str) -> str:
    """Return a source without the stored result in it, which another run cannot read."""
    return code.partition(" ")[0]
