"""Recognise values that stand in place of a secret: placeholders, references, labels, sentences, states."""

import re
from collections.abc import Mapping
from typing import Any

from backstay.redaction.entropy import is_path, is_random, is_uuid, is_version, looks_secret
from backstay.redaction.sensitive_names import SensitiveNames

_REFERENCE = re.compile(
    r"""\$\{\{[^\n]{0,200}?\}\} | \$\{[^}\n]{1,200}\} | \$\([^\n]{1,400}?\) | \$[A-Z_][A-Z0-9_]{2,80}
      | \#\{[^}\n]{1,80}\} | \{\{[^\n]{0,200}?\}\} | \{[A-Za-z_][\w.]{0,80}\} | %\([A-Za-z_]\w{0,80}\)s | %[A-Z_]{2,80}%
      | </?[A-Za-z][\w ./|-]{0,60}> | \[[A-Za-z][A-Za-z _-]{0,60}\] | \*{3,} | [xX]{4,}(?:-[xX]{4,})* | \.{3}
      | \u2022{3,} | \u2026 | (?:YOUR|your)[_-][A-Za-z_-]{1,60}
      | \((?:sensitive|redacted|hidden|masked|known|none|empty|not|no|secret)\b[a-z ]{0,40}\)
      | <%[^\n]{0,200}?%> | @[A-Z][\w.]{1,40}\([^\n]{0,400}?\) | \$\([^\n]{1,400}\) | (?i:\$?ref:)[\w./:-]{1,200}
      | arn:[\w:/.*-]{4,400} | projects/[\w-]{1,80}/secrets/[\w/.-]{1,200} | ENC\[[^\n]{0,4000}?\]
      | (?:op|vault|keyvault|awssm|aws-sm|ssm|gcpsm|gcp-sm|sm|secretref|ref\+[a-z]{2,20}|keychain|keyring|pass|bws|azkv
          |akv|doppler|infisical|berglas|sops|env|file|secret|secrets|bao)://?[\w ./:@\#?=&%+-]{1,300}
      | (?:vault|ssm|secretref|env|secretsmanager):[A-Za-z_][\w ./:\#-]{1,300}
      | ![A-Z][A-Za-z0-9.]{1,30}(?:[ ][\w.${}/"'-]{1,200})? | !(?:secret|vault|env|env_var)[ ][\w./-]{1,200}
      | (?:REPLACE|CHANGE|INSERT|PUT|ENTER|PASTE|FILL|SET|ADD|TO[D]O|TBD
          |FIX[M]E|EXAMPLE|PLACEHOLDER|DUMMY)(?:[_ -][A-Z_ -]{1,60})?
      | (?:replace|change|insert|put|enter|paste|fill)
          [_ -](?:me|this|it|your|the|with|in|here)(?:[_ -][A-Za-z_ -]{1,60})?
      | [A-Za-z][A-Za-z_ -]{0,60}[_ -](?:here|HERE|goes[_ -]here|placeholder|PLACEHOLDER)
      | (?:not[_ -]set|unset|n/a|N/A)
      | \#\#?[A-Z_]{2,60}\#\#? | __[A-Za-z_]{2,60}__ | @@?[A-Za-z_.]{2,60}@@?
      | \|[A-Z_]{2,40}\| | -{2,} | _{3,} | \?{1,9}
      | \[?(?:REDACTED|FILTERED|MASKED|HIDDEN|SECRET|PROTECTED|redacted|filtered|masked|hidden|removed|REMOVED)\]?""",
    re.VERBOSE,
)
# No digits: `$ecret1` is a password.
_VARIABLE = re.compile(r"\$[A-Za-z_]{1,80}(?![0-9])")
_SCHEME = re.compile(r"(?:bearer|basic|token|digest)[ \t]{1,4}", re.IGNORECASE)
_CODE = re.compile(
    r"""(?:await|new|async|not|yield|typeof|lambda|return)\s
      | &?(?:mut\s)?[A-Za-z_](?:[\w.!]|::|->){0,80}[(\[]
      | \$[A-Za-z_]\w{0,60}(?:\[|\{|->|::|\.[a-z]|\() | \$[0-9]{1,2}(?![A-Za-z0-9])
      | [:@][A-Za-z_]{2,40}(?![A-Za-z0-9!$-])
      | [A-Z][a-z]{1,20}-[A-Z][A-Za-z]{2,40}[ ]
      | [A-Za-z_]{1,60}(?:\.[A-Za-z_]{2,60}|::[A-Za-z_]{1,60}|->[A-Za-z_]{1,60}){1,6}(?![A-Za-z0-9!@$-])
      | %[a-z]{1,2}(?![A-Za-z0-9]) | [&*!][A-Za-z_]{1,60}(?![A-Za-z0-9!@$-]) | @?\[
      | (?:async\s)?\([\w, ]{0,60}\)\s?=>
      | (?:process\.env|os\.environ|import\.meta|self|this|config|settings|request|req|args|options|env|ctx|context
          |secrets|vars|var|local|data|module|params|inputs|props|state)\.[A-Za-z_]""",
    re.VERBOSE,
)
_QUOTES = frozenset("\"'`")
_ENDS = tuple(" \t\r\n\"'`,;)}]&|\\@/<")

_MARKS = ".,;:!?()\"'"
_FEWEST_WORDS = 4
_MOST_LABEL_WORDS = 8
_FEWEST_FUNCTION_WORDS = 2
_FUNCTION_WORDS = frozenset((
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "cannot", "could", "do", "does",
    "for", "from", "has", "least", "most", "more", "only", "have", "if", "in", "is", "it", "its", "must", "need", "no",
    "not", "of", "on", "or", "should", "than", "that", "the", "their", "then", "this", "to", "use", "was", "were",
    "when", "which", "will", "with", "you", "your",
))  # fmt: skip

_LABELS = frozenset((
    "account", "again", "api", "change", "choose", "code", "confirm", "confirmation", "copy", "create", "current",
    "delete", "edit", "enter", "field", "forgot", "forgotten", "generate", "hide", "login", "manage", "new", "now",
    "old", "optional", "paste", "please", "recover", "remember", "repeat", "required", "reset", "revoke", "rotate",
    "save", "settings", "show", "sign", "type", "update", "user", "username", "view", "wrong", "invalid", "access",
    "refresh", "client", "private", "public", "temporary", "lost", "verify", "validate", "expired", "missing", "our",
    "nouveau", "nueva", "neues", "ihr", "ihre", "votre", "su", "tu", "de", "la", "el", "le", "das", "die", "der", "du",
    "oublie", "oublié", "vergessen", "olvidada", "olvidó", "bestätigen", "confirmar", "confirmer", "ändern", "eingeben",
    "cambiar", "mot", "passe", "acceso", "acesso", "accès", "zugangs", "dimenticata", "esqueceu", "glömt", "vergeten",
))  # fmt: skip
_LABELLED = frozenset((
    "password", "passwords", "passwort", "kennwort", "contraseña", "contrasena", "passe", "senha", "wachtwoord",
    "lösenord", "losenord", "adgangskode", "passord", "salasana", "hasło", "haslo", "heslo", "parola", "jelszó",
    "parool", "пароль", "密码", "密碼", "パスワード", "비밀번호", "token", "tokens", "jeton", "ficha", "key", "clave",
    "schlüssel", "clé", "chave", "chiave", "credentials", "credential", "passphrase", "passcode", "pin", "cookie",
    "cookies",
))  # fmt: skip
_STATES = frozenset((
    "on", "off", "enabled", "disabled", "enable", "disable", "allow", "deny", "allowed", "denied", "always", "never",
    "include", "omit", "same-origin", "same-site", "strict", "lax", "auto", "manual", "default", "inherit", "prompt",
    "optional", "mandatory", "required", "valid", "invalid", "expired", "active", "inactive", "revoked", "missing",
    "present", "absent", "set", "unset", "changed", "unchanged", "hidden", "visible", "readonly", "read-only", "write",
    "read", "full", "none", "null", "nil", "true", "false", "undefined", "yes", "no", "ok", "fail", "failed", "passed",
    "pending", "unknown", "basic", "bearer", "digest", "negotiate", "oauth", "oauth2", "jwt", "saml", "ldap", "cookie",
    "password", "passwd", "secretstr", "str", "string", "int", "integer", "float", "bool", "boolean", "bytes", "any",
    "text", "varchar", "char", "number", "object", "bytea", "blob", "void", "never", "self", "this", "byte", "buffer",
    "sensitive", "masked", "redacted", "filtered", "encrypted", "hashed", "plain", "plaintext", "normal", "test",
    "access", "refresh", "rotate", "rotated", "rejected", "accepted", "ignored", "empty", "blank", "tbd", "deleted",
    "n/a", "xxx", "...", "and", "or", "is", "the", "a", "in", "for", "to", "of", "not", "must", "has", "was",
))  # fmt: skip
# People use sentences as passwords too; only a sentence with one of these words is about secrets.
_MATTERS = frozenset((
    "blank", "character", "characters", "credential", "credentials", "digit", "digits", "empty", "expired", "incorrect",
    "invalid", "key", "keys", "letter", "letters", "long", "match", "maximum", "minimum", "missing", "password",
    "passwords", "required", "secret", "secrets", "short", "token", "tokens", "weak", "wrong",
))  # fmt: skip

_SCHEMA_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
EXAMPLES = ("example", "examples", "default")
_SCHEMA_WORDS = frozenset((
    "type", "title", "description", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "nullable",
    "readOnly", "writeOnly", "deprecated", "minItems", "maxItems", "uniqueItems", *EXAMPLES,
))  # fmt: skip


def is_placeholder(text: str) -> bool:
    """Return whether a text is a reference, a form to fill in or a mask."""
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


def is_label(text: str) -> bool:
    """Return whether a text names a secret on a form, in one of several languages: `Forgot your password?`."""
    words = [word.strip(_MARKS + "*").lower() for word in text.replace("-", " ").split()]
    if not 0 < len(words) <= _MOST_LABEL_WORDS or words == ["pin"]:
        return False
    known = _LABELS | _LABELLED | _FUNCTION_WORDS
    return not _LABELLED.isdisjoint(words) and all(word in known or not word for word in words)


def is_state(text: str) -> bool:
    """Return whether a text is a word for a state, a type or a choice."""
    return text.lower() in _STATES


def is_schema(item: Any) -> bool:
    """Return whether the value of a sensitive name is a JSON Schema that describes it."""
    return isinstance(item, dict) and item.get("type") in _SCHEMA_TYPES and _SCHEMA_WORDS.issuperset(item)


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
    "logprobs", "probability", "prob", "deprel", "ner", "network", "blockchain", "balance", "amount", "index", "span",
    "tag",
))  # fmt: skip
"""Keys beside a token of a text or of a currency, never beside a token that grants access."""
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
    """Return whether the value of an ambiguous name is no secret."""
    if kind == "key":
        # A name such as `mailer_key`: its value may also be a digest or an identifier.
        return not is_random(text) or len(text) < _LEAST_KEY or is_uuid(text) or is_path(text)
    return not looks_secret(text) or is_path(text)


def is_other_meaning(kind: str | None, text: str, beside: Mapping[str, Any]) -> bool:
    """Return whether a token is a word of a text or the symbol of a currency, judged by the keys beside it."""
    word = len(text) <= _LONGEST_WORD and not any(map(str.isdecimal, text))
    return kind == "token" and word and not _OF_LANGUAGE.isdisjoint(map(str.lower, beside))
