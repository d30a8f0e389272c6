"""Tell what under a sensitive key is no secret: references, labels, sentences, paths, public halves."""

import re
from collections.abc import Mapping
from typing import Any

from backstay.redaction.entropy import is_path, is_random, is_telling, is_uuid, is_version
from backstay.redaction.names import SensitiveNames
from backstay.redaction.placeholders import is_label, is_placeholder, is_sentence, is_state

_ATTRIBUTES = frozenset((
    "path", "domain", "expires", "max-age", "samesite", "secure", "httponly", "partitioned", "priority", "version",
    "comment",
))  # fmt: skip
_SESSIONS = re.compile(
    r"sess|sid\b|token|auth|login|secret|csrf|xsrf|jwt|remember|ticket|identity|credential|passw|sso|^sid|_sid|user_?id",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"_ga|_gid|_gat|_gcl|_fbp|theme|lang|locale|language|consent|tz|timezone|currency|country|color|cookieconsent"
    r"|visited|dark|font|region|cookie_?policy|optanon|experiment|variant|ab_?test|utm",
    re.IGNORECASE,
)
_GONE = frozenset(("", "deleted", "null", "none", "undefined", "expired", "0", "1", "true", "false", "yes", "no"))


def is_harmless_cookie(line: str) -> bool:
    """Say whether no cookie in the line of a header opens anything."""
    pairs = [part.strip().partition("=") for part in line.split(";")]
    held = [(name.strip(), value.strip().strip('"')) for name, sign, value in pairs if sign]
    if not held and len(pairs) == 1:
        return is_placeholder(line) or not (is_telling(line.strip()) or is_random(line.strip()))
    return all(_is_harmless(name, value) for name, value in held)


def _is_harmless(name: str, value: str) -> bool:
    if name.lower() in _ATTRIBUTES or value.lower() in _GONE or is_placeholder(value):
        return True
    if _HARMLESS.match(name):
        return True
    return not _SESSIONS.search(name) and not is_telling(value) and not is_random(value)


PASSWORDS = frozenset((
    "password", "passwd", "passphrase", "pwd", "pass", "passcode", "passwort", "kennwort", "contrasena",
))  # fmt: skip
_PHRASES = ("passphrase", "mnemonic", "seed_phrase", "recovery_phrase")
_ADDRESSES = ("webhook_url", "connection_string", "dsn")
_PUBLIC = ("ssh-rsa ", "ssh-ed25519 ", "ssh-dss ", "ecdsa-sha2-", "sk-ssh-", "-----BEGIN CERT", "-----BEGIN PUBLIC",
           "-----BEGIN RSA PUBLIC", "-----BEGIN SSH2 PUBLIC", "-----BEGIN PGP PUBLIC", "SHA256:")  # fmt: skip
_OF_LANGUAGE = frozenset((
    "position", "start_offset", "end_offset", "offset", "lemma", "logprob", "pos", "bytes", "decimals", "chain",
    "symbol", "line", "column", "score", "frequency", "supply", "holders", "contract", "stem", "start", "end",
    "logprobs",
    "probability", "prob", "deprel", "ner", "network", "blockchain", "balance", "amount", "index", "span", "tag",
))  # fmt: skip
"""What stands beside a token of a text or of a currency, and never beside one that opens anything."""
_LONGEST_WORD = 20
_LEAST_KEY = 20


def is_harmless_leaf(text: str, kind: str, names: SensitiveNames) -> bool:
    """Say whether what stands under a sensitive name only refers to a secret or speaks of one."""
    bare = text.strip()
    if is_placeholder(bare) or bare.startswith(_PUBLIC) or is_version(bare):
        return True
    if kind not in _PHRASES and is_sentence(bare):
        return True
    if is_label(bare) and not (kind in PASSWORDS and bare.islower() and " " not in bare):
        return True
    if kind in PASSWORDS or kind in _PHRASES:
        return is_path(bare) and bare.count("/") > 1
    if is_state(bare) or is_path(bare) or (bare.startswith(("http://", "https://")) and kind not in _ADDRESSES):
        return True
    return names.read(bare)[1] and names.is_given(bare) and bare not in ("secret", "token")


def is_doubtful(text: str, kind: str) -> bool:
    """Say whether a text under a name that may mean anything is no secret after all."""
    if kind == "key":
        # Any key of a service; a digest or an identifier under such a name is no secret.
        return not is_random(text) or len(text) < _LEAST_KEY or is_uuid(text) or is_path(text)
    return not (is_telling(text) or is_random(text)) or is_path(text)


def is_other_meaning(kind: str | None, text: str, beside: Mapping[str, Any]) -> bool:
    """Say whether a token is a word of a text or the sign of a currency, as what stands beside it tells."""
    word = len(text) <= _LONGEST_WORD and not any(map(str.isdecimal, text))
    return kind == "token" and word and not _OF_LANGUAGE.isdisjoint(map(str.lower, beside))
