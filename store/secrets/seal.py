"""Encrypt and decrypt data at rest."""

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from backstay.errors import SettingsInvalid, StoreUnavailable, WorkerMisfit

_PLAIN = b"\x00"
_ENCRYPTED = b"\x01"


class Seal:
    """Encrypt with the first key and decrypt with any of them; without keys only mark the data as sealed."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """Take Fernet keys, the newest first. Raises SettingsInvalid without showing the key."""
        self._fernet = MultiFernet([_key(n, key) for n, key in enumerate(keys, 1)]) if keys else None

    def close(self, data: bytes) -> bytes:
        """Return the sealed form."""
        if self._fernet is None:
            return _PLAIN + data
        return _ENCRYPTED + self._fernet.encrypt(data)

    def open(self, sealed: bytes) -> bytes:
        """Return the data of a sealed form, encrypted or not.

        Raises WorkerMisfit when none of the keys fits, since a worker with the right one may open it.
        """
        mark, body = sealed[:1], sealed[1:]
        if mark == _PLAIN:
            return body
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
