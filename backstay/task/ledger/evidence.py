"""A file that verifies by itself: chains with their rows, and the public keys that were known."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from backstay.errors import SettingsInvalid
from backstay.task.ledger.chain import Head, Row
from backstay.task.ledger.findings import Findings, findings_of
from backstay.task.ledger.keys import PublicKeys, read_keys
from backstay.task.ledger.verifying import Expected, Fault, Verified, verify_run

FORMAT = "backstay ledger evidence 1"


class Chained(NamedTuple):
    """Hold the chain of one run, as the evidence has it."""

    run: str
    head: Head | None
    rows: Sequence[Row]
    pruned: bool


def evidence_of(store: str, chains: Iterable[Chained], keys: PublicKeys, made_at: str) -> dict[str, Any]:
    """Return the evidence about these chains."""
    runs = [
        {
            "run": chain.run,
            "pruned": chain.pruned,
            "head": None if chain.head is None else chain.head._asdict(),
            "rows": [row._asdict() for row in chain.rows],
        }
        for chain in chains
    ]
    return {"format": FORMAT, "store": store, "made_at": made_at, "public_keys": keys.lines, "runs": runs}


def verify_evidence(text: str, where: str, keys: PublicKeys | None = None) -> Findings:
    """Verify a file of evidence with these keys, or with those that stand in it; raises SettingsInvalid."""
    try:
        store, own, chains = _read(json.loads(text), where)
    except (ValueError, KeyError, TypeError):
        raise SettingsInvalid(f"{where}: this is no evidence; give what `backstay audit export` writes") from None
    keys = own if keys is None else keys
    found = [_verified(chain, keys, store) for chain in chains]
    return findings_of(store, found, (), keys)


def _read(said: Any, where: str) -> tuple[str, PublicKeys, list[Chained]]:
    """Return what a file of evidence holds; raises KeyError, TypeError or ValueError for another file."""
    if said["format"] != FORMAT:
        raise ValueError(FORMAT)
    keys = read_keys("\n".join(map(str, said["public_keys"])), where)
    return str(said["store"]), keys, [_chain(chain) for chain in said["runs"]]


def _verified(chain: Chained, keys: PublicKeys, store: str) -> Verified:
    found = verify_run(chain.head, chain.rows, keys, Expected(store=store, pruned=chain.pruned))
    if chain.head is not None and chain.head.run == chain.run:
        return found
    return found.model_copy(update={"run": chain.run, "faults": (*found.faults, Fault(what="another run's head"))})


def _chain(said: Any) -> Chained:
    head = None if said["head"] is None else _typed(Head, said["head"])
    return Chained(str(said["run"]), head, [_typed(Row, row) for row in said["rows"]], bool(said["pruned"]))


def _typed(kind: Any, said: Any) -> Any:
    """Return a row or a head; raises TypeError or KeyError for fields of another kind."""
    made = kind(**said)
    for name, wanted in kind.__annotations__.items():
        if type(getattr(made, name)) is not wanted:
            raise TypeError(name)
    return made
