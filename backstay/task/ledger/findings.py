"""The findings of verifying a whole ledger, or a part of it."""

from collections.abc import Sequence

from backstay.frozen import Frozen
from backstay.task.ledger.keys import PublicKeys
from backstay.task.ledger.verifying import ChainReport

_MOST_RUNS = 200
"""At most this many runs are named for what is not a fault; the others are counted."""


class Findings(Frozen):
    """Say what was verified, and what is wrong with it."""

    store: str
    runs: int = 0
    rows: int = 0
    pruned: int = 0
    """Runs of which only the head is left, since they were pruned."""
    roots: int = 0
    faults: tuple[str, ...] = ()
    """What is wrong with the daily roots, with the store as a whole, or against what was kept elsewhere."""
    faulty: tuple[ChainReport, ...] = ()
    noted: tuple[ChainReport, ...] = ()
    """Runs of which a reader must know something that is not a fault."""
    signed_until: str = ""
    """When a head or a root was signed last; whether there was more after that, the store alone cannot tell."""
    rooted_until: str = ""
    """When the last daily root was made; until then the store alone tells whether something is missing."""
    anchored: bool = False
    """Whether it was compared with what was kept elsewhere."""
    keys: tuple[str, ...] = ()
    """The ids of the public keys that it was verified with; none: signatures were not checked."""
    in_evidence: bool = False
    """Whether this was a file of evidence, which may leave out whole runs."""
    keys_in_evidence: bool = False
    """Whether the keys were in that file itself, so that whoever made it chose them."""

    @property
    def is_good(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.faults and not self.faulty

    @property
    def lines(self) -> list[str]:
        """Return it in lines for people."""
        told = list(self.faults)
        told += [f"{run.run}: {fault.told}" for run in self.faulty for fault in run.faults]
        notes = [f"{run.run}: {note}" for run in self.noted for note in run.notes]
        told += notes[:_MOST_RUNS]
        if len(notes) > _MOST_RUNS:
            told.append(f"and {len(notes) - _MOST_RUNS} more notes")
        counted = f"{self.runs} runs, {self.rows} rows, {self.pruned} pruned, {self.roots} daily roots"
        wrong = len(self.faults) + len(self.faulty)
        told.append(f"{counted}: {'nothing was changed' if not wrong else f'{wrong} of them are wrong'}")
        return [*told, self._reach]

    @property
    def _reach(self) -> str:
        """Say up to when this vouches."""
        if not self.keys:
            return "signatures were not checked: name the public keys with --keys"
        until = f"signed until {self.signed_until}" if self.signed_until else "nothing is signed"
        if self.anchored:
            held = "not all of what was kept elsewhere is in it" if self.faults else "what was kept elsewhere is in it"
            return f"{until}, and {held}"
        if self.in_evidence:
            own = " with the keys in the file itself, so compare them with yours" if self.keys_in_evidence else ""
            return f"{until}{own}; which other runs there are, a file of evidence does not tell"
        rooted = f"nothing is missing that the daily root of {self.rooted_until} names" if self.rooted_until else ""
        # Of what is missing from before that root, there are faults.
        vouched = f"{until}, and {rooted}" if rooted and not self.faults else until
        return f"{vouched}; whether anything came after that, only an --anchor from elsewhere can tell"


def findings_of(store: str, found: Sequence[ChainReport], faults: Sequence[str], keys: PublicKeys) -> Findings:
    """Return what was found out about these runs together."""
    return Findings(
        store=store,
        runs=len(found),
        rows=sum(run.rows for run in found),
        pruned=sum(run.pruned for run in found),
        faults=tuple(faults),
        faulty=tuple(run for run in found if run.faults),
        noted=tuple(run for run in found if run.notes),
        signed_until=max((run.signed_at for run in found), default=""),
        keys=tuple(keys.ids),
    )
