"""Verify the chains of a store, or of some of its runs, with its daily roots and with what was kept elsewhere."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from backstay.task.ledger.anchors import Anchors, KeptHead, root_faults
from backstay.task.ledger.chain import Chain, Root
from backstay.task.ledger.findings import Findings, findings_of
from backstay.task.ledger.keys import PublicKeys
from backstay.task.ledger.verifying import ChainAnchor, ChainReport, first_day_of, verify_roots, verify_run
from store.ledger.reading import Chains
from store.ledger.roots import Roots


class Auditing:
    """Verify what a store holds; nothing but public keys is needed."""

    def __init__(self, chains: Chains, roots: Roots, store: Callable[[], str]) -> None:
        """Read chains and roots of the store that is called so."""
        self._chains = chains
        self._roots = roots
        self._store = store

    async def verify(
        self,
        keys: PublicKeys,
        *,
        names: Sequence[str] | None = None,
        since: str = "",
        kept_from: str = "",
        anchors: Anchors | None = None,
        where: str = "the anchor",
    ) -> Findings:
        """Verify these runs, those with a row since a time, or all.

        `kept_from`: since when rows must be there, whether their run was pruned or not. `anchors` came from `where`.
        """
        roots = await self._roots.all()
        check = _RootComparison(roots)
        first_day = first_day_of(roots[0] if roots else None, keys, self._store())
        found: list[ChainReport] = []
        async for chain in self._chains.read(names, since=since):
            expected = ChainAnchor(store=self._store(), kept_from=kept_from, pruned=chain.pruned, first_day=first_day)
            verified = verify_run(chain.head, chain.rows, keys, expected)
            found.append(verified if verified.run else verified.model_copy(update={"run": chain.run}))
            check.look(chain)
        faults = [*(fault.told for fault in verify_roots(roots, keys, self._store())), *check.faults]
        if names is None and not since:
            unlisted = await self._chains.unlisted()
            faults += [*check.missing, *(f"{run}: its head and all of its rows are missing" for run in unlisted)]
        if anchors is not None:
            faults += await self._against(anchors, roots, where)
        findings = findings_of(self._store(), found, faults, keys)
        signed = [findings.signed_until, *(root.at for root in roots if root.key)]
        rooted = max((root.at for root in roots), default="")
        more = {"roots": len(roots), "rooted_until": rooted, "anchored": anchors is not None}
        more["signed_until"] = max(signed)
        return findings.model_copy(update=more)

    async def _against(self, anchors: Anchors, roots: Sequence[Root], where: str) -> list[str]:
        """Return how the store differs from what was kept elsewhere."""
        if anchors.store and anchors.store != self._store():
            return [f"{where} is of store {anchors.store}, and this is {self._store()}"]
        faults = root_faults(anchors, roots, where)
        ends = await self._chains.removed() if anchors.heads else {}
        for head in anchors.heads:
            if await self._chains.with_hash(head.n, head.hash) is None and not _is_removed(head, ends):
                of = f" of {head.workflow_id}" if head.workflow_id else ""
                faults.append(
                    f"{where} has the head {head.name}{of}, which no chain has here: this is an older copy, or that "
                    "chain was changed"
                )
        return faults


def _is_removed(head: KeptHead, ends: dict[str, int]) -> bool:
    """Return whether the rows up to a head were removed with their run, and its last head counts them."""
    return any(run.rpartition("/")[0] == head.workflow_id and n > head.n for run, n in ends.items())


class _RootComparison:
    """Compare chains with the heads that daily roots name."""

    def __init__(self, roots: Sequence[Root]) -> None:
        """Know what the roots name; one that cannot be read is a fault of its own."""
        self.faults: list[str] = []
        self._first, self._last = (_day_before(root.at) for root in (roots[0], roots[-1])) if roots else ("", "")
        self._left: dict[str, list[tuple[str, int, str]]] = {}
        for root in roots:
            for run, n, end in _heads_of(root):
                self._left.setdefault(run, []).append((root.day, n, end))

    def look(self, chain: Chain) -> None:
        """Compare one chain, which must hold what each root has named of it."""
        hashes = {row.n: row.hash for row in chain.rows}
        if chain.head is not None:
            hashes.setdefault(chain.head.n, chain.head.hash)
        named = self._left.pop(chain.run, [])
        self._look_at_age(chain, max((n for _, n, _ in named), default=0))
        for day, n, end in named:
            counted = 0 if chain.head is None else chain.head.n
            # Of a run whose rows were removed, only the number of its rows is left.
            held = hashes.get(n) == end if n in hashes else not chain.rows and counted > n
            if not held:
                self.faults.append(f"{chain.run}: the root of {day} names another row {n} than there is")

    def _look_at_age(self, chain: Chain, named: int) -> None:
        """Look whether a root is missing that names the signed part of a chain, or a key that ended signs late."""
        if chain.head is None or not chain.head.key:
            return
        told = f"{chain.run}: it was signed at {chain.head.at}"
        if chain.head.at < self._first:
            self.faults.append(f"{told}, and the daily roots from before {self._first} are missing")
        elif chain.head.at < self._last and chain.head.signed_n > named:
            self.faults.append(f"{told}, and no daily root that came later names it")

    @property
    def missing(self) -> list[str]:
        """Return what the roots name and no chain was seen of."""
        return [
            f"{run}: its chain is missing, which the root of {named[0][0]} names" for run, named in self._left.items()
        ]


def _day_before(at: str) -> str:
    """Return the time a day before, so that clocks that differ do not matter; empty for what is not a time."""
    try:
        return (datetime.fromisoformat(at) - timedelta(days=1)).isoformat(timespec="milliseconds")
    except ValueError:
        return ""


def _heads_of(root: Root) -> list[tuple[str, int, str]]:
    try:
        return [(str(run), int(n), str(end)) for run, n, end in json.loads(root.heads)]
    except (ValueError, TypeError):
        return []
