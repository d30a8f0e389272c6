"""The keys that heads are signed with, and the list of public keys that they are verified with."""

import base64
import hashlib
from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from backstay.errors import SettingsInvalid

_BYTES = 32
_ID_HEX = 16
_LINE = "<public key> <first day> [<last day>], such as one that `backstay ledger key` prints"


class Signer:
    """Sign heads with one private key."""

    def __init__(self, key: str) -> None:
        """Take the key as BACKSTAY_LEDGER_KEY holds it; raises SettingsInvalid."""
        try:
            raw = base64.b64decode(key.strip(), validate=True)
        except ValueError:
            raw = b""
        if len(raw) != _BYTES:
            raise SettingsInvalid("BACKSTAY_LEDGER_KEY: not a key; make one with: backstay ledger key")
        self._key = Ed25519PrivateKey.from_private_bytes(raw)
        public = self._key.public_key()
        self.public = public_text(public)
        self.id = id_of(public)
        self.verifier = Verifier(public, "", "")

    @classmethod
    def make(cls) -> "tuple[str, Signer]":
        """Return a new private key, and what signs with it."""
        text = base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode()
        return text, cls(text)

    def sign(self, message: bytes) -> str:
        """Return the signature in hex."""
        return self._key.sign(message).hex()


class Verifier(NamedTuple):
    """Check signatures with one public key, of the days for which it is in the list."""

    public: Ed25519PublicKey
    first: str
    """The first day on which it signs; empty: any."""
    last: str
    """The last one; empty: any."""

    def fault(self, message: bytes, signature: str, at: str) -> str:
        """Return why a signature of that time does not hold; empty where it does."""
        if (self.first and at[:10] < self.first) or (self.last and at[:10] > self.last):
            return f"its key signs from {self.first} to {self.last or 'now'}, and it is of {at[:10]}"
        try:
            raw = bytes.fromhex(signature)
            # Capital digits and white space would be read as well.
            if raw.hex() != signature:
                return "its signature is not written as signatures are"
            self.public.verify(raw, message)
        except (ValueError, InvalidSignature):
            return "its signature does not hold"
        return ""


class PublicKeys:
    """Hold the list of public keys: those of today and those that signed before."""

    def __init__(self, keys: Iterable[Verifier]) -> None:
        """Know each key by its id."""
        self._keys = {id_of(key.public): key for key in keys}

    def __bool__(self) -> bool:
        """Return whether there is any key."""
        return bool(self._keys)

    @property
    def lines(self) -> list[str]:
        """Return the list as a file holds it."""
        return [f"{public_text(key.public)} {key.first} {key.last}".strip() for key in self._keys.values()]

    @property
    def ids(self) -> list[str]:
        """Return the ids of all keys."""
        return [*self._keys]

    def fault(self, key: str, message: bytes, signature: str, at: str) -> str:
        """Return why a signature does not hold; empty where it does."""
        if key not in self._keys:
            return f"it is signed with key {key!r}, which is not in the list"
        return self._keys[key].fault(message, signature, at)


def read_keys(text: str, where: str) -> PublicKeys:
    """Read a list of public keys, one on a line; raises SettingsInvalid."""
    found: list[Verifier] = []
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.partition("#")[0].split()
        if parts:
            found.append(_verifier(parts, f"{where}: line {number}"))
    return PublicKeys(found)


def public_text(key: Ed25519PublicKey) -> str:
    """Return a public key as the list holds it."""
    return base64.b64encode(key.public_bytes_raw()).decode()


def id_of(key: Ed25519PublicKey) -> str:
    """Return the id by which heads name a key."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:_ID_HEX]


def _verifier(parts: list[str], where: str) -> Verifier:
    try:
        raw = base64.b64decode(parts[0], validate=True)
        first, last = date.fromisoformat(parts[1]), date.fromisoformat(parts[2]) if len(parts) > 2 else None
        public = Ed25519PublicKey.from_public_bytes(raw)
    except (ValueError, IndexError):
        raise SettingsInvalid(f"{where}: not a public key with its days; write {_LINE}") from None
    if len(parts) > 3 or (last is not None and last < first):
        raise SettingsInvalid(f"{where}: these days are in no order; write {_LINE}")
    return Verifier(public, first.isoformat(), "" if last is None else last.isoformat())
