"""Sign small things that people carry for us: links to the page, and what proves that a form is ours."""

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken

from backstay.authority import is_plain, principal
from backstay.canonical import canonical
from backstay.errors import SettingsInvalid
from backstay.settings import Settings

LINK_S = 12 * 3600.0
"""How long a link, and what is done with it, holds."""
_FILE = "web-secret"
_LONGEST = 4000
_MOST_NAME = 200


class Stranger(Exception):
    """Nobody whom we know looks at the page."""

    def __init__(self, why: str) -> None:
        """Say what is missing in one line, without anything that was sent."""
        super().__init__(why)


class Seals:
    """Make tokens for one purpose each, and read those that hold."""

    def __init__(self, secret: bytes, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives unix seconds."""
        self._secret = secret
        self._clock = clock

    def seal(self, purpose: str, said: dict[str, Any], life_s: float) -> str:
        """Return a token that says something for `life_s` seconds, in characters that an address holds as they are."""
        body = base64.urlsafe_b64encode(canonical({**said, "until": self._clock() + life_s}).encode()).decode()
        return f"{body.rstrip('=')}.{self._mac(purpose, body.rstrip('='))}"

    def opened(self, purpose: str, token: str) -> dict[str, Any] | None:
        """Return what a token says, with the unix time `until`; None when it is not ours, for this, and in time."""
        body, _, mac = token.partition(".")
        if len(token) > _LONGEST or not token.isascii() or not hmac.compare_digest(mac, self._mac(purpose, body)):
            return None
        try:
            said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except (ValueError, binascii.Error):
            return None
        return said if isinstance(said, dict) and float(said.get("until", 0)) > self._clock() else None

    def hide(self, purpose: str, said: Sequence[Any]) -> str:
        """Return a token that says something to us alone, for as long as we have the secret."""
        return self._fernet(purpose).encrypt(canonical(list(said)).encode()).decode()

    def hidden(self, purpose: str, token: str) -> list[Any] | None:
        """Return what a token of `hide` says; None when it is not ours, or not for this."""
        try:
            said: list[Any] = json.loads(self._fernet(purpose).decrypt(token.encode()))
        except InvalidToken:
            return None
        return said

    def mark(self, purpose: str, words: Sequence[str]) -> str:
        """Return the mark of some words, for one purpose, which nobody can make without the secret."""
        return self._mac(purpose, canonical(list(words)))

    def _fernet(self, purpose: str) -> Fernet:
        key = hmac.new(self._secret, f"{purpose} hidden".encode(), hashlib.sha256).digest()
        return Fernet(base64.urlsafe_b64encode(key))

    def _mac(self, purpose: str, body: str) -> str:
        return hmac.new(self._secret, f"{purpose}.{body}".encode(), hashlib.sha256).hexdigest()


def open_seals(settings: Settings) -> Seals:
    """Return what signs with BACKSTAY_WEB_SECRET, or else with a secret in the home, which is made if it is missing."""
    if settings.web_secret is not None:
        return Seals(settings.web_secret.get_secret_value().encode())
    return Seals(_kept_secret(settings.home / _FILE))


def _kept_secret(file: Path) -> bytes:
    """Return the secret that all processes of a home share; of several that would make it, the first does."""
    try:
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        made = file.with_name(f"{file.name}-{secrets.token_hex(8)}")
        if not file.exists():
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as opened:
                opened.write(secrets.token_hex(32))
            try:
                os.link(made, file)
            except FileExistsError:
                pass
            finally:
                made.unlink()
        return file.read_bytes()
    except OSError as error:
        raise SettingsInvalid(
            f"BACKSTAY_HOME: the page cannot keep its secret in {file.parent} ({type(error).__name__}); "
            "set BACKSTAY_WEB_SECRET, or let it write there"
        ) from None


def person(name: str) -> str:
    """Return the name of a person in its canonical form; raises Stranger for what could pass for another one."""
    known = principal(name)
    if not known or len(known) > _MOST_NAME or not is_plain(name) or "," in known:
        raise Stranger("your name cannot be used here: it is empty, too long, or holds signs that cannot be seen")
    return known


def link_for(seals: Seals, by: str) -> str:
    """Return the token of a link for one person; raises SettingsInvalid for a name that cannot be used."""
    try:
        return seals.seal("link", {"by": person(by)}, LINK_S)
    except Stranger as error:
        raise SettingsInvalid(f"--by: {error}") from None
