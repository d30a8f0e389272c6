"""Summarise a large payload: the same payload always gives the same small digest."""

import hashlib
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, get_args

from genson import SchemaBuilder

from backstay.canonical import canonical, longer_than
from backstay.digests.aggregates import Table, is_keyed, table_in
from backstay.digests.excerpt import Excerpt, read_json, representative, wanted_first, words_of
from backstay.digests.line_facts import LineFacts
from backstay.digests.long_texts import LongTexts
from backstay.redaction.redactor import redact_payload
from backstay.shown import one_line
from backstay.strict_json import clean_json, clean_text, unique_key

__all__ = ["Purpose", "clean_json", "digest_of_result", "summarize_payload", "words_of"]

Purpose = Literal["for_planning", "for_user", "for_debug"]
"""for_planning: schema and aggregates, few examples; for_user: examples and sentences; for_debug: everything."""

LEAST_CHARS = 400
MOST_CHARS = 4000
ANSWER_CHARS = 16_384
"""What a model is shown of one answer, where the operator says nothing else."""
_AROUND = 200
"""Bytes that the engine's own lines around a string take."""
_STEPS = 7
_ENTRY = 3
"""The share of a digest that its first entry may take: a third."""
_SHRINKING = ((300, 40), (160, 40), (80, 20), (40, 10), (20, 5), (10, 3), (5, 1))
"""How an entry without room is shortened: characters of its texts, and names of its objects."""


@dataclass(frozen=True)
class Detail:
    """How much a digest shows of each part."""

    rows: int
    text: int
    columns: int
    choices: int
    notes: int
    schema_depth: int
    names: int = 40

    def less(self, step: int) -> "Detail":
        """Halve everything per step, down to what is needed to ask for more."""
        return Detail(
            rows=max(self.rows >> step, 1),
            text=max(self.text >> step, 16),
            columns=self.columns >> step,
            choices=self.choices >> step,
            notes=max(self.notes >> step, 1),
            schema_depth=max(self.schema_depth - step, 0),
            names=max(self.names >> step, 1),
        )


_DETAILS: dict[Purpose, Detail] = {
    "for_planning": Detail(rows=3, text=160, columns=60, choices=5, notes=12, schema_depth=6),
    "for_user": Detail(rows=8, text=300, columns=20, choices=3, notes=12, schema_depth=1),
    "for_debug": Detail(rows=12, text=600, columns=120, choices=10, notes=60, schema_depth=8),
}


def summarize_payload(
    label: str, payload: Any, *, purpose: Purpose = "for_planning", max_chars: int = MOST_CHARS
) -> dict[str, Any]:
    """Return a digest of at most `max_chars` characters of JSON; the same payload always gives the same digest.

    Every secret in the payload that is recognised is masked first, as `redact_payload` does.
    Total for any payload. Raises ValueError for an unknown purpose or less than 400 characters.
    """
    if purpose not in get_args(Purpose):
        raise ValueError(f"purpose: {purpose!r} is unknown; use one of {', '.join(get_args(Purpose))}")
    if max_chars < LEAST_CHARS:
        raise ValueError(f"max_chars: {max_chars} is too few; write at least {LEAST_CHARS}")
    # Bytes are told by their size and hash only.
    shown = payload if isinstance(payload, bytes | bytearray | memoryview) else redact_payload(payload)
    return _Summary(redact_payload(label), shown, purpose).fitting(max_chars, None)


def digest_of_result(
    label: str,
    payload: Any,
    ref: str,
    whole_under: int = 2048,
    *,
    max_chars: int | None = None,
    table_chars: int | None = None,
    wanted: AbstractSet[str] = frozenset(),
) -> dict[str, Any]:
    """Return what the model sees of a result: the payload itself if it is small, else its digest.

    Texts are shown whole as long as they have room, and cut to their head, their tail and what holds a wanted word
    where they have not. A table or a record has `table_chars`, else `max_chars`; without room for all of its fields,
    those are shown whose names hold such a word.
    """
    cleaned = clean_json(payload)
    text = canonical(cleaned)
    if len(text) < whole_under and _bytes_of(text) < whole_under:
        return {"data": cleaned, "ref": ref}
    found = _as_texts(cleaned, max_chars or ANSWER_CHARS, wanted)
    if found is not None:
        return found | ({"ref": ref} if "data" in found else {"storage_ref": ref})
    return _Summary(label, cleaned, "for_planning", text, wanted).fitting(table_chars or max_chars or MOST_CHARS, ref)


def _as_texts(payload: Any, max_chars: int, wanted: AbstractSet[str]) -> dict[str, Any] | None:
    """Return a payload whose bulk are texts, whole or with these cut; None for a table, also within a string."""
    found = LongTexts.of(payload, max_chars)
    if found is None:
        return None
    if found.size <= max_chars - _AROUND:
        return {"data": payload}
    if isinstance(payload, str) and read_json(payload) is not None:
        return None
    lines = found.longest.splitlines()
    said = LineFacts(lines)
    facts: dict[str, Any] = said.facts(5)
    facts |= {"notes": said.oddities()} if said.oddities() else {}
    written = len(canonical(facts)) if facts else 0
    facts, written = (facts, written) if written <= max_chars // 10 else ({}, 0)
    size, rows = (_bytes_of(payload), len(lines)) if isinstance(payload, str) else (found.size, None)
    about = {"original_size": {"bytes": size, "rows": rows}}
    return found.cut(max_chars - _AROUND - written, wanted) | about | ({"aggregates": facts} if facts else {})


class _Summary:
    """Read a payload once; describe it in less and less detail until the digest fits."""

    def __init__(
        self,
        label: str,
        payload: Any,
        purpose: Purpose,
        text: str | None = None,
        wanted: AbstractSet[str] = frozenset(),
    ) -> None:
        """Take a payload; `text` is its canonical form if it is strict JSON already."""
        self.wanted = wanted
        self.label = one_line(clean_text(label), 80)
        self.purpose: Purpose = purpose
        self.remarks: list[str] = []
        self.data = self._opened(payload, cleaned=text is not None)
        self.whole = self._written(payload, text)
        if not self.size:
            self.size = _bytes_of(self.whole)
        if purpose == "for_debug":
            self.remarks.append(f"sha256 {hashlib.sha256(self.whole.encode('utf-8')).hexdigest()}")
        self.table: Table | None = table_in(self.data) if isinstance(self.data, dict | list) else None
        self.lines = self.data.splitlines() if isinstance(self.data, str) else []
        self.said = LineFacts(self.lines)

    def fitting(self, max_chars: int, ref: str | None) -> dict[str, Any]:
        """Return the most detailed digest that fits."""
        for step in range(-1, _STEPS):
            if step < 0 and self._longer_than(max_chars * 2 // 3):
                continue
            told = self._told(_DETAILS[self.purpose].less(max(step, 0)), ref, max_chars, whole=step < 0)
            if len(canonical(told)) <= max_chars:
                return told
        least = self._digest(ref, {}, [], {}, ["too wide to be summarized; read parts of it"]) | {
            "label": one_line(self.label, 40)
        }
        return least | {"sample": self._shrunk(self._first(), max_chars - len(canonical(least)))}

    def _written(self, payload: Any, text: str | None) -> str:
        """Return the data as text, or an empty text if its size is known and nothing else needs the text."""
        if isinstance(self.data, str):
            return self.data
        if text is not None and self.data is payload:
            return text
        return canonical(self.data) if self.purpose == "for_debug" or not self.size else ""

    def _longer_than(self, characters: int) -> bool:
        return len(self.whole) > characters if self.whole else longer_than(self.data, characters)

    def _opened(self, payload: Any, *, cleaned: bool) -> Any:
        self.size, self.hidden = 0, False
        if isinstance(payload, bytes | bytearray | memoryview):
            data = bytes(payload)
            self.size = len(data)
            self.hidden = True
            self.remarks.append("binary content")
            return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        data = payload if cleaned else clean_json(payload)
        parsed = read_json(data) if isinstance(data, str) else None
        if parsed is not None:
            self.remarks.append("text that holds JSON")
            self.size = _bytes_of(data)
            return parsed
        return data

    def _told(self, detail: Detail, ref: str | None, max_chars: int, *, whole: bool) -> dict[str, Any]:
        excerpt = Excerpt(detail.text, detail.rows, widest=detail.names, wanted=self.wanted)
        sample = deepcopy(self.data) if whole else self._sample(excerpt, detail, max_chars // _ENTRY)
        notes = [*self.remarks, *self._oddities(detail)]
        if self.purpose == "for_user":
            notes.insert(0, self._sentence())
        if excerpt.clipped:
            notes.append(f"values shortened in the sample: {excerpt.clipped}")
        hidden = len(notes) - detail.notes
        if hidden > 0:
            notes = [*notes[: detail.notes], f"{hidden} more notes"]
        return self._digest(ref, self._schema(detail), sample, self._aggregates(detail), notes) | {
            "truncated": self.hidden or not whole
        }

    def _digest(self, ref: str | None, schema: Any, sample: Any, aggregates: Any, notes: list[str]) -> dict[str, Any]:
        return {
            "label": self.label,
            "original_size": {"bytes": self.size, "rows": self._rows()},
            "truncated": True,
            "schema": schema,
            "sample": sample,
            "aggregates": aggregates,
            "notes": notes,
            "storage_ref": ref,
        }

    def _sentence(self) -> str:
        """Describe the payload in a sentence."""
        if isinstance(self.data, str):
            written = f"{self.said.mails} mails" if self.said.mails else "A text"
            what = "A log" if self.said.is_log else written
            return f"{what} of {len(self.lines)} lines and {len(self.data)} characters."
        if self.table is None:
            return f"A record of {self.size} bytes."
        names = [one_line(name, 40) for name in list(self.table.columns)[:8]]
        more = f" and {len(self.table.columns) - 8} more" if len(self.table.columns) > 8 else ""
        return f"A table of {len(self.table.rows)} rows with {', '.join(names) or 'no columns'}{more}."

    def _rows(self) -> int | None:
        if isinstance(self.data, str):
            return len(self.lines)
        return None if self.table is None else len(self.table.rows)

    def _schema(self, detail: Detail) -> dict[str, Any]:
        if isinstance(self.data, str):
            return {"type": "string"}
        builder = SchemaBuilder(schema_uri=SchemaBuilder.NULL_URI)
        # Only types matter here, so texts are emptied and lists cut to a few elements.
        few = Excerpt(0, 20, widest=max(detail.columns, 1), deepest=detail.schema_depth, wanted=self.wanted)
        builder.add_object(few.of(_unkeyed(self.data, detail.schema_depth)))
        return _as_keyed(_without_required(builder.to_schema()), self.data)

    def _sample(self, excerpt: Excerpt, detail: Detail, room: int) -> Any:
        """Return a few entries, the first of them whole where it has room."""
        if isinstance(self.data, str):
            return self._head_and_tail(detail)
        if self.table is None or not self.table.rows:
            return excerpt.of(self.data)
        picked = representative(list(range(len(self.table.rows))), detail.rows)
        first = self.table.rows[0]
        fits = not longer_than(first, room)
        entries = [deepcopy(first) if fits else self._shrunk(first, room)]
        excerpt.clipped += not fits
        entries += [excerpt.of(self.table.rows[at]) for at in picked[1:]]
        return entries if self.table.keys is None else _by_key(self.table.keys, picked, entries)

    def _first(self) -> Any:
        """Return what is shown where there is room for nothing else: the first entry."""
        if self.table is None or not self.table.rows:
            return self.data
        return [self.table.rows[0]] if self.table.keys is None else {self.table.keys[0]: self.table.rows[0]}

    def _shrunk(self, entry: Any, room: int) -> Any:
        """Return as much of an entry as has room, wanted fields first."""
        for text, names in _SHRINKING:
            shrunk = Excerpt(text, 3, widest=names, deepest=3, wanted=self.wanted).of(entry)
            if not longer_than(shrunk, room):
                return shrunk
        return []

    def _head_and_tail(self, detail: Detail) -> dict[str, str]:
        room = detail.text * max(detail.rows, 1)
        text = self.data
        if len(text) <= room:
            return {"head": text, "tail": ""}
        tail = room // 3
        return {"head": text[: room - tail], "tail": text[-tail:] if tail else ""}

    def _aggregates(self, detail: Detail) -> dict[str, Any]:
        if isinstance(self.data, str):
            longest = max(map(len, self.lines), default=0)
            size = {"characters": len(self.data), "lines": len(self.lines), "longest_line": longest}
            return size | self.said.facts(detail.choices)
        if self.table is None:
            return {"entries": len(self.data)} if isinstance(self.data, dict) else {}
        rows = len(self.table.rows)
        told = list(wanted_first(self.table.columns, self.wanted, detail.columns))[: detail.columns]
        columns = {one_line(name, 80): column.facts(rows, detail.choices) for name, column in told}
        place = {"table": one_line(self.table.path, 120)} if self.table.path else {}
        return {**place, "rows": rows, "columns": columns, **self._beside(detail)}

    def _beside(self, detail: Detail) -> dict[str, Any]:
        """Return plain values that are beside the table, such as a total, or where the next page begins."""
        if self.table is None or not self.table.path:
            return {}
        plain = {name: value for name, value in self.data.items() if isinstance(value, str | int | float)}
        few = Excerpt(detail.text, 0, widest=detail.columns >> 2, wanted=self.wanted).of(plain)
        return {"beside": few} if few else {}

    def _oddities(self, detail: Detail) -> list[str]:
        if self.table is None:
            return self.said.oddities()
        rows = len(self.table.rows)
        told = list(wanted_first(self.table.columns, self.wanted, detail.columns))
        odd = [f"{one_line(name, 80)}: {what}" for name, column in told for what in column.oddities(rows)]
        hidden = len(told) - detail.columns + self.table.left_out
        return [*odd, f"{hidden} more columns"] if hidden > 0 else odd


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def _by_key(keys: list[str], picked: Sequence[int], entries: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for at, entry in zip(picked, entries, strict=True):
        found[unique_key(one_line(keys[at], 80), found)] = entry
    return found


def _unkeyed(value: Any, deepest: int) -> Any:
    """Return the value with lists instead of keyed objects: all entries together tell their kind."""
    match value:
        case dict() if deepest > 0:
            entries = list(value.values()) if is_keyed(value) else None
            if entries is not None:
                return [_unkeyed(item, deepest - 1) for item in representative(entries, 20)]
            return {name: _unkeyed(item, deepest - 1) for name, item in value.items()}
        case _:
            return value


def _as_keyed(schema: Any, value: Any) -> Any:
    """Return the schema with objects again where the value has keyed ones."""
    if not isinstance(schema, dict) or not isinstance(value, dict):
        return schema
    if is_keyed(value):
        return {"type": "object", "additionalProperties": schema.get("items", {})}
    inner = schema.get("properties")
    if not isinstance(inner, dict):
        return schema
    return schema | {"properties": {name: _as_keyed(item, value.get(name)) for name, item in inner.items()}}


def _without_required(schema: Any) -> Any:
    """Drop `required`, which only repeats the names of properties."""
    match schema:
        case dict():
            return {
                key: {name: _without_required(inner) for name, inner in item.items()}
                if key == "properties"
                else _without_required(item)
                for key, item in schema.items()
                if key != "required"
            }
        case list():
            return [_without_required(item) for item in schema]
        case _:
            return schema
