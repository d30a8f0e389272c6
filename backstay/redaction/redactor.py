"""Replace every secret in a payload and keep its structure."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import Any

from backstay.redaction.json_values import JsonRedactor
from backstay.redaction.patterns import keys_and_urls_in
from backstay.redaction.sensitive_names import DEFAULT_SENSITIVE_KEYS, SensitiveNames
from backstay.redaction.text import Substitute, TextRedactor, spellings_of
from backstay.redaction.vendor_tokens import Span, tokens_in
from backstay.strict_json import clean_json, clean_text


def redact_payload(payload: Any, sensitive_keys: Iterable[str] = DEFAULT_SENSITIVE_KEYS) -> Any:
    """Return the payload with every secret masked as `[REDACTED:<kind>]`.

    A secret is the value of a sensitive name at any depth and in any spelling, or a text that looks like a token, a key
    or a password. Total and idempotent.
    """
    return Redactor((), sensitive_keys).redact(payload)


def mask(kind: str, _value: Any) -> str:
    """Return the mask of a kind of secret."""
    return f"[REDACTED:{kind}]"


@lru_cache(maxsize=8)
def _names(sensitive_keys: tuple[str, ...]) -> SensitiveNames:
    return SensitiveNames(sensitive_keys)


class Redactor:
    """Find secrets by name, by format, and by equality with secrets this process knows."""

    def __init__(self, known: Iterable[str], sensitive_keys: Iterable[str] = DEFAULT_SENSITIVE_KEYS) -> None:
        """Take known secrets of at least 8 bytes; they are found anywhere, also encoded for URLs, JSON or base64."""
        self._names = _names(tuple(sensitive_keys))
        spellings = {s for secret in known for s in spellings_of(secret)}
        ordered = sorted(spellings, key=lambda s: (-len(s), s))
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def redact(self, payload: Any) -> Any:
        """Return the payload with every secret masked."""
        return self.replace(payload, mask)

    def text(self, text: str) -> str:
        """Return the text with every secret masked; for logs and error lines."""
        return self._json(mask).value(clean_text(text), None, 0)

    def secret_in(self, text: str) -> Span | None:
        """Return the first secret in a text that is known or has a format of its own; names are ignored.

        For programs: in code, the value beside a sensitive name is mostly an expression and no secret.
        """
        known = self._known.finditer(text) if self._known else ()
        named = ((*found.span(), "known") for found in known)
        return min(chain(named, tokens_in(text, unknown_issuers=False), keys_and_urls_in(text)), default=None)

    def replace(self, payload: Any, substitute: Substitute) -> Any:
        """Return the payload as strict JSON with every secret replaced by what `substitute` returns.

        `substitute` must return a mask or a SecretHandle: both are left alone when redacted again.
        """
        return self._json(substitute).value(clean_json(payload), None, 0)

    def _json(self, substitute: Substitute) -> JsonRedactor:
        return JsonRedactor(TextRedactor(self._names, self._known, substitute))
