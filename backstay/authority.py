"""Who may decide: about a call, an effect, or a run as a whole."""

from backstay.frozen import Frozen

NOBODY = 1_000_000
"""The quorum of what nobody may decide alone or together."""


class Authority(Frozen):
    """Say who may decide about something; without any restriction, everybody with access to the namespace."""

    approvers: tuple[str, ...] = ()
    """Verified persons who may decide; empty means anyone."""
    quorum: int = 1
    no_self_approval: bool = False
    verified: bool = False
    """Whether a verified person must decide even where none is named."""

    @property
    def restricts(self) -> bool:
        """Return whether only verified persons may decide."""
        return self.verified or bool(self.approvers) or self.quorum > 1 or self.no_self_approval

    def for_stopping(self) -> "Authority":
        """Return who may hold, reject or undo: the same people, also about a run of their own."""
        return self.model_copy(update={"no_self_approval": False, "verified": self.restricts})

    def also(self, other: "Authority") -> "Authority":
        """Return what satisfies both; where no such people exist, a quorum that nobody can reach."""
        named = [set(authority.approvers) for authority in (self, other) if authority.approvers]
        approvers = tuple(sorted(set.intersection(*named))) if named else ()
        quorum = max(self.quorum, other.quorum)
        if named and quorum > len(approvers):
            return Authority(approvers=tuple(sorted(set.union(*named))), quorum=NOBODY)
        return Authority(
            approvers=approvers,
            quorum=quorum,
            no_self_approval=self.no_self_approval or other.no_self_approval,
            verified=self.verified or other.verified,
        )
