"""Go through a payload and replace its secrets, wherever in it they stand."""

import json
from typing import Any, NamedTuple

from backstay.clean import DEEPEST, clean_json, unique_key
from backstay.redaction.harmless import (
    EXAMPLES,
    is_doubtful,
    is_harmless_cookie,
    is_harmless_leaf,
    is_other_meaning,
    is_schema,
)
from backstay.redaction.sensitive_names import words_of
from backstay.redaction.tables import ROW_FIELDS, TITLE_FIELDS, is_titles
from backstay.redaction.text import TextSecrets

NAMING = frozenset((
    "name", "key", "header", "field", "parameter", "param", "variable", "label", "title", "property", "question",
    "attribute", "setting", "option", "var", "env", "k", "n", "id", "term", "type", "kind", "path", "column",
))  # fmt: skip
LOOSELY_NAMING = frozenset(("type", "kind", "path", "title", "question", "id"))
VALUING = frozenset((
    "value", "val", "values", "content", "contents", "data", "default", "answer", "text", "current", "v", "string",
    "plaintext", "literal", "defaultvalue", "after", "before", "raw", "result", "secretstring",
))  # fmt: skip
DESCRIBING = frozenset((
    "name", "path", "file", "filename", "type", "kind", "user", "username", "login", "email", "host", "hostname",
    "port", "url", "uri", "endpoint", "region", "zone", "scope", "scopes", "description", "label", "labels", "title",
    "enabled", "required", "optional", "format", "in", "provider", "version", "status", "state", "method", "algorithm",
    "namespace", "mode", "placeholder", "items", "minlength", "maxlength", "pattern", "created", "updated", "owner",
    "created_at", "updated_at", "expires_at", "expires_in", "issuer", "audience", "database", "schema", "environment",
    "domain", "tags", "audiences", "expirationseconds", "defaultmode", "readonly", "mountpath", "engine", "protocol",
))  # fmt: skip
"""What stands under these names beneath a sensitive one only describes the secret."""
SEALED = ("encrypteddata", "ciphertext")


class SensitiveKey(NamedTuple):
    """What is known of one key of a mapping: its shown form, what it names, and what part it plays beside others."""

    shown: str
    kind: str | None
    certain: bool
    about: bool
    plain: str
    last: str


def tells_nothing(keys: list[SensitiveKey]) -> bool:
    """Say whether no key of a mapping is sensitive, and none tells what another one holds."""
    return not any(
        key.kind
        or key.about
        or key.last in VALUING
        or key.plain in TITLE_FIELDS
        or key.plain in SEALED
        or key.plain == "kty"
        for key in keys
    ) and len({key.shown for key in keys}) == len(keys)


SECRET_PARTS = frozenset(("d", "p", "q", "dp", "dq", "qi", "k", "oth"))


_MOST_NAMES = 1000
_MOST_KEYS = 60
_FIGURES_ONLY = frozenset((int, float, bool, type(None)))
_COUNTED = frozenset(("token", "secret", "cookie", "credential", "auth", "session_id", "csrf", "xsrf", "authorization"))
_SMALL = 1000
_LEAST_CHOSEN = 8


class SecretWalk:
    """Go through one payload; `kind` is the kind of secret that everything at this place is, or None."""

    def __init__(self, texts: TextSecrets) -> None:
        """Replace what is secret in texts as they do."""
        self.texts = texts
        self._keys: dict[str, SensitiveKey] = {}
        self._plain: dict[tuple[str, ...], tuple[str, ...]] = {}

    def value(self, value: Any, kind: str | None, depth: int) -> Any:
        """Return one value of strict JSON with its secrets replaced."""
        if type(value) is str:
            return self._whole(value, kind, depth) if kind else self._leaf(value, depth)
        match value:
            case str():
                return self._whole(value, kind, depth) if kind else self._leaf(value, depth)
            case bool() | None:
                return value
            case int() | float():
                return self._number(value, kind)
            case dict():
                return self._mapping(value, kind, depth + 1)
            case _:
                return self._sequence(value, kind, depth + 1)

    def _number(self, value: float, kind: str | None) -> Any:
        known = self.texts.known
        if known is not None and known.search(repr(value)):
            return self.texts.substitute("known", value)
        # `{"pass": 12, "fail": 3}` counts; and a small number is nobody's token.
        if kind in (None, "pass") or (abs(value) < _SMALL and kind in _COUNTED):
            return value
        return self.texts.substitute(kind, value)

    def _mapping(self, items: dict[str, Any], kind: str | None, depth: int) -> dict[str, Any]:
        layout = tuple(items)
        told = self._plain.get(layout)
        if told is not None and kind is None:
            # Rows repeat their keys; where none of them tells anything, only the values are looked at.
            return {name: self.value(item, None, depth) for name, item in zip(told, items.values(), strict=True)}
        redacted: dict[str, Any] = {}
        keys = [self._key(key) for key in items]
        if tells_nothing(keys) and len(layout) <= _MOST_KEYS:
            if len(self._plain) > _MOST_NAMES:
                self._plain.clear()
            self._plain[layout] = tuple(key.shown for key in keys)
        paired, sure = self._paired(items, keys)
        columns = self._columns(items, keys) if kind is None else {}
        parts = SECRET_PARTS if "kty" in items else frozenset[str]()
        for key, (name, item) in zip(keys, items.items(), strict=True):
            shown = unique_key(key.shown, redacted)
            if columns and key.plain in ROW_FIELDS and isinstance(item, list) and not key.kind:
                redacted[shown] = [self._row(row, columns, depth + 1) for row in item]
            elif key.plain in SEALED and isinstance(item, dict):
                # What is encrypted may be read by anybody.
                redacted[shown] = self._sealed(item, depth + 1)
            elif kind and not key.kind:
                told = key.about or key.plain in DESCRIBING
                redacted[shown] = self.value(item, None if told else kind, depth)
            elif kind or (key.kind and key.certain):
                redacted[shown] = self._certain(item, kind or key.kind, items, depth)
            elif key.kind:
                redacted[shown] = self._doubtful(item, key.kind, depth)
            elif paired and key.last in VALUING:
                redacted[shown] = self.value(item, paired, depth) if sure else self._doubtful(item, paired, depth)
            elif name in parts:
                redacted[shown] = self.value(item, "private_key", depth)
            else:
                redacted[shown] = self.value(item, None, depth)
        return redacted

    def _sealed(self, items: dict[str, Any], depth: int) -> dict[str, Any]:
        shown = {name: item if isinstance(item, str) else self.value(item, None, depth) for name, item in items.items()}
        return {
            self._key(name).shown: self._leaf(item, depth) if isinstance(item, str) else item
            for name, item in shown.items()
        }

    def _certain(self, item: Any, kind: str | None, beside: dict[str, Any], depth: int) -> Any:
        if is_schema(item):
            return {
                name: self._doubtful(one, kind or "secret", depth) if name in EXAMPLES else self.value(one, None, depth)
                for name, one in item.items()
            }
        if isinstance(item, str) and is_other_meaning(kind, item, beside):
            return self.value(item, None, depth)
        return self.value(item, kind, depth)

    def _doubtful(self, item: Any, kind: str, depth: int) -> Any:
        """Return what stands under a name that may not speak of a secret itself."""
        if isinstance(item, list):
            return [
                self._doubtful(one, kind, depth) if isinstance(one, str) else self.value(one, None, depth)
                for one in item
            ]
        if not isinstance(item, str):
            return self.value(item, None, depth)
        parts = self.texts.split(item)
        if any(is_done for _, is_done in parts):
            return "".join(
                part if is_done or is_doubtful(part, kind) else self._whole(part, kind, depth)
                for part, is_done in parts
            )
        return self._leaf(item, depth) if is_doubtful(item.strip(), kind) else self._whole(item, kind, depth)

    def _key(self, key: str) -> SensitiveKey:
        """Read a key; rows repeat their keys, so answers are kept."""
        known = self._keys.get(key)
        if known is None:
            if len(self._keys) > _MOST_NAMES:
                self._keys.clear()
            shown = self.texts.replaced(key)
            kind, certain = self._read(key, shown)
            words = words_of(shown)
            about = not kind and self.texts.names.tells_about(shown)
            known = SensitiveKey(shown, kind, certain, about, shown.lower(), words[-1] if words else "")
            self._keys[key] = known
        return known

    def _read(self, name: str, shown: str) -> tuple[str | None, bool]:
        """Read a name as it is and as it is shown, and believe the more certain."""
        read = [self.texts.read(shown), *([self.texts.read(name)] if shown != name else [])]
        return max(read, key=lambda one: (bool(one[0]), one[1]))

    def _sequence(self, items: list[Any], kind: str | None, depth: int) -> list[Any]:
        if kind is None and self.texts.known is None and _FIGURES_ONLY.issuperset(map(type, items)):
            return list(items)
        if kind is None and is_titles(items):
            titles = self._kinds_of(items[0])
            # Of two columns the first may be the names and the second the values.
            if titles and not (len(items[0]) == 2 and 0 in titles):
                return [self.value(items[0], None, depth), *(self._row(row, titles, depth) for row in items[1:])]
        redacted: list[Any] = []
        announced: str | None = None
        sure = False
        for at, item in enumerate(items):
            if kind or not announced:
                redacted.append(self.value(item, kind, depth))
            elif sure:
                redacted.append(self.value(item, announced, depth))
            else:
                redacted.append(self._chosen(item, announced, depth))
            announced, sure = (None, False) if announced else self._announced(redacted[-1], len(items), at)
        return redacted

    def _chosen(self, item: Any, kind: str, depth: int) -> Any:
        """Return what stands behind a name in a list of two, which may be a list of two names."""
        chosen = isinstance(item, str) and len(item) >= _LEAST_CHOSEN and any(map(str.isdecimal, item))
        return self.value(item, kind, depth) if chosen else self._doubtful(item, kind, depth)

    def _announced(self, shown: Any, count: int, at: int) -> tuple[str | None, bool]:
        """Say which kind of secret must follow in a list: `["Authorization", ...]`, `["--password", ...]`."""
        if not isinstance(shown, str) or len(shown) > 100 or "=" in shown or ": " in shown:
            return None, False
        sure = shown.startswith("--") or shown.lower() in (
            "authorization",
            "cookie",
            "set-cookie",
            "proxy-authorization",
        )
        paired = count == 2 or (count % 2 == at % 2 == 0 and "-" in shown)
        kind, certain = self.texts.read(shown) if paired or sure else (None, False)
        return (kind, sure) if certain else (None, False)

    def _paired(self, items: dict[str, Any], keys: list[SensitiveKey]) -> tuple[str | None, bool]:
        """Say which kind of secret a mapping such as `{"name": "Authorization", "value": ...}` speaks of."""
        if not any(key.last in VALUING for key in keys):
            return None, False
        for key, item in zip(keys, items.values(), strict=True):
            if key.last in NAMING and isinstance(item, str) and len(item) <= 100:
                kind, certain = self._read(item, self.texts.replaced(item))
                if kind and item.count(" ") <= 4:
                    return kind, certain and key.last not in LOOSELY_NAMING
        return None, False

    def _columns(self, items: dict[str, Any], keys: list[SensitiveKey]) -> dict[int, str]:
        """Say which columns of a table hold secrets."""
        for key, names in zip(keys, items.values(), strict=True):
            if key.plain in TITLE_FIELDS and isinstance(names, list):
                return self._kinds_of(names)
        return {}

    def _kinds_of(self, titles: list[Any]) -> dict[int, str]:
        texts = [title.get("name") if isinstance(title, dict) else title for title in titles]
        read = [
            self._read(title, self.texts.replaced(title)) if isinstance(title, str) else (None, False)
            for title in texts
        ]
        return {at: kind for at, (kind, certain) in enumerate(read) if kind and certain}

    def _row(self, row: Any, columns: dict[int, str], depth: int) -> Any:
        shown = self.value(row, None, depth)
        if not isinstance(row, list):
            return shown
        return [self.value(row[at], columns[at], depth) if at in columns else cell for at, cell in enumerate(shown)]

    def _whole(self, text: str, kind: str, depth: int) -> str:
        """Replace a text that is a secret as a whole, except what is replaced already."""
        parts = self.texts.split(text)
        if len(parts) == 1 and not parts[0][1] and self._may_stay(text, kind):
            shown = self._leaf(text, depth)
            if shown == text:
                return text
            parts = self.texts.split(shown)
        return "".join(
            part
            if is_done or not part.strip() or self._may_stay(part, kind)
            else self.texts.substitute(kind, part)
            for part, is_done in parts
        )  # fmt: skip

    def _may_stay(self, text: str, kind: str) -> bool:
        """Say whether a text under a sensitive name is no secret."""
        if kind == "cookie" and is_harmless_cookie(text):
            return True
        return is_harmless_leaf(text, kind, self.texts.names)

    def _leaf(self, text: str, depth: int) -> str:
        """Replace the secrets in a text, which may itself be JSON."""
        stripped = text.strip()
        if stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]") and depth < DEEPEST:
            redacted = self._json(stripped, depth)
            if redacted is not None:
                return redacted if redacted != stripped else text
        return self.texts.replaced(text)

    def _json(self, text: str, depth: int) -> str | None:
        """Replace the secrets in a JSON text; None when it is no JSON."""
        repeated: list[bool] = []

        def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
            if len({key for key, _ in items}) < len(items):
                repeated.append(True)
            return dict(items)

        try:
            parsed = json.loads(text, object_pairs_hook=pairs)
        except (ValueError, RecursionError):
            return None
        redacted = self.value(clean_json(parsed, max(DEEPEST - depth, 1)), None, depth)
        # Of a name that stands twice only the last value was looked at: the text is written anew without the others.
        if not repeated and redacted == parsed:
            return text
        return json.dumps(redacted, ensure_ascii=False)
