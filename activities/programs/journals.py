"""Journals: what went into a program and what came out, round by round, as an append-only chain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backstay.errors import ArgumentsInvalid
from sandbox.programs.frames import Round
from store.blobs.shown import ShownBlobStore

KIND = "backstay/round"


@dataclass(frozen=True)
class Journal:
    """Name the last link of a chain."""

    ref: str = ""
    rounds: int = 0
    calls: int = 0
    """How many calls the program has made so far; the next one bears this number."""
    computed_s: float = 0.0
    """How long the program has computed so far."""
    last: Round | None = None


class Journals:
    """Read and extend journals in the blob store."""

    def __init__(self, blobs: ShownBlobStore) -> None:
        """Keep every round as a blob of its own, with the exact bytes of its frames."""
        self._blobs = blobs

    async def load(self, run: str, ref: str) -> Journal:
        """Return the chain that ends at `ref`; an empty ref is an empty journal."""
        if not ref:
            return Journal()
        link = await self._link(run, ref)
        return Journal(ref, link["rounds"], link["calls"], link["computed_s"], _round(link))

    async def rounds(self, run: str, ref: str) -> Sequence[Round]:
        """Return all rounds, oldest first."""
        return await self.since(run, ref, "") or []

    async def since(self, run: str, ref: str, before: str) -> Sequence[Round] | None:
        """Return the rounds after one of them, oldest first; None when that is not a round of this journal."""
        found: list[Round] = []
        while ref and ref != before:
            link = await self._link(run, ref)
            found.append(_round(link))
            ref = link["older"]
        return found[::-1] if ref == before else None

    async def extend(self, run: str, journal: Journal, done: Round, calls: int) -> Journal:
        """Add one round, in which the program made the given number of calls."""
        link: dict[str, Any] = {
            "kind": KIND,
            "older": journal.ref,
            "rounds": journal.rounds + 1,
            "calls": journal.calls + calls,
            "sent": done.sent.decode(),
            "came": done.came.decode(),
            "computed_s": round(journal.computed_s + done.wall_s, 3),
            "cpu_s": done.cpu_s,
            "wall_s": done.wall_s,
        }
        ref = await self._blobs.of(run).put_json(link)
        return Journal(ref, link["rounds"], link["calls"], link["computed_s"], done)

    async def _link(self, run: str, ref: str) -> dict[str, Any]:
        link = await self._blobs.of(run).get_json(ref)
        if not isinstance(link, dict) or link.get("kind") != KIND:
            raise ArgumentsInvalid(f"journal: {ref[:80]!r} names no round of a program")
        return link


def _round(link: dict[str, Any]) -> Round:
    return Round(sent=link["sent"].encode(), came=link["came"].encode(), cpu_s=link["cpu_s"], wall_s=link["wall_s"])
