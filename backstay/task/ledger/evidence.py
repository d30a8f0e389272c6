"""A file that verifies by itself: chains with their rows, and the public keys that were known."""

import json
from collections.abc import Iterable
from typing import Any

from backstay.errors import SettingsInvalid
from backstay.task.ledger.chain import Chain, ChainHead, Root, Row
from backstay.task.ledger.findings import Findings, findings_of
from backstay.task.ledger.keys import PublicKeys, read_keys
from backstay.task.ledger.verifying import ChainAnchor, ChainFault, ChainReport, first_day_of, verify_run

FORMAT = "backstay ledger evidence 1"


def evidence_of(
    store: str, chains: Iterable[Chain], keys: PublicKeys, made_at: str, first_root: Root | None
) -> dict[str, Any]:
    """Return the evidence about these chains; the first root says since when there was a key."""
    runs = [
        {
            "run": chain.run,
            "pruned": chain.pruned,
            "head": None if chain.head is None else chain.head._asdict(),
            "rows": [row._asdict() for row in chain.rows],
        }
        for chain in chains
    ]
    # Which runs the root names stays in the store; its signature covers the hash of them.
    root = None if first_root is None else first_root._replace(heads="")._asdict()
    told = {"format": FORMAT, "store": store, "made_at": made_at, "public_keys": keys.lines}
    return told | {"first_root": root, "runs": runs}


def verify_evidence(text: str, where: str, keys: PublicKeys | None = None, *, kept_from: str = "") -> Findings:
    """Verify a file of evidence with these keys, or with those that are in it; raises SettingsInvalid.

    `kept_from`: since when the rows of a run must be there, also where the file says that it was pruned.
    """
    try:
        store, own, first_root, chains = _read(json.loads(text), where)
    except (ValueError, KeyError, TypeError):
        raise SettingsInvalid(f"{where}: this is not evidence; give what `backstay audit export` writes") from None
    used = own if keys is None else keys
    first_day = first_day_of(first_root, used, store)
    expected = ChainAnchor(store=store, kept_from=kept_from, first_day=first_day)
    found = [_verified(chain, used, expected.model_copy(update={"pruned": chain.pruned})) for chain in chains]
    said = {"in_evidence": True, "keys_in_evidence": keys is None}
    return findings_of(store, found, (), used).model_copy(update=said)


def _read(said: Any, where: str) -> tuple[str, PublicKeys, Root | None, list[Chain]]:
    """Return what a file of evidence holds; raises KeyError, TypeError or ValueError for another file."""
    if said["format"] != FORMAT:
        raise ValueError(FORMAT)
    keys = read_keys("\n".join(map(str, said["public_keys"])), where)
    root = None if said["first_root"] is None else _typed(Root, said["first_root"])
    return str(said["store"]), keys, root, [_chain(chain) for chain in said["runs"]]


def _verified(chain: Chain, keys: PublicKeys, expected: ChainAnchor) -> ChainReport:
    found = verify_run(chain.head, chain.rows, keys, expected)
    if chain.head is not None and chain.head.run == chain.run:
        return found
    return found.model_copy(update={"run": chain.run, "faults": (*found.faults, ChainFault(what="another run's head"))})


def _chain(said: Any) -> Chain:
    head = None if said["head"] is None else _typed(ChainHead, said["head"])
    return Chain(str(said["run"]), head, [_typed(Row, row) for row in said["rows"]], bool(said["pruned"]))


def _typed(kind: Any, said: Any) -> Any:
    """Return a row or a head; raises TypeError or KeyError for fields of another kind."""
    made = kind(**said)
    for name, wanted in kind.__annotations__.items():
        if type(getattr(made, name)) is not wanted:
            raise TypeError(name)
    return made
