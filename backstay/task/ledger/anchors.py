"""Read what somebody kept of a ledger elsewhere: daily roots, the Result of a run, or the memo of its workflow."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from backstay.errors import SettingsInvalid
from backstay.task.ledger.chain import Root, head_name

MEMO = "BackstayLedgerHead"
"""The field of a memo that holds the head, as `ledger_head` of a Result does."""
ROOTS = "backstay ledger roots 1"
_EXAMPLE = "what `backstay audit roots` prints, a Result, or a memo"


class KeptHead(NamedTuple):
    """Name a head that was kept elsewhere."""

    n: int
    hash: str
    workflow_id: str
    """Empty where what was kept does not say so."""

    @property
    def name(self) -> str:
        """Return what a Result tells of it."""
        return head_name(self.n, self.hash)


class KeptRoot(NamedTuple):
    """Name a daily root that was kept elsewhere."""

    n: int
    day: str
    hash: str


class Anchors(NamedTuple):
    """Hold what was kept elsewhere."""

    heads: tuple[KeptHead, ...] = ()
    roots: tuple[KeptRoot, ...] = ()
    store: str = ""


def read_anchors(text: str, where: str) -> Anchors:
    """Read anchors from JSON, or from JSON lines; raises SettingsInvalid."""
    heads: list[KeptHead] = []
    roots: list[KeptRoot] = []
    store = ""
    for said in _values(text, where):
        match said:
            case {"format": str(form), "store": str(store), "roots": list(listed)} if form == ROOTS:
                roots += [_root(root, where) for root in listed]
            case {"ledger_head": str(head)} | {"BackstayLedgerHead": str(head)}:
                heads.append(_head(head, str(said.get("workflow_id", "")), where))
            case _:
                raise SettingsInvalid(f"{where}: this is not an anchor; give {_EXAMPLE}")
    return Anchors(tuple(heads), tuple(roots), store)


def roots_told(store: str, roots: Sequence[Root]) -> dict[str, Any]:
    """Return daily roots as they are kept elsewhere; which heads they name stays in the store."""
    named = ("n", "day", "at", "hash", "key", "signature")
    return {
        "format": ROOTS,
        "store": store,
        "roots": [{name: getattr(root, name) for name in named} for root in roots],
    }


def root_faults(anchors: Anchors, roots: Sequence[Root], where: str) -> list[str]:
    """Return how the roots of a store differ from those that were kept elsewhere."""
    known = {root.n: root.hash for root in roots}
    faults: list[str] = []
    for kept in anchors.roots:
        if kept.n not in known:
            faults.append(f"{where} has root {kept.n} of {kept.day}, which is missing here: this is an older copy")
        elif known[kept.n] != kept.hash:
            faults.append(f"{where} has another root {kept.n} of {kept.day} than this store")
    return faults


def _values(text: str, where: str) -> Iterable[Any]:
    try:
        said = json.loads(text)
    except ValueError:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise SettingsInvalid(f"{where}: this is not JSON; give {_EXAMPLE}") from None
    return said if isinstance(said, list) else [said]


def _head(name: str, workflow_id: str, where: str) -> KeptHead:
    n, _, end = name.partition(".")
    if not n.isdecimal() or not end:
        raise SettingsInvalid(f"{where}: {name[:100]!r} is not the head of a ledger; give {_EXAMPLE}")
    return KeptHead(int(n), end, workflow_id)


def _root(said: Any, where: str) -> KeptRoot:
    match said:
        case {"n": int(n), "day": str(day), "hash": str(end)}:
            return KeptRoot(n, day, end)
        case _:
            raise SettingsInvalid(f"{where}: {str(said)[:100]!r} is not a daily root; give {_EXAMPLE}")
