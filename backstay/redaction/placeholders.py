"""Tell a secret from a text that only stands where one would stand."""

import re
from typing import Any

_TEMPLATES = r"""\$\{\{[^\n]{0,200}?\}\} | \$\{[^}\n]{1,200}\} | \$\([^\n]{1,400}?\) | \$[A-Z_][A-Z0-9_]{2,80}
      | \#\{[^}\n]{1,80}\} | \{\{[^\n]{0,200}?\}\} | \{[A-Za-z_][\w.]{0,80}\} | %\([A-Za-z_]\w{0,80}\)s | %[A-Z_]{2,80}%
      | </?[A-Za-z][\w ./|-]{0,60}> | \[[A-Za-z][A-Za-z _-]{0,60}\] | \*{3,} | [xX]{4,}(?:-[xX]{4,})* | \.{3}
      | \u2022{3,} | \u2026 | (?:YOUR|your)[_-][A-Za-z_-]{1,60}"""
_VAULTS = r"""      | \((?:sensitive|redacted|hidden|masked|known|none|empty|not|no|secret)\b[a-z ]{0,40}\)
      | <%[^\n]{0,200}?%> | @[A-Z][\w.]{1,40}\([^\n]{0,400}?\) | \$\([^\n]{1,400}\) | (?i:\$?ref:)[\w./:-]{1,200}
      | arn:[\w:/.*-]{4,400} | projects/[\w-]{1,80}/secrets/[\w/.-]{1,200} | ENC\[[^\n]{0,4000}?\]
      | (?:op|vault|keyvault|awssm|aws-sm|ssm|gcpsm|gcp-sm|sm|secretref|ref\+[a-z]{2,20}|keychain|keyring|pass|bws|azkv
          |akv|doppler|infisical|berglas|sops|env|file|secret|secrets|bao)://?[\w ./:@\#?=&%+-]{1,300}"""
_FORMS_TO_FILL = r"""      | (?:vault|ssm|secretref|env|secretsmanager):[A-Za-z_][\w ./:\#-]{1,300}
      | ![A-Z][A-Za-z0-9.]{1,30}(?:[ ][\w.${}/"'-]{1,200})? | !(?:secret|vault|env|env_var)[ ][\w./-]{1,200}
      | (?:REPLACE|CHANGE|INSERT|PUT|ENTER|PASTE|FILL|SET|ADD|TO[D]O|TBD
          |FIX[M]E|EXAMPLE|PLACEHOLDER|DUMMY)(?:[_ -][A-Z_ -]{1,60})?
      | (?:replace|change|insert|put|enter|paste|fill)
          [_ -](?:me|this|it|your|the|with|in|here)(?:[_ -][A-Za-z_ -]{1,60})?"""
_MARKS_OF_NOTHING = r"""      | [A-Za-z][A-Za-z_ -]{0,60}[_ -](?:here|HERE|goes[_ -]here|placeholder|PLACEHOLDER)
      | (?:not[_ -]set|unset|n/a|N/A)
      | \#\#?[A-Z_]{2,60}\#\#? | __[A-Za-z_]{2,60}__ | @@?[A-Za-z_.]{2,60}@@?
      | \|[A-Z_]{2,40}\| | -{2,} | _{3,} | \?{1,9}
      | \[?(?:REDACTED|FILTERED|MASKED|HIDDEN|SECRET|PROTECTED|redacted|filtered|masked|hidden|removed|REMOVED)\]?"""
_REFERENCE = re.compile(_TEMPLATES + _VAULTS + _FORMS_TO_FILL + _MARKS_OF_NOTHING, re.VERBOSE)
# No digit: `$ecret1` is a password, whatever it begins with.
_VARIABLE = re.compile(r"\$[A-Za-z_]{1,80}(?![0-9])")
_SCHEME = re.compile(r"(?:bearer|basic|token|digest)[ \t]{1,4}", re.IGNORECASE)
_EXPRESSIONS = r"""(?:await|new|async|not|yield|typeof|lambda|return)\s
      | &?(?:mut\s)?[A-Za-z_](?:[\w.!]|::|->){0,80}[(\[]
      | \$[A-Za-z_]\w{0,60}(?:\[|\{|->|::|\.[a-z]|\() | \$[0-9]{1,2}(?![A-Za-z0-9])
      | [:@][A-Za-z_]{2,40}(?![A-Za-z0-9!$-])
      | [A-Z][a-z]{1,20}-[A-Z][A-Za-z]{2,40}[ ]
      | [A-Za-z_]{1,60}(?:\.[A-Za-z_]{2,60}|::[A-Za-z_]{1,60}|->[A-Za-z_]{1,60}){1,6}(?![A-Za-z0-9!@$-])"""
_OBJECTS = r"""      | %[a-z]{1,2}(?![A-Za-z0-9]) | [&*!][A-Za-z_]{1,60}(?![A-Za-z0-9!@$-]) | @?\[
      | (?:async\s)?\([\w, ]{0,60}\)\s?=>
      | (?:process\.env|os\.environ|import\.meta|self|this|config|settings|request|req|args|options|env|ctx|context
          |secrets|vars|var|local|data|module|params|inputs|props|state)\.[A-Za-z_]"""
_CODE = re.compile(_EXPRESSIONS + _OBJECTS, re.VERBOSE)
_QUOTES = frozenset("\"'`")
_ENDS = tuple(" \t\r\n\"'`,;)}]&|\\@/<")

_MARKS = ".,;:!?()\"'"
_FEWEST_WORDS = 4
_MOST_LABEL_WORDS = 8
_FEWEST_FUNCTION_WORDS = 2
_FUNCTION_WORDS = frozenset((
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "cannot", "could", "do", "does",
    "for", "from", "has", "least", "most", "more", "only", "have", "if", "in", "is", "it", "its", "must", "need",
    "no", "not", "of", "on", "or", "should", "than", "that",
    "the", "their", "then", "this", "to", "use", "was", "were", "when", "which", "will",
    "with", "you", "your",
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
    "parool",
    "пароль", "密码", "密碼", "パスワード", "비밀번호", "token", "tokens", "jeton", "ficha", "key", "schlüssel",
    "clave",
    "clé", "chave", "chiave", "credentials", "credential", "passphrase", "passcode", "pin", "cookie", "cookies",
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
    "access", "refresh", "rotate", "rotated", "rejected", "accepted", "ignored", "empty", "blank", "tbd",
    "deleted", "n/a", "xxx", "...", "and", "or", "is", "the", "a", "in", "for", "to", "of", "not", "must", "has", "was",
))  # fmt: skip
# People take sentences for passwords too; only one that speaks of rules or of secrets is a sentence about them.
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
    """Say whether a whole text is a reference, a form to fill in, or a mask, and no secret."""
    bare = text.strip()
    scheme = _SCHEME.match(bare)
    found = _REFERENCE.fullmatch(bare, scheme.end() if scheme else 0)
    return found is not None


def starts_as_no_secret(text: str, start: int, name: str) -> bool:
    """Say whether what stands at a place in code or in a template is a reference or an expression, and no literal."""
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
    """Say whether a text under a sensitive name is a sentence about it, and not words to remember."""
    words = text.split()
    plain = [word.strip(_MARKS).lower() for word in words]
    joined = sum(word in _FUNCTION_WORDS for word in plain)
    return len(words) >= _FEWEST_WORDS and joined >= _FEWEST_FUNCTION_WORDS and not _MATTERS.isdisjoint(plain)


def is_label(text: str) -> bool:
    """Say whether a text names a secret on a form, in one of several languages: `Forgot your password?`."""
    words = [word.strip(_MARKS + "*").lower() for word in text.replace("-", " ").split()]
    if not 0 < len(words) <= _MOST_LABEL_WORDS or words == ["pin"]:
        return False
    known = _LABELS | _LABELLED | _FUNCTION_WORDS
    return not _LABELLED.isdisjoint(words) and all(word in known or not word for word in words)


def is_state(text: str) -> bool:
    """Say whether a text is a word for a state, a type or a choice."""
    return text.lower() in _STATES


def is_schema(item: Any) -> bool:
    """Say whether what stands under a sensitive name describes what may stand there: JSON Schema without examples."""
    return isinstance(item, dict) and item.get("type") in _SCHEMA_TYPES and _SCHEMA_WORDS.issuperset(item)
