"""Encrypt and decrypt data at rest."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import Self

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from backstay.errors import SettingsInvalid, StoreUnavailable, WorkerMisfit

_PLAIN = b"\x00"
_ENCRYPTED = b"\x01"
_OWN = b"\x02"
"""Encrypted with a key that the store itself holds: a look into a table shows nothing, but who has the store can."""


class Seal:
    """Encrypt with the first key and decrypt with any of them; without keys only mark the data as sealed."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """Take Fernet keys, the newest first. Raises SettingsInvalid without showing the key."""
        self._keys = [_key(n, key) for n, key in enumerate(keys, 1)]
        self._fernet = MultiFernet(self._keys) if keys else None
        self._own: Fernet | None = None

    def with_own(self, key: bytes) -> Self:
        """Return a seal that encrypts with these 32 bytes, which the store itself holds, where there are no keys."""
        more = copy(self)
        more._own = Fernet(urlsafe_b64encode(key))  # noqa: SLF001 - a copy of this one
        return more

    def close(self, data: bytes) -> bytes:
        """Return the sealed form."""
        if self._fernet is None:
            return _PLAIN + data if self._own is None else _OWN + self._own.encrypt(data)
        return _ENCRYPTED + self._fernet.encrypt(data)

    def open(self, sealed: bytes) -> bytes:
        """Return the data of a sealed form, encrypted or not.

        Raises WorkerMisfit when none of the keys fits, since a worker with the right one may open it.
        """
        mark, body = sealed[:1], sealed[1:]
        if mark == _PLAIN:
            return body
        if mark == _OWN and self._own is not None:
            return self._opened_by_own(self._own, body)
        if mark != _ENCRYPTED:
            raise StoreUnavailable("store: a sealed payload is damaged; restore it from a backup")
        if self._fernet is None:
            raise WorkerMisfit("BACKSTAY_ENCRYPTION_KEYS: the store holds encrypted payloads; set the key")
        try:
            return self._fernet.decrypt(body)
        except InvalidToken:
            raise WorkerMisfit(
                "BACKSTAY_ENCRYPTION_KEYS: no key opens a payload of this store; append the key it was sealed with"
            ) from None

    @property
    def has_keys(self) -> bool:
        """Return whether an operator has given keys."""
        return bool(self._keys)

    def closed_anew(self, sealed: bytes) -> bytes | None:
        """Return a sealed form as the first key makes it; None where it is so already. There must be a key.

        Raises what `open` raises.
        """
        if sealed[:1] == _ENCRYPTED:
            with suppress(InvalidToken):
                self._keys[0].decrypt(sealed[1:])
                return None
        return self.close(self.open(sealed))

    @staticmethod
    def _opened_by_own(own: Fernet, body: bytes) -> bytes:
        try:
            return own.decrypt(body)
        except InvalidToken:
            raise StoreUnavailable("store: a secret is damaged; restore the store from a backup") from None

    def fits(self, sealed: bytes) -> bool:
        """Return whether data is encrypted if there are keys, and plain if there are none."""
        return sealed[:1] == (_PLAIN if self._fernet is None else _ENCRYPTED)


def _key(n: int, key: str) -> Fernet:
    try:
        return Fernet(key.strip())
    except (ValueError, TypeError):
        raise SettingsInvalid(
            f"BACKSTAY_ENCRYPTION_KEYS: key {n} is not 32 bytes in URL-safe base64 (44 characters); "
            "make one with cryptography.fernet.Fernet.generate_key()"
        ) from None
