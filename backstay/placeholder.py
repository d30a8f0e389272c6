"""Tell a secret from a text that only stands where one would stand."""

import re
from typing import Any

_REFERENCE = re.compile(
    r"""\$\{\{[^\n]{0,200}?\}\} | \$\{[^}\n]{1,200}\} | \$\([^\n]{1,400}?\) | \$[A-Z_][A-Z0-9_]{2,80}
      | \#\{[^}\n]{1,80}\} | \{\{[^\n]{0,200}?\}\} | \{[A-Za-z_][\w.]{0,80}\} | %\([A-Za-z_]\w{0,80}\)s | %[A-Z_]{2,80}%
      | </?[A-Za-z][\w ./|-]{0,60}> | \[[A-Za-z][A-Za-z _-]{0,60}\] | \*{3,} | [xX]{4,}(?:-[xX]{4,})* | \.{3}
      | \u2022{3,} | \u2026 | (?:YOUR|your)[_-][A-Za-z_-]{1,60}
      | \((?:sensitive|redacted|hidden|masked|known|none|empty|not|no|secret)\b[a-z ]{0,40}\)""",
    re.VERBOSE,
)
# No digit: `$ecret1` is a password, whatever it begins with.
_VARIABLE = re.compile(r"\$[A-Za-z_]{1,80}(?![0-9])")
_SCHEME = re.compile(r"(?:bearer|basic|token|digest)[ \t]{1,4}", re.IGNORECASE)
_CODE = re.compile(
    r"""(?:await|new|async|not|yield|typeof|lambda|return)\s
      | &?(?:mut\s)?[A-Za-z_](?:[\w.!]|::|->){0,80}[(\[]
      | (?:process\.env|os\.environ|import\.meta|self|this|config|settings|request|req|args|options|env|ctx|context
          |secrets|vars|var|local|data|module|params|inputs|props|state)\.[A-Za-z_]""",
    re.VERBOSE,
)
_QUOTES = frozenset("\"'`")
_ENDS = tuple(" \t\r\n\"'`,;)}]&|\\@/<")

_MARKS = ".,;:!?()\"'"
_FEWEST_WORDS = 4
_FEWEST_FUNCTION_WORDS = 2
_FUNCTION_WORDS = frozenset((
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "cannot", "could", "do", "does",
    "for", "from", "has", "have", "if", "in", "is", "it", "its", "must", "need", "no", "not", "of", "on", "or",
    "should", "than", "that", "the", "their", "then", "this", "to", "use", "was", "were", "when", "which", "will",
    "with", "you", "your",
))  # fmt: skip

# People take sentences for passwords too; only one that speaks of rules or of secrets is a sentence about them.
_MATTERS = frozenset((
    "blank", "character", "characters", "credential", "credentials", "digit", "digits", "empty", "expired", "incorrect",
    "invalid", "key", "keys", "letter", "letters", "long", "match", "maximum", "minimum", "missing", "password",
    "passwords", "required", "secret", "secrets", "short", "token", "tokens", "weak", "wrong",
))  # fmt: skip

_SCHEMA_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_SCHEMA_WORDS = frozenset((
    "type", "title", "description", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "nullable",
    "readOnly", "writeOnly", "deprecated", "minItems", "maxItems", "uniqueItems",
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


def is_schema(item: Any) -> bool:
    """Say whether what stands under a sensitive name describes what may stand there: JSON Schema without examples."""
    return isinstance(item, dict) and item.get("type") in _SCHEMA_TYPES and _SCHEMA_WORDS.issuperset(item)
