"""Tell from a name whether its value is a secret."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

DEFAULT_SENSITIVE_KEYS = (
    "password", "passwd", "passphrase", "passcode", "authorization", "api_key", "app_key", "access_key", "secret_key",
    "private_key", "signing_key", "encryption_key", "master_key", "shared_key", "account_key", "subscription_key",
    "storage_key", "service_key", "session_key", "auth_key", "ssh_key", "deploy_key", "admin_key", "license_key",
    "licence_key", "integration_key", "ingest_key", "write_key", "server_key", "fernet_key", "hmac_key", "aes_key",
    "cipher_key", "root_key", "tls_key", "ssl_key", "host_key", "static_key", "client_key", "consumer_key",
    "webhook_key", "mnemonic", "seed_phrase", "recovery_phrase", "recovery_code", "recovery_key", "backup_code",
    "security_code", "sessid", "session_cookie", "connect_sid", "secret", "token", "credential", "kennwort", "passwort",
    "contrasena", "contrase\u00f1a", "mot_de_passe", "wachtwoord", "senha", "has\u0142o", "heslo", "l\u00f6senord",
    "passord", "adgangskode", "salasana", "\u043f\u0430\u0440\u043e\u043b\u044c", "\u5bc6\u7801", "\u5bc6\u78bc",
    "\u30d1\u30b9\u30ef\u30fc\u30c9", "\ube44\ubc00\ubc88\ud638", "bindpw", "verification_code", "one_time_code",
    "cookie", "session_id", "csrf", "xsrf", "connection_string", "bearer", "webhook_url", "auth", "pass", "pwd", "pin",
    "otp", "psk", "cvv", "cvc", "dsn", "jwt", "creds", "pw", "pswd",
)  # fmt: skip
"""Names of secrets; those of up to five letters must be the last word of a key, longer ones may stand anywhere."""

_SHORT = 5
_ABOUT = frozenset((
    "type", "types", "count", "counts", "limit", "limits", "usage", "used", "budget", "length", "len", "size", "total",
    "totals", "num", "number", "max", "min", "maximum", "minimum", "per", "cost", "costs", "price", "expires", "expiry",
    "expiration", "ttl", "lifetime", "method", "methods", "policy", "policies", "algorithm", "alg", "format", "name",
    "names", "rotation", "timeout", "age", "complexity", "interval", "fingerprint", "thumbprint", "checksum",
    "supported", "public", "pub",
))  # fmt: skip
"""A name with one of these words describes a secret and does not hold it."""
_ABOUT_AT_THE_END = frozenset((
    "ref", "refs", "reference", "at", "on", "by", "days", "hours", "minutes", "seconds", "enabled", "disabled",
    "required", "strength", "label", "title", "placeholder", "help", "path", "file", "env", "dir", "create", "revoke",
    "error", "errors", "header", "headers", "prompt", "field", "fields", "column", "attempts", "retries", "history",
    "expired", "changed", "updated", "created", "issuer", "audience", "scope", "scopes", "status", "state", "version",
    "versions", "provider", "providers", "store", "manager", "mode", "prefix", "suffix", "pattern", "regex", "encoding",
    "encoder", "validator", "validation", "rule", "rules", "score", "domain", "samesite", "secure", "httponly",
    "description", "url", "uri", "endpoint", "link", "href", "page", "domains", "arn", "hasher", "hashers", "bits",
    "class", "template", "sha1", "sha256", "digest", "source", "id",
))  # fmt: skip
"""The same for what comes last: `token_file` holds a path, `file_token` and `revoke_token` hold secrets."""
_STILL = frozenset((
    "value", "values", "text", "plain", "plaintext", "raw", "string", "str", "data", "base64", "b64", "hex", "encoded",
    "encrypted", "enc", "prod", "production", "dev", "development", "staging", "stage", "live", "test", "testing",
    "sandbox", "primary", "secondary", "old", "new", "current", "previous", "prev", "next", "main", "default", "backup",
    "confirmation", "confirm", "repeat", "again", "local", "ci", "s", "pem", "list", "var", "digits", "salt", "base",
    "json", "bytes", "material", "seed", "hint",
))  # fmt: skip
"""A name that ends with these words still names the secret itself."""
_IDENTIFIED = ("secretid", "sessionid", "accesskeyid", "tokenid")
_KEYS_OF_THINGS = frozenset((
    "cache", "partition", "idempotency", "sort", "s3", "object", "primary", "foreign", "row", "hash", "dedup", "group",
    "order", "index", "map", "dict", "lookup", "public", "bucket", "redis", "message", "event", "routing", "project",
    "issue", "locale", "i18n", "translation", "json", "config", "setting", "search", "join", "shard", "natural",
    "composite", "unique", "column", "field", "property", "registry", "range", "metric", "tag", "label", "sequence",
    "correlation", "deduplication", "item", "entity", "record", "document", "doc", "image", "video", "media", "asset",
    "block", "node", "tree", "content", "inchi", "product", "route", "query", "restore", "upload", "file", "path",
    "parent", "child", "next", "prev", "start", "last", "first", "evaluated", "continuation", "turbo", "nx", "build",
    "lock", "mutex", "slot", "session", "user", "id", "tls", "cert", "by", "the", "a", "with", "of", "any", "this",
))  # fmt: skip
"""Keys of these things grant no access."""
_PLACE = frozenset(("url", "uri", "endpoint"))
_OWNERS = ("access", "refresh", "auth", "api", "session", "bearer", "id", "security", "device", "bot", "user")
_LOOK_ALIKES = (
    "bostoken", "eostoken", "unktoken", "padtoken", "masktoken", "septoken", "clstoken", "specialtoken",
    "imagepullsecret", "secretsmanager", "secretmanager", "secretary", "secretariat", "tokenizer", "tokenize",
    "tokenise", "tokenization", "tokenisation", "credentialless", "passwordless", "tokenbucket", "cookieconsent",
    "authorizationcode", "authorizationserver", "authorizationendpoint", "sessionidle",
)  # fmt: skip
_MOST_REMEMBERED = 10_000


class SensitiveNames:
    """Recognise the names of secrets in any spelling."""

    def __init__(self, names: Iterable[str] = DEFAULT_SENSITIVE_KEYS) -> None:
        """Take names such as `api_key`; apiKey, API-KEY and x_api_key are then known too."""
        given = [name for name in names if _compact(name)]
        self._kinds = {_compact(name): _kind(name) for name in given}
        self._usual = "apikey" in self._kinds
        self.read = lru_cache(_MOST_REMEMBERED)(self._read)
        """Returns which kind of secret stands under a name, and whether the name says so to its end.

        `api_token` names a token; `token_bucket` may name anything that concerns tokens.
        """
        keys = [r"(?<=[a-z0-9])[_.-]?key(?![a-z])"] if self._usual else []
        self.cue = re.compile("|".join([*_cues(given), *keys]) or r"(?!)")
        """Finds where a name might be in a lower-case text; most texts have none and are done with then."""

    def is_given(self, name: str) -> bool:
        """Return whether a text is one of the names themselves, in any spelling."""
        return _compact(name[:200]) in self._kinds

    def tells_about(self, name: str) -> bool:
        """Return whether a name describes a secret without holding it: `secretName`, `password_changed_at`."""
        compact = _compact(name[:200])
        return _is_about(words_of(name[:200])) and any(fragment in compact for fragment in self._kinds)

    def _read(self, name: str) -> tuple[str | None, bool]:
        name = name if len(name) <= 200 else f"{name[:100]} {name[-100:]}"
        compact = _compact(name)
        if compact in self._kinds:
            return self._kinds[compact], True
        words = words_of(name)
        if not words or (_is_about(words) and not compact.endswith(_IDENTIFIED)):
            return None, False
        for look_alike in _LOOK_ALIKES:
            compact = compact.replace(look_alike, " ")
        ended = _without_ending(words)
        for fragment, kind in self._kinds.items():
            if len(fragment) <= _SHORT and fragment != "token":
                if ended and ended[-1] == fragment:
                    return kind, True
            elif fragment in compact and self._is_meant(fragment, compact, words):
                tail = "".join(ended)
                return kind, tail.endswith((fragment, fragment + "s", fragment + "es")) or compact.endswith(fragment)
        if ended and len(ended) > 1 and ended[-1] == "key" and _KEYS_OF_THINGS.isdisjoint(ended) and self._usual:
            return "key", False
        return None, False

    def _is_meant(self, fragment: str, compact: str, words: list[str]) -> bool:
        if fragment not in ("token", "authorization"):
            return True
        if not _PLACE.isdisjoint(words):
            return False
        # "tokens" alone are what models read; "access tokens" are secrets.
        if "tokens" in compact and "token" not in compact.replace("tokens", ""):
            return any(owner + "tokens" in compact for owner in _OWNERS)
        return True


def _without_ending(words: list[str]) -> list[str]:
    """Drop words at the end of a name that do not change its meaning."""
    end = len(words)
    while end > 1 and (words[end - 1] in _STILL or words[end - 1].isdecimal()):
        end -= 1
    return words[:end]


def _cues(names: list[str]) -> list[str]:
    """Return patterns for the names in lower-case text, with words joined in any way, grouped by their beginning."""
    patterns: dict[str, set[str]] = {}
    for name in names:
        words = words_of(name)
        # A short name is a word or the end of a word; inside other words it means nothing.
        edge = "(?![a-z])" if len(_compact(name)) <= _SHORT and name != "token" else ""
        pattern = "[ _.-]?".join(map(re.escape, words)) + edge
        patterns.setdefault(pattern[0], set()).add(pattern[1:])
    return [
        f"{re.escape(first)}(?:{'|'.join(sorted(rest, key=lambda pattern: (-len(pattern), pattern)))})"
        for first, rest in sorted(patterns.items())
    ]


def _is_about(words: list[str]) -> bool:
    return not _ABOUT.isdisjoint(words) or (len(words) > 1 and words[-1] in _ABOUT_AT_THE_END)


def _compact(name: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).lower()))


def _kind(name: str) -> str:
    kind = "_".join(words_of(name))
    return "".join(sign for sign in kind if sign.isascii())[:40] or "secret"


def words_of(name: str) -> list[str]:
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
