"""Summarise a large payload: the same payload always gives the same small digest."""

import hashlib
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, get_args

from genson import SchemaBuilder

from backstay.canonical import canonical, longer_than
from backstay.digests.aggregates import Table, table_in
from backstay.digests.excerpt import Excerpt, read_json, representative
from backstay.digests.line_facts import LineFacts
from backstay.shown import one_line
from backstay.strict_json import clean_json, clean_text

__all__ = ["Purpose", "clean_json", "digest_of_result", "summarize_payload"]

Purpose = Literal["for_planning", "for_user", "for_debug"]
"""for_planning: schema and aggregates, few examples; for_user: examples and sentences; for_debug: everything."""

LEAST_CHARS = 400
_STEPS = 7


@dataclass(frozen=True)
class Detail:
    """How much a digest shows of each part."""

    rows: int
    text: int
    columns: int
    choices: int
    notes: int
    schema_depth: int

    def less(self, step: int) -> "Detail":
        """Halve everything per step, down to what is needed to ask for more."""
        return Detail(
            rows=self.rows >> step,
            text=max(self.text >> step, 16),
            columns=self.columns >> step,
            choices=self.choices >> step,
            notes=max(self.notes >> step, 1),
            schema_depth=max(self.schema_depth - step, 0),
        )


_DETAILS: dict[Purpose, Detail] = {
    "for_planning": Detail(rows=3, text=160, columns=60, choices=5, notes=12, schema_depth=6),
    "for_user": Detail(rows=8, text=300, columns=20, choices=3, notes=12, schema_depth=1),
    "for_debug": Detail(rows=12, text=600, columns=120, choices=10, notes=60, schema_depth=8),
}


def summarize_payload(
    label: str, payload: Any, *, purpose: Purpose = "for_planning", max_chars: int = 4000
) -> dict[str, Any]:
    """Return a digest of at most `max_chars` characters of JSON; the same payload always gives the same digest.

    Total for any payload. Raises ValueError for an unknown purpose or less than 400 characters.
    """
    if purpose not in get_args(Purpose):
        raise ValueError(f"purpose: {purpose!r} is unknown; use one of {', '.join(get_args(Purpose))}")
    if max_chars < LEAST_CHARS:
        raise ValueError(f"max_chars: {max_chars} is too few; write at least {LEAST_CHARS}")
    return _Summary(label, payload, purpose).fitting(max_chars, None)


def digest_of_result(label: str, payload: Any, ref: str, whole_under: int = 2048) -> dict[str, Any]:
    """Return what the model sees of a result: the payload itself if it is small, else its digest."""
    cleaned = clean_json(payload)
    text = canonical(cleaned)
    if len(text) < whole_under and len(text.encode("utf-8")) < whole_under:
        return {"data": cleaned, "ref": ref}
    return _Summary(label, cleaned, "for_planning", text).fitting(4000, ref)


class _Summary:
    """Read a payload once; describe it in less and less detail until the digest fits."""

    def __init__(self, label: str, payload: Any, purpose: Purpose, text: str | None = None) -> None:
        """Take a payload; `text` is its canonical form if it is strict JSON already."""
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
            told = self._told(_DETAILS[self.purpose].less(max(step, 0)), ref, whole=step < 0)
            if len(canonical(told)) <= max_chars:
                return told
        return self._digest(ref, {}, [], {}, ["too wide to be summarized; read parts of it"]) | {
            "label": one_line(self.label, 40)
        }

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
            self.remarks.append("a text that holds JSON")
            self.size = _bytes_of(data)
            return parsed
        return data

    def _told(self, detail: Detail, ref: str | None, *, whole: bool) -> dict[str, Any]:
        excerpt = Excerpt(detail.text, detail.rows)
        sample = deepcopy(self.data) if whole else self._sample(excerpt, detail)
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
            what = "A log" if self.said.is_log else f"{self.said.mails} mails" if self.said.mails else "A text"
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
        builder.add_object(Excerpt(0, 20, widest=max(detail.columns, 1), deepest=detail.schema_depth).of(self.data))
        return _without_required(builder.to_schema())

    def _sample(self, excerpt: Excerpt, detail: Detail) -> Any:
        if isinstance(self.data, str):
            return self._head_and_tail(detail)
        if self.table is not None and self.table.rows:
            return [excerpt.of(row) for row in representative(self.table.rows, detail.rows)]
        return excerpt.of(self.data) if detail.rows else []

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
        told = list(self.table.columns.items())[: detail.columns]
        columns = {one_line(name, 80): column.facts(rows, detail.choices) for name, column in told}
        place = {"table": one_line(self.table.path, 120)} if self.table.path else {}
        return {**place, "rows": rows, "columns": columns}

    def _oddities(self, detail: Detail) -> list[str]:
        if self.table is None:
            return self.said.oddities()
        rows = len(self.table.rows)
        told = list(self.table.columns.items())
        odd = [f"{one_line(name, 80)}: {what}" for name, column in told for what in column.oddities(rows)]
        hidden = len(told) - detail.columns + self.table.left_out
        return [*odd, f"{hidden} more columns"] if hidden > 0 else odd


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8"))


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
