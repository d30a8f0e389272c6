"""Replace every secret in a payload and keep its structure."""

from collections.abc import Container, Iterable
from copy import copy
from functools import lru_cache
from itertools import chain
from typing import Any, Self

from backstay.redaction.json_values import JsonRedactor
from backstay.redaction.known_secrets import KnownSecrets
from backstay.redaction.leaves import mask_known, may_hold
from backstay.redaction.patterns import keys_and_urls_in
from backstay.redaction.sensitive_names import DEFAULT_SENSITIVE_KEYS, SensitiveNames
from backstay.redaction.text import KNOWN, KNOWN_MASK, Substitute, TextRedactor
from backstay.redaction.vendor_tokens import Span, runs_in, tokens_in
from backstay.shown import CLIPPED
from backstay.strict_json import clean_json, clean_text

_TELLING_OPENING = 4
"""This many characters of a secret say something of it."""


def redact_payload(payload: Any, sensitive_keys: Iterable[str] = DEFAULT_SENSITIVE_KEYS) -> Any:
    """Return the payload with every secret masked as `[REDACTED:<kind>]`.

    A secret is the value of a sensitive name at any depth and in any spelling, or a string that looks like a token, a
    key or a password. Total and idempotent.
    """
    return Redactor((), sensitive_keys).redact(payload)


def mask(kind: str, _value: Any) -> str:
    """Return the mask of a kind of secret."""
    return f"[REDACTED:{kind}]"


@lru_cache(maxsize=8)
def _names(sensitive_keys: tuple[str, ...]) -> SensitiveNames:
    return SensitiveNames(sensitive_keys)


class Redactor:
    """Find secrets by name, by format, and by equality with secrets that are known."""

    def __init__(self, known: Iterable[str], sensitive_keys: Iterable[str] = DEFAULT_SENSITIVE_KEYS) -> None:
        """Take known secrets; they are found anywhere, in each spelling of `backstay.redaction.spellings`."""
        self.names = _names(tuple(sensitive_keys))
        self.known = KnownSecrets(known)
        self.handles: Container[str] = ()

    def knowing(self, secrets: Iterable[str], handles: Container[str]) -> Self:
        """Return a redactor that knows these secrets too, and the handles that were given out for secrets."""
        more = copy(self)
        more.known, more.handles = self.known.adding(secrets), handles
        return more

    def redact(self, payload: Any) -> Any:
        """Return the payload with every secret masked."""
        return self.replace(payload, mask)

    def without_known(self, payload: Any) -> Any:
        """Return strict JSON with a mask for each known secret; a string that only looks like a secret stays."""
        if not self.known or not may_hold(payload, self.known):
            return payload
        texts = TextRedactor(self.names, self.known, self.handles, mask)
        return mask_known(payload, self.known, texts.split, KNOWN_MASK)

    def text(self, text: str) -> str:
        """Return the text with every secret masked; for logs and error lines."""
        return str(self.replace(clean_text(text), mask))

    def clipped_text(self, text: str) -> str:
        """Return a string as `text` does that was clipped before: there, the beginning of a secret may be left."""
        parts = self.text(text).split(CLIPPED)
        return CLIPPED.join([*map(self._without_opening, parts[:-1]), parts[-1]])

    def _without_opening(self, part: str) -> str:
        at = self.known.opening_in(part) if self.known else len(part)
        return f"{part[:at]}{KNOWN_MASK}" if len(part) - at >= _TELLING_OPENING else part

    def secret_in(self, text: str) -> Span | None:
        """Return the first secret in a string that is known or has a format of its own; names are ignored.

        For programs: in code, the value beside a sensitive name is mostly an expression and no secret.
        """
        known = ((*place, KNOWN) for place in self.known.places_in(text))
        return min(
            chain(known, tokens_in(text, runs_in(text), unknown_issuers=False), keys_and_urls_in(text)), default=None
        )

    def replace(self, payload: Any, substitute: Substitute) -> Any:
        """Return the payload as strict JSON with every secret replaced by what `substitute` returns.

        `substitute` must return a mask or a SecretHandle: both are left alone when redacted again.
        """
        clean = clean_json(payload)
        known = self.known if self.known and may_hold(clean, self.known) else None
        texts = TextRedactor(self.names, known, self.handles, substitute)
        texts.beside(clean)
        return JsonRedactor(texts).value(texts.without_spread(clean), None, 0)
