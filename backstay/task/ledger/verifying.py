"""Verify chains: name every row that was changed, is missing or stands elsewhere. Pure functions on what is stored."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from backstay.approvals.proof import KEEP, REVEAL
from backstay.frozen import Frozen
from backstay.shown import one_line
from backstay.task.ledger.chain import (
    TAKEN_OVER,
    UNSIGNED,
    ChainHead,
    Root,
    Row,
    digest_of_body,
    first_hash,
    head_message,
    root_hash,
    root_message,
    row_hash,
    salt_of,
)
from backstay.task.ledger.keys import PublicKeys

MOST_FAULTS = 50
"""At most this many faults of one run are named; the others are counted."""

_PRUNED = "run.pruned"
_FORGOTTEN = "memory.forgotten"
_PROOF = "proof.used"
_STANDING = ("schedule-", "trigger-")
"""How the names of chains begin that are not of runs, but of schedules and triggers."""


class ChainFault(Frozen):
    """Say what is wrong with one row, or with a head or a root."""

    what: str
    n: int | None = None
    """The row, by its number; None for what is not a row."""
    last: int | None = None
    """The last one, where it is about several."""

    @property
    def told(self) -> str:
        """Return it in words."""
        if self.n is None:
            return self.what
        several = self.last is not None and self.last > self.n
        return f"rows {self.n} to {self.last}: {self.what}" if several else f"row {self.n}: {self.what}"


class ChainReport(Frozen):
    """Say what was found out about the chain of one run."""

    run: str
    rows: int
    """How many rows its head counts."""
    faults: tuple[ChainFault, ...] = ()
    notes: tuple[str, ...] = ()
    """What is not a fault, and what a reader must know: rows that nobody signed."""
    pruned: bool = False
    """Whether only the head is left."""
    signed_at: str = ""
    """When it was signed last; empty where it never was."""
    key: str = ""


class ChainAnchor(Frozen):
    """Say what a chain is compared with beside its own rows."""

    store: str
    kept_from: str = ""
    """Rows of heads that were signed since then must still be there; empty: none must."""
    pruned: bool = False
    """Whether the store says that the run was pruned."""
    first_day: str = ""
    """The day of the first daily root; rows that a worker found unsigned until then are older than the key."""


def verify_run(head: ChainHead | None, rows: Sequence[Row], keys: PublicKeys, expected: ChainAnchor) -> ChainReport:
    """Verify one run, from its head and from all rows that are stored of it, in any order.

    Without keys the signature is not checked.
    """
    if head is None:
        run = rows[0].run if rows else ""
        return ChainReport(run=run, rows=len(rows), faults=(ChainFault(what="the head is missing"),))
    faults, notes = _of_signature(head, rows, keys, expected.store)
    gone = not rows and not head.salt
    if gone:
        faults += _of_removal(head, expected)
    else:
        faults += _of_rows(head, rows, expected.store)
    for said, is_fault in _unsigned(head, rows, keys, expected.first_day):
        if is_fault:
            faults.append(ChainFault(what=said))
        else:
            notes.append(said)
    faults += _taken_over(head.run, rows, keys, expected.store)
    if len(faults) > MOST_FAULTS:
        faults = [*faults[:MOST_FAULTS], ChainFault(what=f"and {len(faults) - MOST_FAULTS} more faults")]
    return ChainReport(
        run=head.run,
        rows=head.n,
        faults=tuple(faults),
        notes=tuple(notes),
        pruned=gone,
        signed_at=head.at if head.key else "",
        key=head.key,
    )


def _of_signature(
    head: ChainHead, rows: Sequence[Row], keys: PublicKeys, store: str
) -> tuple[list[ChainFault], list[str]]:
    if not head.key and not head.signature:
        told = "the head was never signed"
        excused = bool(rows) and all(map(_is_of_standing, rows))
        return ([ChainFault(what=told)], []) if keys and not excused else ([], [told])
    if not keys:
        return [], ["its signature was not checked, without a public key"]
    fault = keys.fault(head.key, head_message(store, head), head.signature, head.at)
    return ([ChainFault(what=f"the head is not valid: {fault}")] if fault else []), []


def _is_of_standing(row: Row) -> bool:
    """Return whether a row proves who added a schedule or trigger: commands and the page write it, without a key."""
    return row.run.startswith(_STANDING) and row.name == _PROOF and _update_of(row) == KEEP


def _update_of(row: Row) -> Any:
    return _said(row.body).get("update")


def _of_removal(head: ChainHead, expected: ChainAnchor) -> list[ChainFault]:
    """Return whether rows were removed that must still be there."""
    if not expected.pruned:
        return [ChainFault(what=f"all {head.n} rows are missing, and the run was not pruned")]
    if expected.kept_from and head.at >= expected.kept_from:
        return [ChainFault(what=f"all {head.n} rows are missing, and they are kept since {expected.kept_from}")]
    return []


def _of_rows(head: ChainHead, rows: Sequence[Row], store: str) -> list[ChainFault]:
    """Return what is wrong with the rows themselves, and with what the head says of them."""
    faults: list[ChainFault] = []
    salt = salt_of(head.salt)
    if salt is None:
        return [ChainFault(what="the head's key of digests was changed, so no row can be read")]
    follows = {first_hash(store, head.run, head.salt)}
    expected, seen = 1, dict[int, Row]()
    for row in sorted(rows, key=lambda row: row.n):
        if row.n in seen:
            faults.append(ChainFault(n=row.n, what="there twice"))
            continue
        seen[row.n] = row
        if row.n != expected:
            faults += _missing(expected, row.n - 1)
            # The entry before it is not there, so only what comes after it can be told.
            follows = set()
        found, follows = _of_row(row, follows, head.run, salt)
        faults += found
        expected = row.n + 1
    faults += _missing(expected, head.n)
    faults += [ChainFault(n=n, what="behind the end") for n in seen if n > head.n or n < 1]
    faults += [ChainFault(n=row.n, what="not where it was written") for row in _out_of_order(rows)]
    return faults + _of_ends(head, seen, first_hash(store, head.run, head.salt))


def _missing(first: int, last: int) -> list[ChainFault]:
    first = max(first, 1)
    return [ChainFault(n=first, last=last, what="missing")] if first <= last else []


def _of_row(row: Row, follows: set[str], run: str, salt: bytes) -> tuple[list[ChainFault], set[str]]:
    """Return what is wrong with a row that follows one of these hashes, and what the next row may follow."""
    faults: list[ChainFault] = []
    if digest_of_body(salt, row.body) != row.digest:
        faults.append(ChainFault(n=row.n, what=f"what it says was changed ({one_line(row.name, 60)})"))
    made = {row_hash(before, (*row[:5], row.digest)) for before in follows}
    if row.run != run or (follows and row.hash not in made):
        faults.append(
            ChainFault(n=row.n, what=f"changed, or behind another row than before ({one_line(row.name, 60)})")
        )
    # Where the hash itself was changed, the next row follows what the fields say.
    return faults, {row.hash, *made}


def _of_ends(head: ChainHead, seen: Mapping[int, Row], first: str) -> list[ChainFault]:
    """Return what is wrong with what the head says of the last row, and of the last one that is signed."""
    faults: list[ChainFault] = []
    for what, n, end in (("last", head.n, head.hash), ("last signed", head.signed_n, head.signed_hash)):
        known = seen[n].hash if n in seen else ""
        found = first if n == 0 else known
        unsigned = not head.key and not head.signed_n and not head.signed_hash
        if found != end and not (what == "last signed" and unsigned):
            faults.append(ChainFault(what=f"the head names another {what} row {n} than there is"))
    if head.signed_n > head.n:
        faults.append(ChainFault(what=f"{head.signed_n} rows were signed, and there are {head.n}"))
    return faults


def _out_of_order(rows: Sequence[Row]) -> list[Row]:
    return [row for before, row in pairwise(rows) if row.n < before.n]


def _unsigned(head: ChainHead, rows: Sequence[Row], keys: PublicKeys, first_day: str) -> list[tuple[str, bool]]:
    """Return which rows no worker with the key has vouched for when they were written, and whether that is a fault.

    Commands and the page have no key, and write few kinds of rows. Before there was any key, nobody signed; when that
    was, the worker says that found them so, since whoever writes rows can write any time into them.
    """
    ranges = [
        (*_numbers(row.body, "first", "last"), f" when row {row.n} came", row.at[:10] <= first_day)
        for row in rows
        if row.name == UNSIGNED
    ]
    if head.key and head.signed_n < head.n:
        ranges.append((head.signed_n + 1, head.n, "", False))
    found: list[tuple[str, bool]] = []
    for first, last, when, is_older in ranges:
        odd = [row for row in rows if first <= row.n <= last and not _may_be_unsigned(row)]
        which = f"rows {first} to {last} were" if last > first else f"row {first} was"
        found.append((f"{which} not signed{when}", bool(keys) and bool(odd) and not is_older))
    return found


def _may_be_unsigned(row: Row) -> bool:
    """Return whether commands or the page write such a row: who was shown a secret, what was pruned or forgotten."""
    match row.kind, row.name:
        case ("decision", name):
            return name == REVEAL
        case ("proof", name):
            return name == _PROOF and (_update_of(row) == REVEAL or _is_of_standing(row))
        case kind:
            return kind in {("run", _PRUNED), ("memory", _FORGOTTEN)}


def _taken_over(run: str, rows: Sequence[Row], keys: PublicKeys, store: str) -> list[ChainFault]:
    """Return which signatures of other keys, which the chain keeps, do not hold."""
    faults: list[ChainFault] = []
    hashes = {row.n: row.hash for row in rows}
    for row in rows:
        if row.name != TAKEN_OVER or not keys:
            continue
        try:
            said = {name: str(value) for name, value in _said(row.body).items()}
            n, end, at, key = int(said["n"]), said["hash"], said["at"], said["key"]
            head = ChainHead(run, n, end, "", n, end, at, key, said["signature"])
            fault = keys.fault(key, head_message(store, head), head.signature, at)
        except (ValueError, KeyError):
            n, end, fault = 0, "", "it cannot be read"
        if fault or hashes.get(n) != end:
            told = f"an earlier signature in it does not vouch for the rows before it: {fault or 'of other rows'}"
            faults.append(ChainFault(n=row.n, what=told))
    return faults


def _numbers(body: str, *names: str) -> tuple[int, int]:
    try:
        first, last = (int(_said(body)[name]) for name in names)
    except (ValueError, KeyError, TypeError):
        return 0, 0
    return first, last


def _said(body: str) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def first_day_of(root: Root | None, keys: PublicKeys, store: str) -> str:
    """Return the day of the first daily root; empty where there is none that its signature vouches for."""
    if root is None or root.n != 1 or keys.fault(root.key, root_message(store, root), root.signature, root.at):
        return ""
    return root.day


def verify_roots(roots: Iterable[Root], keys: PublicKeys, store: str) -> list[ChainFault]:
    """Verify daily roots, oldest first, by themselves."""
    faults: list[ChainFault] = []
    previous, expected = "", 1
    for root in roots:
        what = f"root {root.n} of {root.day}"
        if root.n != expected:
            faults.append(ChainFault(what=f"{what} stands where root {expected} is missing"))
        if root_hash(previous, store, root) != root.hash:
            faults.append(ChainFault(what=f"{what} was changed, or follows another one"))
        if keys and (fault := keys.fault(root.key, root_message(store, root), root.signature, root.at)):
            faults.append(ChainFault(what=f"{what} is not valid: {fault}"))
        previous, expected = root.hash, root.n + 1
    return faults
