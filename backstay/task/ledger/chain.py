"""The rules of a chain: what a row's digest and hash cover, and what a signature of a head covers.

A row holds the shown form of what happened, and its digest with the key of the run: a reader who has the row alone,
after the shown form was erased, cannot find a short number in it by trying. Its hash covers its other fields and the
hash of the row before. The first row follows a hash of the run, of its store and of its key.
"""

import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

_SALT_HEX = 64
UNSIGNED = "ledger.unsigned"
"""The name of a row that says which rows before it nobody had signed."""
TAKEN_OVER = "ledger.taken_over"
"""The name of a row that keeps the signature of another key, where a chain goes on with a new one."""
RowFields: TypeAlias = tuple[str, int, str, str, str, str]
"""Run, number, time, kind, name and digest of a row."""
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class Row(NamedTuple):
    """Hold one row of a chain, as it is stored."""

    run: str
    n: int
    """Its place in the chain of its run, from 1."""
    at: str
    """ISO 8601, UTC, by the clock of who wrote it."""
    kind: str
    """What it is about: run, event, effect, decision, proof, request, plan or ledger."""
    name: str
    body: str
    """The shown form of what happened, as JSON."""
    digest: str
    hash: str


class ChainHead(NamedTuple):
    """Hold the end of one chain, as it is stored."""

    run: str
    n: int
    """How many rows there are."""
    hash: str
    """That of the last row."""
    salt: str
    """The key of the run's digests, in hex; empty once the rows were removed."""
    signed_n: int
    """How far the signature covers the chain; less than `n` where the last rows were written without a key."""
    signed_hash: str
    at: str
    key: str
    """The id of the key that signed; empty where none did."""
    signature: str

    @property
    def name(self) -> str:
        """Return what a Result tells of it."""
        return head_name(self.n, self.hash)


class Chain(NamedTuple):
    """Hold what is stored of the chain of one run."""

    run: str
    head: ChainHead | None
    rows: Sequence[Row]
    pruned: bool = False
    """Whether the store says that the run was pruned."""


class Root(NamedTuple):
    """Hold the root over all heads of one day, as it is stored; it goes on from the root before."""

    n: int
    day: str
    at: str
    heads: str
    """The heads that have moved since the root before, as JSON: `[[run, n, hash], ...]`."""
    hash: str
    key: str
    signature: str


def text_of(body: Any) -> str:
    """Return the one way in which a row holds what happened; every character of it is ASCII."""
    return _WRITER.encode(body)


def time_of(unix: float) -> str:
    """Return a time as rows hold it."""
    return datetime.fromtimestamp(unix, UTC).isoformat(timespec="milliseconds")


def salt_of(text: str) -> bytes | None:
    """Return the key of a run's digests; None where it is not written as it was."""
    try:
        salt = bytes.fromhex(text)
    except ValueError:
        return None
    return salt if len(text) == _SALT_HEX and salt.hex() == text else None


def first_hash(store: str, run: str, salt: str) -> str:
    """Return what the first row of a run follows; it binds the key of the digests, and tells nothing of it."""
    return _hash(["backstay ledger 1", store, run, _hash(["salt", salt])])


def digest_of_body(salt: bytes, body: str) -> str:
    """Return the keyed digest of the shown form."""
    return hmac.digest(salt, body.encode("utf-8", "surrogatepass"), "sha256").hex()


def row_hash(previous: str, fields: RowFields) -> str:
    """Return the hash of a row, which covers every field of it but the shown form, which its digest covers."""
    return _hash([previous, *fields])


def root_hash(previous: str, store: str, root: Root) -> str:
    """Return the hash of a daily root, which covers all roots before it."""
    return _hash(["backstay ledger root 1", previous, store, root.n, root.day, root.at, root.heads])


def head_message(store: str, head: ChainHead) -> bytes:
    """Return what the signature of a head covers."""
    said = [store, head.run, head.signed_n, head.signed_hash, head.at, head.key]
    return _WRITER.encode(["backstay ledger head 1", *said]).encode()


def root_message(store: str, root: Root) -> bytes:
    """Return what the signature of a daily root covers."""
    said = [store, root.n, root.day, root.at, root.hash, root.key]
    return _WRITER.encode(["backstay ledger day 1", *said]).encode()


def signed_part(head: ChainHead) -> dict[str, Any]:
    """Return what is kept of a signature in a row, so that it can be checked once another one is in its place."""
    return {"n": head.signed_n, "hash": head.signed_hash, "at": head.at, "key": head.key, "signature": head.signature}


def head_name(n: int, end: str) -> str:
    """Return what a Result and a memo tell of a head."""
    return f"{n}.{end}"


def _hash(said: list[Any]) -> str:
    return hashlib.sha256(_WRITER.encode(said).encode()).hexdigest()
