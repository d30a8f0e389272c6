"""Labels by which a server says how far what it answers can be trusted, and who may read it (`_meta`, key `ifc`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

KEY = "ifc"
_PUBLIC = "public"
_TRUSTED = "trusted"


@dataclass(frozen=True, slots=True)
class Label:
    """Hold what labels say together: one part that is private makes the whole so, and one that nobody vouches for."""

    private: bool = False
    """Whether not everybody may read it."""
    untrusted: bool = False
    """Whether strangers may have written it, whatever is declared of the tool."""

    def __or__(self, other: "Label") -> "Label":
        """Return what both say together."""
        return Label(self.private or other.private, self.untrusted or other.untrusted)


NOTHING = Label()


def label_of(metas: Iterable[Any]) -> Label:
    """Return what the `_meta` of an answer and of its parts say together; one that cannot be read says the worst."""
    found = NOTHING
    for meta in metas:
        for key, said in meta.items() if isinstance(meta, Mapping) else ():
            if key == KEY or (isinstance(key, str) and key.endswith(f"/{KEY}")):
                found |= _read(said)
    return found


def _read(said: Any) -> Label:
    if not isinstance(said, Mapping):
        return Label(private=True, untrusted=True)
    readers, integrity = said.get("confidentiality"), said.get("integrity")
    listed = readers if isinstance(readers, list) else [readers]
    is_public = any(isinstance(reader, str) and reader.strip().lower() == _PUBLIC for reader in listed)
    is_trusted = isinstance(integrity, str) and integrity.strip().lower() == _TRUSTED
    return Label(
        private=readers is not None and not is_public,
        untrusted=integrity is not None and not is_trusted,
    )
