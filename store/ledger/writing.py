"""Write the chains of runs: rows are added, never changed, and a head is signed in the transaction that moves it.

A process without the key, such as a command, adds rows and leaves the signature where it is. The next worker with the
key first checks what is signed, then says in a row of its own which rows nobody had signed, and signs the whole.
So nobody gets a row signed by putting it into the database.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from backstay.errors import StoreUnavailable
from backstay.shown import one_line
from backstay.task.ledger.chain import (
    TAKEN_OVER,
    UNSIGNED,
    ChainHead,
    Row,
    digest_of_body,
    first_hash,
    head_message,
    head_name,
    row_hash,
    salt_of,
    signed_part,
    text_of,
    time_of,
)
from backstay.task.ledger.keys import Signer
from store.database.database import Database
from store.database.faults import Collision
from store.database.identity import StoreIdentity
from store.database.schema import ledger_heads, ledger_rows, stored_words
from store.ledger.noting import LedgerNote, take_noted, take_noted_of

_MOST_RUNS = 2000
"""The heads of at most this many runs are known without a look at the database."""
_COLUMNS = tuple(ledger_heads.c[name] for name in ChainHead._fields)
_FIND = select(*_COLUMNS).where(ledger_heads.c.run == bindparam("run_")).with_for_update()
_MOVE = update(ledger_heads).where(
    ledger_heads.c.run == bindparam("run_"),
    ledger_heads.c.n == bindparam("n_"),
    ledger_heads.c.hash == bindparam("hash_"),
    ledger_heads.c.salt == bindparam("salt_"),
    ledger_heads.c.signature == bindparam("signature_"),
)
_INSERT = insert(ledger_rows)


class ChainWriter:
    """Extend the chains of runs with what transactions have noted."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float],
        identity: Callable[[], StoreIdentity],
        signer: Signer | None,
    ) -> None:
        """Read time from `clock`, in unix seconds; without a `signer`, what is written is not signed."""
        self.database = database
        self.signer = signer
        self._clock = clock
        self._identity = identity
        self._known: OrderedDict[str, ChainHead] = OrderedDict()

    def write(self, connection: Connection) -> None:
        """Write what the transaction has noted; to be called before it is committed."""
        for run, noted in take_noted(connection).items():
            if noted:
                self._extend(connection, stored_words(run), noted)

    def head_of(self, connection: Connection, run: str) -> str | None:
        """Write what the transaction has noted of a run until now, and return its head as a Result tells it."""
        run = stored_words(run)
        if noted := take_noted_of(connection, run):
            self._extend(connection, run, noted)
        found = connection.execute(select(*_COLUMNS).where(ledger_heads.c.run == run)).first()
        return None if found is None else head_name(found.n, found.hash)

    def sign_rest(self, connection: Connection, run: str) -> None:
        """Sign what processes without the key have added to a chain; without a key, do nothing.

        A chain whose key of digests somebody has changed is left as it is, so the root of the day is made all the same.
        """
        head = self._find(connection, run)
        if head is not None and salt_of(head.salt) is not None and (left := self._left_unsigned(head)):
            self._moved(connection, head, self._rows(head, left))

    def _extend(self, connection: Connection, run: str, noted: Sequence[LedgerNote]) -> None:
        known = self._known.get(run)
        # Nobody else has moved it since this process did: then it needs neither a look nor a check.
        if known is not None and self._moved(connection, known, self._rows(known, noted)):
            return
        head = self._find(connection, run) or self._begun(connection, run)
        # Else its rows were removed with all else of the run, and what comes late is not kept either.
        if head.salt and not self._moved(connection, head, self._rows(head, [*self._left_unsigned(head), *noted])):
            raise Collision

    def _begun(self, connection: Connection, run: str) -> ChainHead:
        salt = secrets.token_hex(32)
        head = ChainHead(run, 0, first_hash(self._identity().id, run, salt), salt, 0, "", "", "", "")
        connection.execute(insert(ledger_heads), {**head._asdict(), "rooted": 0})
        return head

    def _rows(self, head: ChainHead, noted: Sequence[LedgerNote]) -> list[dict[str, Any]]:
        salt, end, at = salt_of(head.salt), head.hash, time_of(self._clock())
        if salt is None:
            raise StoreUnavailable(
                f"ledger_heads.salt of run {one_line(head.run, 200)}: changed, so that its ledger cannot go on; "
                "restore that row from a backup"
            )
        rows: list[dict[str, Any]] = []
        for n, said in enumerate(noted, head.n + 1):
            body, name = text_of(said.body), stored_words(said.name)
            digest = digest_of_body(salt, body)
            end = row_hash(end, (head.run, n, at, said.kind, name, digest))
            rows.append(Row(head.run, n, at, said.kind, name, body, digest, end)._asdict())
        return rows

    def _moved(self, connection: Connection, head: ChainHead, rows: Sequence[dict[str, Any]]) -> bool:
        """Add rows behind a head, and move it; return False where it is no longer the head."""
        last = rows[-1]
        moved = self._signed(head._replace(n=last["n"], hash=last["hash"]), last["at"])
        asked = {
            "run_": head.run,
            "n_": head.n,
            "hash_": head.hash,
            "salt_": head.salt,
            "signature_": head.signature,
        }
        values = moved._asdict()
        del values["run"], values["salt"]
        if connection.execute(_MOVE, asked | values).rowcount != 1:
            self._known.pop(head.run, None)
            return False
        connection.execute(_INSERT, rows)
        self._known[head.run] = moved
        self._known.move_to_end(head.run)
        while len(self._known) > _MOST_RUNS:
            self._known.popitem(last=False)
        return True

    def _signed(self, head: ChainHead, at: str) -> ChainHead:
        if self.signer is None:
            return head
        signed = head._replace(signed_n=head.n, signed_hash=head.hash, at=at, key=self.signer.id)
        return signed._replace(signature=self.signer.sign(head_message(self._identity().id, signed)))

    def _find(self, connection: Connection, run: str) -> ChainHead | None:
        found = connection.execute(_FIND, {"run_": run}).first()
        return None if found is None else ChainHead(*found)

    def _left_unsigned(self, head: ChainHead) -> list[LedgerNote]:
        """Return what is to be said of what this key has not signed, before it signs the whole."""
        if self.signer is None or self._vouches(head):
            return []
        # Whether it vouches for these very rows can be told by who reads them all and has the list of all keys, so
        # the signature stays in the chain. Else whoever rewrites rows beneath it would get them signed anew.
        found = [LedgerNote("ledger", TAKEN_OVER, signed_part(head))] if head.key else []
        first = head.signed_n + 1 if head.key else 1
        if first <= head.n:
            found.append(LedgerNote("ledger", UNSIGNED, {"first": first, "last": head.n}))
        return found

    def _vouches(self, head: ChainHead) -> bool:
        """Return whether this key has signed the whole chain."""
        return (head.signed_n, head.signed_hash) == (head.n, head.hash) and self._holds(head)

    def _holds(self, head: ChainHead) -> bool:
        if self.signer is None or head.key != self.signer.id:
            return False
        message = head_message(self._identity().id, head)
        return not self.signer.verifier.fault(message, head.signature, head.at)
