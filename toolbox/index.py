"""Find tools by words, in SQLite's full-text index in memory."""

import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from toolbox.definition import Definition
from toolbox.naming import words_of

_QUERY_WORDS = 64
_INDEXED = 4000
_STOP = frozenset(
    words_of(
        "a all an and any are as at be been but by can could do does each every find for from get give had "
        "has have how i if in into is it its just let me more my need no not of on or our out over please so "
        "some tell than that the their them then there these they this those to total up us use want was we "
        "were what when where which who will with would you your "
    )
)


def _sql(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


class Index:
    """Hold the words of one catalog; build it off the event loop."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(_sql("index.sql"))
        self._database.executemany(_sql("insert.sql"), (_row(definition) for definition in definitions))
        self._search = _sql("search.sql")

    def find(self, query: str, limit: int) -> list[str]:
        """Return the names of matching tools, best first; nothing in the query is ever syntax."""
        words = list(dict.fromkeys(words_of(query[:_INDEXED])))
        telling = [word for word in words if len(word) > 1 and word not in _STOP] or words
        if not telling:
            return []
        expression = " OR ".join(f'"{word}"' for word in telling[:_QUERY_WORDS])
        with self._lock:
            return [row[0] for row in self._database.execute(self._search, (expression, limit))]


def _row(definition: Definition) -> tuple[str, str, str, str]:
    return (
        definition.name,
        " ".join([definition.name, definition.mcp_name, *words_of(definition.name)]),
        f"{definition.description} {' '.join(words_of(definition.description[:_INDEXED]))}",
        " ".join(_parameter_words(definition.parameters))[:_INDEXED],
    )


def _parameter_words(schema: dict[str, Any]) -> Iterable[str]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, rule in list(properties.items())[:200]:
        yield from words_of(str(name))
        if isinstance(rule, dict) and isinstance(rule.get("description"), str):
            yield rule["description"][:500]
