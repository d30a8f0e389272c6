"""Replace the secrets in a JSON value: under sensitive keys, in tables, and in texts."""

import json
from typing import Any, NamedTuple

from backstay.data_files import data_beside
from backstay.redaction.handles import is_json_like
from backstay.redaction.harmless import (
    EXAMPLES,
    is_doubtful,
    is_harmless_leaf,
    is_other_meaning,
    is_placeholder,
    is_schema,
)
from backstay.redaction.json_text import (
    JOINT,
    LiteralChange,
    RepeatedNames,
    ShapesDiffer,
    changes_of,
    json_in,
    objects_in,
    signs_of,
)
from backstay.redaction.key_lines import key_lines_behind, with_leaf
from backstay.redaction.manifests import DATA_FIELDS, SECRET, SECRETS
from backstay.redaction.sensitive_names import words_of
from backstay.redaction.tables import ROW_FIELDS, TITLE_FIELDS, is_titles, sensitive_columns
from backstay.redaction.text import KNOWN, TextRedactor
from backstay.strict_json import DEEPEST, OPAQUE, clean_json, unique_key

_LISTS = data_beside(__file__)
_NAMING = frozenset[str](_LISTS["naming"].split())
_LOOSELY_NAMING = frozenset[str](_LISTS["loosely_naming"].split())
_VALUING = frozenset[str](_LISTS["valuing"].split())
_DESCRIBING = frozenset[str](_LISTS["describing"].split())
"""Under a sensitive key, these keys only describe the secret."""
_SEALED = ("encrypteddata", "ciphertext")
_PRIVATE_PARTS_OF_A_WEB_KEY = frozenset(("d", "p", "q", "dp", "dq", "qi", "k", "oth"))
_HEADERS = ("authorization", "cookie", "set-cookie", "proxy-authorization")
_MOST_REMEMBERED = 1000
_MOST_KEYS = 60
_LONGEST_NAME = 100
_NUMBERS = frozenset((int, float, bool, type(None)))
_COUNTED = frozenset(("token", "secret", "cookie", "credential", "auth", "session_id", "csrf", "xsrf", "authorization"))
_HIDING = ("\\u00", "\\/", f'"{SECRET}"')
"""Signs of JSON that its lines, looked at as plain text, do not show in full."""
_SMALL = 1000
_LEAST_CHOSEN = 8


class _Key(NamedTuple):
    """A key of a mapping: how it is shown, which secret it names, and what it says of the values beside it."""

    shown: str
    kind: str | None
    certain: bool
    describes: bool
    """Under a sensitive key, this key only describes the secret."""
    plain: str
    last: str

    @property
    def is_telling(self) -> bool:
        """Return whether the key says anything of its value or of those beside it."""
        return bool(
            self.kind
            or self.describes
            or self.last in _VALUING
            or self.plain in TITLE_FIELDS
            or self.plain in _SEALED
            or self.plain == "kty"
        )


_Layout = tuple[list[_Key], tuple[str, ...]]
"""The keys of a mapping; and if no key is telling, the names to show."""


class JsonRedactor:
    """Redact one payload; `kind` is the kind of secret that everything at this place is, or None."""

    def __init__(self, texts: TextRedactor) -> None:
        """Take what redacts the texts in the payload."""
        self.texts = texts
        # Rows repeat their keys.
        self._keys: dict[str, _Key] = {}
        self._layouts: dict[tuple[str, ...], _Layout] = {}

    def value(self, value: Any, kind: str | None, depth: int) -> Any:
        """Return a value of strict JSON with its secrets replaced."""
        if isinstance(value, str):
            return self._whole(value, kind, depth) if kind else self._leaf(value, depth)
        match value:
            case bool() | None:
                return value
            case int() | float():
                return self._number(value, kind)
            case dict():
                return self._mapping(value, kind, depth + 1)
            case _:
                return self._sequence(value, kind, depth + 1)

    def _number(self, value: float, kind: str | None) -> Any:
        if self.texts.knows(repr(value)):
            return self.texts.substitute(KNOWN, value)
        # `{"pass": 12, "fail": 3}` counts, and a small number is nobody's token.
        if kind in (None, "pass") or (abs(value) < _SMALL and kind in _COUNTED):
            return value
        return self.texts.substitute(kind, value)

    def _mapping(
        self, items: dict[str, Any], kind: str | None, depth: int, *, is_manifest: bool = False
    ) -> dict[str, Any]:
        keys, plain_names = self._layout(tuple(items))
        if plain_names and kind is None:
            return {name: self.value(item, None, depth) for name, item in zip(plain_names, items.values(), strict=True)}
        redacted: dict[str, Any] = {}
        named, certain = self._named_beside(items, keys)
        columns = self._columns(items, keys) if kind is None else {}
        said = items.get("kind")
        is_manifest = is_manifest or said == SECRET
        for key, (name, item) in zip(keys, items.items(), strict=True):
            shown = unique_key(key.shown, redacted)
            if columns and key.plain in ROW_FIELDS and isinstance(item, list) and not key.kind:
                redacted[shown] = [self._row(row, columns, depth + 1) for row in item]
            elif key.plain in _SEALED and isinstance(item, dict):
                # Encrypted text may be read by anybody.
                redacted[shown] = {self._key(k).shown: self.value(v, None, depth + 1) for k, v in item.items()}
            elif is_manifest and name in DATA_FIELDS and isinstance(item, dict):
                redacted[shown] = self._data(item, depth + 1)
            elif said == SECRETS and name == "items" and isinstance(item, list):
                redacted[shown] = [self._listed(each, depth + 1) for each in item]
            elif kind and not key.kind:
                redacted[shown] = self.value(item, None if key.describes else kind, depth)
            elif found := kind or key.kind:
                redacted[shown] = self._under(item, found, items, depth, certain=bool(kind) or key.certain)
            elif named and key.last in _VALUING:
                redacted[shown] = self.value(item, named, depth) if certain else self._doubtful(item, named, depth)
            else:
                is_private = name in _PRIVATE_PARTS_OF_A_WEB_KEY and "kty" in items
                redacted[shown] = self.value(item, "private_key" if is_private else None, depth)
        return redacted

    def _data(self, items: dict[str, Any], depth: int) -> dict[str, Any]:
        """Redact the data of a Secret of Kubernetes."""
        redacted: dict[str, Any] = {}
        for name, item in items.items():
            key = self._key(name)
            kind = key.kind or "secret"
            shown = self._masked(item, kind) if isinstance(item, str) else self.value(item, kind, depth)
            redacted[unique_key(key.shown, redacted)] = shown
        return redacted

    def _listed(self, item: Any, depth: int) -> Any:
        """Redact a Secret in a list of them, where none says its kind."""
        is_manifest = isinstance(item, dict)
        return self._mapping(item, None, depth, is_manifest=True) if is_manifest else self.value(item, None, depth)

    def _under(self, item: Any, kind: str, beside: dict[str, Any], depth: int, *, certain: bool) -> Any:
        """Redact the value of a sensitive key."""
        if not certain:
            return self._doubtful(item, kind, depth)
        if is_schema(item):
            return {
                name: self._doubtful(part, kind, depth) if name in EXAMPLES else self.value(part, None, depth)
                for name, part in item.items()
            }
        is_other = isinstance(item, str) and is_other_meaning(kind, item, beside)
        return self.value(item, None if is_other else kind, depth)

    def _doubtful(self, item: Any, kind: str, depth: int) -> Any:
        """Redact the value of a key that may not hold a secret: replace only what looks like one."""
        if isinstance(item, list):
            return [
                self._doubtful(element, kind, depth) if isinstance(element, str) else self.value(element, None, depth)
                for element in item
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

    def _layout(self, names: tuple[str, ...]) -> _Layout:
        """Read the keys of a mapping."""
        known = self._layouts.get(names)
        if known is None:
            keys = [self._key(name) for name in names]
            shown = tuple(key.shown for key in keys)
            is_plain = len(set(shown)) == len(shown) and not any(key.is_telling for key in keys)
            known = (keys, shown if is_plain else ())
            if len(names) <= _MOST_KEYS and len(self._layouts) < _MOST_REMEMBERED:
                self._layouts[names] = known
        return known

    def _key(self, name: str) -> _Key:
        known = self._keys.get(name)
        if known is None:
            if len(self._keys) > _MOST_REMEMBERED:
                self._keys.clear()
            shown = self.texts.replaced(name)
            kind, certain = self._read(name)
            describes = shown.lower() in _DESCRIBING or (not kind and self.texts.names.tells_about(shown))
            last = (words_of(shown) or [""])[-1]
            known = self._keys[name] = _Key(shown, kind, certain, describes, shown.lower(), last)
        return known

    def _read(self, name: str) -> tuple[str | None, bool]:
        """Read a name as it is and as it is shown, and believe the more certain."""
        return max(map(self.texts.read, (self.texts.replaced(name), name)), key=lambda read: (bool(read[0]), read[1]))

    def _sequence(self, items: list[Any], kind: str | None, depth: int) -> list[Any]:
        if kind is None and self.texts.known is None and _NUMBERS.issuperset(map(type, items)):
            return list(items)
        if kind is None and is_titles(items):
            columns = sensitive_columns(items[0], self._read)
            # Of two columns the first may be the names and the second the values.
            if columns and not (len(items[0]) == 2 and 0 in columns):
                return [self.value(items[0], None, depth), *(self._row(row, columns, depth) for row in items[1:])]
        redacted: list[Any] = []
        named: str | None = None
        certain = False
        masked: dict[int, Any] = {}
        for at, given in enumerate(items):
            item = masked.pop(at, given) if masked else given
            if kind or not named or certain or _is_chosen(item):
                redacted.append(self.value(item, kind or named, depth))
            else:
                redacted.append(self._doubtful(item, named, depth))
            named, certain = (None, False) if named else self._named_before(redacted[-1], len(items), at)
            if self.texts.begins_key:
                masked |= self._without_key_lines(items, at)
        return redacted

    def _without_key_lines(self, items: list[Any], at: int) -> dict[int, Any]:
        """Return those items behind one, by number, that go on with a private key which begins in it, masked."""
        path, count, ends = key_lines_behind(items, at)
        self.texts.begins_key = not ends
        return {
            number: with_leaf(items[number], path, lambda line: self._masked(line, "private_key"))
            for number in range(at + 1, at + 1 + count)
        }

    def _masked(self, text: str, kind: str) -> str:
        """Replace a string, except what is replaced already, placeholders and blanks."""
        return "".join(
            part if is_done or not part.strip() or is_placeholder(part) else self.texts.substitute(kind, part)
            for part, is_done in self.texts.split(text)
        )

    def _named_before(self, shown: Any, count: int, at: int) -> tuple[str | None, bool]:
        """Say which kind of secret follows in a list: `["Authorization", ...]`, `["--password", ...]`."""
        if not isinstance(shown, str) or len(shown) > _LONGEST_NAME or "=" in shown or ": " in shown:
            return None, False
        sure = (shown.startswith("--") and not shown.startswith("---")) or shown.lower() in _HEADERS
        paired = count == 2 or (count % 2 == at % 2 == 0 and "-" in shown)
        kind, certain = self.texts.read(shown) if paired or sure else (None, False)
        return (kind, sure) if certain else (None, False)

    def _named_beside(self, items: dict[str, Any], keys: list[_Key]) -> tuple[str | None, bool]:
        """Say which kind of secret a mapping such as `{"name": "Authorization", "value": ...}` holds."""
        if not any(key.last in _VALUING for key in keys):
            return None, False
        for key, item in zip(keys, items.values(), strict=True):
            if key.last in _NAMING and isinstance(item, str) and len(item) <= _LONGEST_NAME:
                kind, certain = self._read(item)
                if kind and item.count(" ") <= 4:
                    return kind, certain and key.last not in _LOOSELY_NAMING
        return None, False

    def _columns(self, items: dict[str, Any], keys: list[_Key]) -> dict[int, str]:
        """Return the columns of a table that hold secrets."""
        for key, titles in zip(keys, items.values(), strict=True):
            if key.plain in TITLE_FIELDS and isinstance(titles, list):
                names = (title.get("name") if isinstance(title, dict) else title for title in titles)
                return sensitive_columns((name if isinstance(name, str) else "" for name in names), self._read)
        return {}

    def _row(self, row: Any, columns: dict[int, str], depth: int) -> Any:
        shown = self.value(row, None, depth)
        if not isinstance(row, list):
            return shown
        return [self.value(row[at], columns[at], depth) if at in columns else cell for at, cell in enumerate(shown)]

    def _whole(self, text: str, kind: str, depth: int) -> str:
        """Replace a string that is a secret as a whole, except what is replaced already."""
        parts = self.texts.split(text)
        if len(parts) == 1 and not parts[0][1] and is_harmless_leaf(text, kind, self.texts.names):
            shown = self._leaf(text, depth)
            if shown == text:
                return text
            parts = self.texts.split(shown)
        return "".join(
            part
            if is_done or not part.strip() or is_harmless_leaf(part, kind, self.texts.names)
            else self.texts.substitute(kind, part)
            for part, is_done in parts
        )

    def _leaf(self, text: str, depth: int) -> str:
        """Replace the secrets in a string, which may itself be JSON."""
        if is_json_like(text) and depth < DEEPEST:
            stripped = text.strip()
            redacted = self._json(stripped, depth)
            if redacted is not None:
                return text if redacted == stripped else text.replace(stripped, redacted, 1)
        if "{" in text and any(sign in text for sign in _HIDING) and depth < DEEPEST:
            text = self._lines(text, depth)
        return self.texts.replaced(text)

    def _lines(self, text: str, depth: int) -> str:
        """Replace the secrets in the JSON that lines of a string hold, together, as in a list.

        Text that JSON writes with escapes is not seen in the string itself.
        """
        lines = self._objects(text, depth).split("\n")
        found = {at: held for at, line in enumerate(lines) if (held := json_in(line))}
        redacted = self._json(f"[{JOINT.join(found.values())}]", depth) if found else None
        parts = redacted[1:-1].split(JOINT) if redacted is not None else []
        if len(parts) != len(found):
            parts = [self._json(held, depth) or held for held in found.values()]
        for (at, held), part in zip(found.items(), parts, strict=True):
            lines[at] = lines[at].replace(held, part, 1)
        return "\n".join(lines)

    def _objects(self, text: str, depth: int) -> str:
        """Replace the secrets in the objects of several lines that a string holds."""
        parts, done = list[str](), 0
        for start, end in objects_in(text):
            parts += [text[done:start], self._json(text[start:end], depth) or text[start:end]]
            done = end
        return "".join((*parts, text[done:]))

    def _json(self, text: str, depth: int) -> str | None:
        """Replace the secrets in a JSON text, and leave the rest as it is written; None when it is no JSON.

        Where a name is there again, or a value cannot be shown as it is, and there is a secret, it is written anew.
        """
        repeated = RepeatedNames()
        try:
            parsed = json.loads(text, object_pairs_hook=repeated.pairs)
        except (ValueError, RecursionError):
            return None
        given, redacted = self._parsed(parsed, depth)
        hides = redacted != given
        for before in repeated.before:
            old, new = self._parsed(before, depth)
            hides = hides or old != new
        changed = None if repeated.before and hides else self._in_place(text, given, redacted)
        # Of a value that JSON cannot express, only the words for it were searched.
        if changed is not None and given is not parsed:
            is_shown = OPAQUE not in json.dumps(given) and not self.texts.knows(changed)
            changed = changed if is_shown else None
        return json.dumps(redacted, ensure_ascii=False) if changed is None else changed

    def _in_place(self, text: str, given: Any, redacted: Any) -> str | None:
        try:
            return text if redacted == given else self._changed(text, changes_of(text, given, redacted))
        except ShapesDiffer:
            return None

    def _changed(self, text: str, changes: dict[int, LiteralChange]) -> str:
        parts: list[str] = []
        done = 0
        for at, (end, old, new) in sorted(changes.items()):
            parts += (text[done:at], self._literal(text[at:end], old, new))
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def _parsed(self, parsed: Any, depth: int) -> tuple[Any, Any]:
        """Return the value of a JSON text as strict JSON, and without its secrets."""
        given = clean_json(parsed, max(DEEPEST - depth, 1))
        clean = self.texts.without_spread(given)
        self.texts.beside(clean)
        return given, self.value(clean, None, depth)

    def _literal(self, written: str, text: Any, shown: Any) -> str:
        """Return a literal with its secrets replaced, and the rest of it as it was written."""
        anew = json.dumps(shown, ensure_ascii=False)
        if "\\" not in written or not isinstance(text, str):
            return anew
        signs, said, at = signs_of(written), list[str](), 0
        for part, is_done in self.texts.split(shown):
            kind, value = self.texts.made.get(part, ("", part)) if is_done else ("", part)
            if not isinstance(value, str) or not text.startswith(value, at):
                return anew
            said.append(part if kind else "".join(signs[at : at + len(value)]))
            at += len(value)
        return f'"{"".join(said)}"' if at == len(text) == len(signs) else anew


def _is_chosen(item: Any) -> bool:
    """Return whether a person may have chosen a string as a secret, so that it is not a second name in a list."""
    return isinstance(item, str) and len(item) >= _LEAST_CHOSEN and any(map(str.isdecimal, item))
