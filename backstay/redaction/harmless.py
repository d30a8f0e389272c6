"""Recognise values that are in place of a secret: placeholders, references, labels, sentences, states."""

import re
from collections.abc import Mapping
from typing import Any

from backstay.data_files import data_beside
from backstay.redaction.entropy import is_path, is_random, is_uuid, is_version, looks_secret
from backstay.redaction.sensitive_names import SensitiveNames

_LISTS = data_beside(__file__)
_REFERENCE = re.compile(_LISTS["patterns"]["reference"])
# No digits: `$ecret1` is a password.
_VARIABLE = re.compile(r"\$[A-Za-z_]{1,80}(?![0-9])")
_SCHEME = re.compile(r"(?:bearer|basic|token|digest)[ \t]{1,4}", re.IGNORECASE)
_CODE = re.compile(_LISTS["patterns"]["code"])
_QUOTES = frozenset("\"'`")
_ENDS = tuple(" \t\r\n\"'`,;)}]&|\\@/<")

_MARKS = ".,;:!?()\"'"
_FEWEST_WORDS = 4
_MOST_LABEL_WORDS = 8
_FEWEST_FUNCTION_WORDS = 2
_FUNCTION_WORDS = frozenset[str](_LISTS["function_words"].split())

_LABELS = frozenset[str](_LISTS["labels"].split())
_LABELLED = frozenset[str](_LISTS["labelled"].split())
_STATES = frozenset[str](_LISTS["states"].split())
# People use sentences as passwords too; only a sentence with one of these words is about secrets.
_MATTERS = frozenset[str](_LISTS["matters"].split())

_SCHEMA_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
EXAMPLES = ("example", "examples", "default")
_SCHEMA_WORDS = frozenset((
    "type", "title", "description", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "nullable",
    "readOnly", "writeOnly", "deprecated", "minItems", "maxItems", "uniqueItems", *EXAMPLES,
))  # fmt: skip


def is_placeholder(text: str) -> bool:
    """Return whether a string is a reference, a form to fill in or a mask."""
    bare = text.strip()
    scheme = _SCHEME.match(bare)
    return _REFERENCE.fullmatch(bare, scheme.end() if scheme else 0) is not None


def starts_as_no_secret(text: str, start: int, name: str) -> bool:
    """Return whether a reference or an expression starts here, in code or in a template, and no literal."""
    scheme = _SCHEME.match(text, start)
    at = scheme.end() if scheme else start
    found = _REFERENCE.match(text, at)
    if found is None and text[start - 1 : start] != "'":
        found = _VARIABLE.match(text, at)
    if found is not None and text[found.end() : found.end() + 1] in ("", *_ENDS):
        return True
    if start and text[start - 1] in _QUOTES:
        return False
    if scheme is None and _CODE.match(text, start) is not None:
        return True
    last = name.rpartition(".")[2]
    return text.startswith(last, start) and text[start + len(last) : start + len(last) + 1] in ("", *_ENDS)


def is_sentence(text: str) -> bool:
    """Return whether the value of a sensitive name is a sentence about the secret, and not a passphrase."""
    words = text.split()
    plain = [word.strip(_MARKS).lower() for word in words]
    joined = sum(word in _FUNCTION_WORDS for word in plain)
    return len(words) >= _FEWEST_WORDS and joined >= _FEWEST_FUNCTION_WORDS and not _MATTERS.isdisjoint(plain)


def has_function_words(text: str) -> bool:
    """Return whether a string has words that only join others, as sentences do."""
    return not _FUNCTION_WORDS.isdisjoint(text.lower().split())


def is_label(text: str) -> bool:
    """Return whether a string names a secret on a form, in one of several languages: `Forgot your password?`."""
    words = [word.strip(_MARKS + "*").lower() for word in text.replace("-", " ").split()]
    if not 0 < len(words) <= _MOST_LABEL_WORDS or words == ["pin"]:
        return False
    known = _LABELS | _LABELLED | _FUNCTION_WORDS
    return not _LABELLED.isdisjoint(words) and all(word in known or not word for word in words)


def is_state(text: str) -> bool:
    """Return whether a string is a word for a state, a type or a choice."""
    return text.lower() in _STATES


def is_schema(item: Any) -> bool:
    """Return whether the value of a sensitive name is a JSON Schema that describes it."""
    return isinstance(item, dict) and item.get("type") in _SCHEMA_TYPES and _SCHEMA_WORDS.issuperset(item)


_ATTRIBUTES = frozenset[str](_LISTS["attributes"].split())
_SESSIONS = re.compile(_LISTS["patterns"]["sessions"])
_HARMLESS = re.compile(_LISTS["patterns"]["harmless"])
_GONE = frozenset(("", "deleted", "null", "none", "undefined", "expired", "0", "1", "true", "false", "yes", "no"))


def is_harmless_cookie(line: str) -> bool:
    """Return whether no cookie in a header grants access."""
    pairs = [part.strip().partition("=") for part in line.split(";")]
    held = [(name.strip(), value.strip().strip('"')) for name, sign, value in pairs if sign]
    if not held and len(pairs) == 1:
        return is_placeholder(line) or not looks_secret(line.strip())
    return all(_is_harmless(name, value) for name, value in held)


def _is_harmless(name: str, value: str) -> bool:
    if name.lower() in _ATTRIBUTES or value.lower() in _GONE or is_placeholder(value):
        return True
    if _HARMLESS.match(name):
        return True
    return not _SESSIONS.search(name) and not looks_secret(value)


PASSWORDS = frozenset[str](_LISTS["passwords"].split())
_PHRASES = ("passphrase", "mnemonic", "seed_phrase", "recovery_phrase")
_ADDRESSES = ("webhook_url", "connection_string", "dsn")
_PUBLIC = ("ssh-rsa ", "ssh-ed25519 ", "ssh-dss ", "ecdsa-sha2-", "sk-ssh-", "-----BEGIN CERT", "-----BEGIN PUBLIC",
           "-----BEGIN RSA PUBLIC", "-----BEGIN SSH2 PUBLIC", "-----BEGIN PGP PUBLIC", "SHA256:")  # fmt: skip
_OF_LANGUAGE = frozenset[str](_LISTS["of_language"].split())
"""Keys beside a token of text or of a currency, never beside a token that grants access."""
_LONGEST_WORD = 20
_LEAST_KEY = 20


def is_harmless_leaf(text: str, kind: str, names: SensitiveNames) -> bool:
    """Return whether the value of a sensitive name only refers to a secret or describes it."""
    bare = text.strip()
    if kind == "cookie" and is_harmless_cookie(text):
        return True
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
    """Return whether the value of an ambiguous name is not a secret."""
    if kind == "key":
        # A name such as `mailer_key`: its value may also be a digest or an identifier.
        return not is_random(text) or len(text) < _LEAST_KEY or is_uuid(text) or is_path(text)
    return not looks_secret(text) or is_path(text)


def is_other_meaning(kind: str | None, text: str, beside: Mapping[str, Any]) -> bool:
    """Return whether a token is a word of text or the symbol of a currency, judged by the keys beside it."""
    word = len(text) <= _LONGEST_WORD and not any(map(str.isdecimal, text))
    return kind == "token" and word and not _OF_LANGUAGE.isdisjoint(map(str.lower, beside))
