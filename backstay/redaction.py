"""Take every secret out of a payload and leave its structure."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from backstay.clean import DEEPEST, clean_json, clean_text, unique_key
from backstay.placeholder import is_placeholder, is_schema, is_sentence
from backstay.secret import MARK, split_handles
from backstay.sensitive import DEFAULT_SENSITIVE_KEYS, SensitiveNames
from backstay.shapes import Span, elements_in, named_in, schemes_in, shapes_in
from backstay.spellings import SHORTEST, spellings_of
from backstay.spoken import spoken_in

Substitute = Callable[[str, Any], str]
"""Takes the kind of a secret and its value; returns a mask or a SecretHandle."""

_MOST_NAMES = 1000
_MASK = re.compile(r"\[REDACTED:[a-z0-9_]{1,40}\]")
_NAME_FIELDS = ("name", "key", "header", "field", "parameter", "param", "variable")
_VALUE_FIELDS = ("value", "val", "values", "content", "data", "default")
_PHRASES = ("passphrase", "mnemonic", "seed_phrase")
_COLUMN_FIELDS = ("columns", "headers", "header", "fields")
_ROW_FIELDS = ("rows", "values", "data", "records")


def redact_payload(payload: Any, sensitive_keys: Iterable[str] = DEFAULT_SENSITIVE_KEYS) -> Any:
    """Return the payload with every secret masked as `[REDACTED:<kind>]`.

    A secret is what stands under a sensitive name at any depth and in any spelling, or looks like a token, a key or a
    password in a text. Total and idempotent.
    """
    return Redactor((), sensitive_keys).redact(payload)


def mask(kind: str, _value: Any) -> str:
    """Return the mask of a kind of secret."""
    return f"[REDACTED:{kind}]"


class Redactor:
    """Find secrets by name, by form, and by equality with secrets this process knows."""

    def __init__(self, known: Iterable[str], sensitive_keys: Iterable[str] = DEFAULT_SENSITIVE_KEYS) -> None:
        """Know secrets of at least 8 bytes, wherever they stand, also in the spellings of URLs, JSON and base64."""
        self._names = SensitiveNames(sensitive_keys)
        spellings = {s for secret in known for s in spellings_of(secret)}
        self._known = re.compile("|".join(map(re.escape, sorted(spellings, key=lambda s: (-len(s), s)))) or r"(?!)")
        self._knows_any = bool(spellings)

    def redact(self, payload: Any) -> Any:
        """Return the payload with every secret masked."""
        return self.replace(payload, mask)

    def text(self, text: str) -> str:
        """Return the text with every secret masked; for logs and error lines."""
        return _Walk(self._names, self._known, mask, knows_any=self._knows_any).value(clean_text(text), None, 0)

    def secret_in(self, text: str) -> Span | None:
        """Return the first secret in a text that is known here or has a form of its own; names tell nothing.

        For programs: in code, what stands beside a telling name is mostly no secret but an expression.
        """
        known = self._known.finditer(text) if self._knows_any else ()
        found = [*((one.start(), one.end(), "known") for one in known), *shapes_in(text)]
        return min(found, default=None)

    def replace(self, payload: Any, substitute: Substitute) -> Any:
        """Return the payload as strict JSON with every secret replaced by what `substitute` says.

        `substitute` must return a mask or a SecretHandle: both are left alone when they are met again.
        """
        walk = _Walk(self._names, self._known, substitute, knows_any=self._knows_any)
        return walk.value(clean_json(payload), None, 0)


class _Walk:
    """Go through one payload; `kind` is the kind of secret that everything at this place is, or None."""

    def __init__(
        self, names: SensitiveNames, known: re.Pattern[str], substitute: Substitute, *, knows_any: bool
    ) -> None:
        self.names = names
        self.known = known
        self.knows_any = knows_any
        self.substitute = substitute
        self.shown_names: dict[str, str] = {}

    def value(self, value: Any, kind: str | None, depth: int) -> Any:
        match value:
            case str():
                return self.whole(value, kind) if kind else self.leaf(value, depth)
            case bool() | None:
                return value
            case int() | float():
                return self.number(value, kind)
            case dict():
                return self.mapping(value, kind, depth + 1)
            case _:
                return self.sequence(value, kind, depth + 1)

    def number(self, value: float, kind: str | None) -> Any:
        if kind is None and self.knows_any and self.known.search(repr(value)):
            kind = "known"
        # `{"pass": 12, "fail": 3}` counts; nobody's password is a number under that name alone.
        return value if kind in (None, "pass") else self.substitute(kind, value)

    def mapping(self, items: dict[str, Any], kind: str | None, depth: int) -> dict[str, Any]:
        redacted: dict[str, Any] = {}
        paired = self.paired(items)
        columns = self.columns(items) if kind is None else {}
        for key, item in items.items():
            shown = self.name(key)
            inherited = None if kind and self.names.tells_about(key) else kind
            beneath = (
                inherited
                or self.kind_of(key)
                or self.kind_of(shown)
                or (paired if key.lower() in _VALUE_FIELDS else None)
            )
            if beneath and kind is None and is_schema(item):
                beneath = None
            if columns and not beneath and key.lower() in _ROW_FIELDS and isinstance(item, list):
                redacted[unique_key(shown, redacted)] = [self.row(row, columns, depth + 1) for row in item]
            else:
                redacted[unique_key(shown, redacted)] = self.value(item, beneath, depth)
        return redacted

    def name(self, key: str) -> str:
        """Return a key without the secrets in it; rows repeat their keys, so answers are kept."""
        if key not in self.shown_names:
            if len(self.shown_names) > _MOST_NAMES:
                self.shown_names.clear()
            self.shown_names[key] = self.line(key)
        return self.shown_names[key]

    def sequence(self, items: list[Any], kind: str | None, depth: int) -> list[Any]:
        redacted: list[Any] = []
        announced: str | None = None
        for at, item in enumerate(items):
            redacted.append(self.value(item, kind or announced, depth))
            announced = None if announced else self.announced(redacted[-1], len(items), at)
        return redacted

    def announced(self, shown: Any, count: int, at: int) -> str | None:
        """Say which kind of secret must follow in a list: `["Authorization", ...]`, `["--password", ...]`."""
        if not isinstance(shown, str) or len(shown) > 100 or "=" in shown or " " in shown:
            return None
        paired = count == 2 or (count % 2 == at % 2 == 0 and "-" in shown)
        if not paired and not shown.startswith("--") and shown.lower() not in ("authorization", "cookie", "set-cookie"):
            return None
        return self.kind_of(shown)

    def paired(self, items: dict[str, Any]) -> str | None:
        """Say which kind of secret a mapping such as `{"name": "Authorization", "value": ...}` speaks of."""
        for key, item in items.items():
            if key.lower() in _NAME_FIELDS and isinstance(item, str) and " " not in item:
                kind = self.kind_of(item) or self.kind_of(self.line(item))
                if kind:
                    return kind
        return None

    def columns(self, items: dict[str, Any]) -> dict[int, str]:
        """Say which columns of a table hold secrets."""
        for key, names in items.items():
            if key.lower() in _COLUMN_FIELDS and isinstance(names, list):
                titles = [name.get("name") if isinstance(name, dict) else name for name in names]
                kinds = [self.titled(title) for title in titles]
                return {at: kind for at, kind in enumerate(kinds) if kind}
        return {}

    def titled(self, title: Any) -> str | None:
        return (self.kind_of(title) or self.kind_of(self.line(title))) if isinstance(title, str) else None

    def row(self, row: Any, columns: dict[int, str], depth: int) -> Any:
        if not isinstance(row, list):
            return self.value(row, None, depth)
        return [self.value(cell, columns.get(at), depth) for at, cell in enumerate(row)]

    def kind_of(self, name: str) -> str | None:
        """Return the kind for a name, read without what was replaced in it."""
        if "[" not in name and "⟦" not in name:
            return self.names.kind_of(name)
        kinds = (self.names.kind_of(part) for part, is_done in _split(name, self.is_forged) if not is_done)
        return next((kind for kind in kinds if kind), None)

    def whole(self, text: str, kind: str) -> str:
        """Replace a text that is a secret as a whole, except what is replaced already."""
        return "".join(
            part if is_done or not part.strip() or _is_harmless(part, kind) else self.substitute(kind, part)
            for part, is_done in _split(text, self.is_forged)
        )

    def leaf(self, text: str, depth: int) -> str:
        """Replace the secrets in a text, which may itself be JSON."""
        stripped = text.strip()
        if stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]") and depth < DEEPEST:
            redacted = self.json(stripped, depth)
            if redacted is not None:
                return redacted if redacted != stripped else text
        return self.line(text)

    def json(self, text: str, depth: int) -> str | None:
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

    def line(self, text: str) -> str:
        """Replace the secrets in a plain text until nothing more is found."""
        if len(text) < SHORTEST and "=" not in text and ":" not in text and "--" not in text:
            return text
        parts = _split(text, self.is_forged)
        while True:
            found = [done for part, is_done in parts for done in ([(part, True)] if is_done else self.once(part))]
            if len(found) == len(parts):
                return "".join(part for part, _ in found) if any(is_done for _, is_done in found) else text
            parts = found

    def is_forged(self, mask: str) -> bool:
        """Say whether what looks like a mask holds a known secret instead of a kind."""
        kind = mask.removeprefix("[REDACTED:").removesuffix("]")
        return self.known.search(kind) is not None and self.names.kind_of(kind) is None

    def once(self, text: str) -> list[tuple[str, bool]]:
        """Cut a text at every secret that is found in it; secrets that overlap are one."""
        found = deque(sorted(self.found_in(text), key=lambda span: (span[0], -span[1])))
        parts: list[tuple[str, bool]] = []
        at = 0
        while found:
            start, end, kind = found.popleft()
            while found and found[0][0] < end:
                end = max(end, found.popleft()[1])
            parts += [(text[at:start], False)] if start > at else []
            parts.append((self.substitute(kind, text[start:end]), True))
            at = end
        return [*parts, (text[at:], False)] if at < len(text) else parts

    def found_in(self, text: str) -> Iterator[Span]:
        if self.knows_any:
            yield from ((found.start(), found.end(), "known") for found in self.known.finditer(text))
        yield from shapes_in(text)
        yield from schemes_in(text)
        if "=" in text or ":" in text or "--" in text:
            yield from named_in(text, self.names)
        yield from spoken_in(text, self.names)
        if "</" in text:
            yield from elements_in(text, self.names)


def _is_harmless(part: str, kind: str) -> bool:
    """Say whether what stands under a sensitive name only refers to a secret or speaks of one."""
    return is_placeholder(part) or (kind not in _PHRASES and is_sentence(part))


def _split(text: str, is_forged: Callable[[str], bool]) -> list[tuple[str, bool]]:
    """Cut a text into parts that are replaced already, handles and masks, and parts that are not."""
    if MARK not in text and "[REDACTED:" not in text:
        return [(text, False)]
    parts: list[tuple[str, bool]] = []
    for part, handle in split_handles(text):
        if handle is not None:
            parts.append((part, True))
            continue
        at = 0
        for found in _MASK.finditer(part):
            if is_forged(found.group()):
                continue
            parts += [(part[at : found.start()], False)] if found.start() > at else []
            parts.append((found.group(), True))
            at = found.end()
        parts += [(part[at:], False)] if at < len(part) else []
    return parts
