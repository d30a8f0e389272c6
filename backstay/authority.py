"""Who may decide: about a call, an effect, or a run as a whole; and the one form of a person's name."""

import unicodedata
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from backstay.frozen import Frozen
from backstay.lookalikes import code_at
from backstay.shown import one_line

_LONGEST = 1000
"""Characters of a name that is looked at; nobody has a longer one, and every door refuses it."""
_MOST = 200


def principal(name: str) -> str:
    """Return the canonical form of a person's name, in which names are compared, signed and recorded.

    It is composed (NFC) and stripped; an address is in small letters. A sign that cannot be seen, or that passes for
    another one, is written as its code, such as `<U+200B>`, so the name is nobody else's.
    """
    if len(name) > _LONGEST:
        return name
    composed = unicodedata.normalize("NFC", "".join(map(_kept_foreign, name.strip())))
    if "@" in composed:
        composed = unicodedata.normalize("NFC", "".join(_in_small_letters(composed)))
    return one_line(composed, 16 * len(composed) + 1).strip()


def is_plain(name: str) -> bool:
    """Return whether each character of a name can be seen, and passes for no other."""
    canonical = principal(name)
    return "<U+" not in canonical and "⏎" not in canonical


def _short(name: str) -> str:
    """Return a canonical name; it is read from history again, so its bound holds for this very form."""
    if len(name) > _MOST:
        raise ValueError(f"longer than {_MOST} characters, hidden ones written as their codes; use a shorter name")
    return name


Principal = Annotated[
    str, AfterValidator(principal), AfterValidator(_short), Field(json_schema_extra={"maxLength": _MOST})
]
"""The name of a person, in its canonical form."""


def with_principals(payload: dict[str, Any], fields: tuple[str, ...] = ("by",)) -> dict[str, Any]:
    """Return a payload in which the named fields hold names in their canonical form; others stay as they are."""
    named = {field: principal(payload[field]) for field in fields if isinstance(payload.get(field), str)}
    return {**payload, **named} if named else payload


def _kept_foreign(sign: str) -> str:
    """Return a character, or its code where it is another form of a plain one, such as a full-width letter or `@`."""
    return f"<U+{ord(sign):04X}>" if not sign.isascii() and unicodedata.normalize("NFKC", sign).isascii() else sign


def _in_small_letters(name: str) -> Iterator[str]:
    """Yield the characters of a name in small letters; the codes of characters stay as they are."""
    at = 0
    while at < len(name):
        code = code_at(name, at)
        yield code or _folded(name[at])
        at += len(code) or 1


def _folded(sign: str) -> str:
    """Return a sign in small letters; a foreign one never becomes a plain letter of somebody else's address."""
    return next((small for small in (sign.casefold(), sign.lower()) if not _gains_plain(sign, small)), sign)


def _gains_plain(sign: str, small: str) -> bool:
    return not sign.isascii() and any(letter.isascii() for letter in small)


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

    @property
    def words(self) -> str:
        """Return who may decide, in words."""
        return ", ".join(self.approvers) or ("a verified person" if self.restricts else "anyone")

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
