"""Tell from a name whether what stands under it is a secret."""

import unicodedata
from collections.abc import Iterable

DEFAULT_SENSITIVE_KEYS = (
    "password", "passwd", "passphrase", "passcode", "authorization", "api_key", "app_key", "access_key", "secret_key",
    "private_key", "signing_key", "encryption_key", "master_key", "shared_key", "account_key", "subscription_key",
    "storage_key", "service_key", "session_key", "auth_key", "ssh_key", "deploy_key", "admin_key", "license_key",
    "licence_key", "integration_key", "ingest_key", "write_key", "server_key", "fernet_key", "hmac_key", "aes_key",
    "cipher_key", "root_key", "tls_key", "ssl_key", "host_key", "mnemonic", "seed_phrase", "recovery_code",
    "backup_code", "sessid", "connect_sid", "secret", "token", "credential",
    "cookie", "session_id", "csrf", "xsrf", "connection_string", "bearer", "webhook_url",
    "auth", "pass", "pwd", "pin", "otp", "psk", "cvv", "cvc", "dsn", "jwt", "creds",
)  # fmt: skip
"""Names of secrets; those of up to five letters must be the last word of a key, longer ones may stand anywhere."""

_SHORT = 5
_ABOUT = frozenset((
    "type", "types", "count", "counts", "limit", "limits", "usage", "used", "budget", "length", "len", "size", "total",
    "totals", "num", "number", "max", "min", "per", "cost", "costs", "price", "expires", "expiry", "expiration", "ttl",
    "lifetime", "method", "methods", "policy", "algorithm", "alg", "format", "name", "names", "rotation",
))  # fmt: skip
"""A key with one of these words tells something about a secret, not the secret."""
_ABOUT_AT_THE_END = frozenset((
    "ref", "refs", "reference", "at", "days", "hours", "seconds", "enabled", "required", "strength", "label", "title",
    "placeholder", "help", "path", "file", "env", "dir", "create", "revoke", "error", "errors",
))  # fmt: skip
"""The same for what comes last: `token_file` holds a path, `file_token` and `revoke_token` hold secrets."""
_PLACE = frozenset(("url", "uri", "endpoint"))
_OWNERS = ("access", "refresh", "auth", "api", "session", "bearer", "id", "security", "device", "bot", "user")
_LOOK_ALIKES = (
    "bostoken", "eostoken", "unktoken", "padtoken", "masktoken", "septoken", "clstoken", "specialtoken",
    "imagepullsecret", "secretsmanager", "secretmanager", "secretary", "secretariat", "tokenizer", "tokenize",
    "tokenise", "tokenization", "tokenisation",
)  # fmt: skip
_MOST_REMEMBERED = 10_000


class SensitiveNames:
    """Know the names under which secrets stand, in any spelling."""

    def __init__(self, names: Iterable[str] = DEFAULT_SENSITIVE_KEYS) -> None:
        """Take names such as `api_key`; apiKey, API-KEY and x_api_key are then known too."""
        self._kinds = {_compact(name): _kind(name) for name in names if _compact(name)}
        self._known: dict[str, str | None] = {}

    def kind_of(self, name: str) -> str | None:
        """Return which kind of secret stands under a name, or None."""
        if len(name) > 200:
            return self._look(name[:100] + " " + name[-100:])
        if name not in self._known:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[name] = self._look(name)
        return self._known[name]

    def tells_about(self, name: str) -> bool:
        """Say whether a name speaks of a secret without holding it: `secretName`, `password_changed_at`."""
        compact = _compact(name[:200])
        return _is_about(_words(name[:200])) and any(fragment in compact for fragment in self._kinds)

    def _look(self, name: str) -> str | None:
        compact = _compact(name)
        if compact in self._kinds:
            return self._kinds[compact]
        words = _words(name)
        if not words or _is_about(words):
            return None
        for look_alike in _LOOK_ALIKES:
            compact = compact.replace(look_alike, " ")
        for fragment, kind in self._kinds.items():
            if len(fragment) <= _SHORT and fragment != "token":
                if words[-1] == fragment:
                    return kind
            elif fragment in compact and self._is_meant(fragment, compact, words):
                return kind
        return None

    def _is_meant(self, fragment: str, compact: str, words: list[str]) -> bool:
        if fragment not in ("token", "authorization"):
            return True
        if not _PLACE.isdisjoint(words):
            return False
        # "tokens" alone are what models read; "access tokens" are secrets.
        if "tokens" in compact and "token" not in compact.replace("tokens", ""):
            return any(owner + "tokens" in compact for owner in _OWNERS)
        return True


def _is_about(words: list[str]) -> bool:
    return not _ABOUT.isdisjoint(words) or (len(words) > 1 and words[-1] in _ABOUT_AT_THE_END)


def _compact(name: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).lower()))


def _kind(name: str) -> str:
    kind = "_".join(_words(name))
    return "".join(sign for sign in kind if sign.isascii())[:40] or "secret"


def _words(name: str) -> list[str]:
    """Cut a name into lower-case words at signs and at changes to upper case."""
    words, word, before = [], "", ""
    text = unicodedata.normalize("NFKC", name)
    for at, sign in enumerate(text):
        after = text[at + 1 : at + 2]
        if not sign.isalnum() or (sign.isupper() and (before.islower() or (before.isupper() and after.islower()))):
            words.append(word)
            word = ""
        if sign.isalnum():
            word += sign.lower()
        before = sign
    return [word for word in [*words, word] if word]
