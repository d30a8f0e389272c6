"""Search tools by words, in an in-memory SQLite full-text index, and by word vectors where they are installed."""

import sqlite3
import threading
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

from backstay.data_files import data_beside
from toolbox.catalog.definition import Definition
from toolbox.catalog.naming import words_of

_QUERY_WORDS = 64
_INDEXED = 4000
_BY_WORDS = 200
"""How many of the best matches by words are ranked together with those by vectors."""
_WEIGHED = 1000
"""How many matches one query may rank, the rarest words first."""
_STOP = frozenset(words_of(data_beside(__file__)["stop"]))


def _sql(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


class ToolIndex:
    """Hold the words of one catalog, and the meaning of its tools; build it off the event loop."""

    def __init__(self, definitions: Iterable[Definition], *, by_meaning: bool = True) -> None:
        ordered = sorted(definitions, key=lambda definition: definition.name)
        self._names = [definition.name for definition in ordered]
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(_sql("index.sql"))
        self._database.executemany(
            _sql("insert.sql"), ((place, *_row(definition)) for place, definition in enumerate(ordered))
        )
        self._count, self._search = _sql("count.sql"), _sql("search.sql")
        self._meaning = _meaning_of(ordered) if by_meaning and ordered else None

    def find(self, query: str, limit: int) -> list[str]:
        """Return the names of matching tools, best first; nothing in the query is ever syntax."""
        text = query[:_INDEXED]
        words = list(dict.fromkeys(words_of(text)))
        telling = ([word for word in words if len(word) > 1 and word not in _STOP] or words)[:_QUERY_WORDS]
        if self._meaning is None:
            return [self._names[place] for place, _ in self._by_words(telling, limit)]
        ranked = self._meaning.ranked(text, telling, self._by_words(telling, max(limit, _BY_WORDS)), limit)
        return [self._names[place] for place in ranked]

    def _by_words(self, telling: list[str], limit: int) -> list[tuple[int, float]]:
        if not telling:
            return []
        with self._lock:
            rare = self._rarest([f'"{word}"' for word in telling])
            return self._database.execute(self._search, (" OR ".join(rare), limit)).fetchall()

    def _rarest(self, words: list[str]) -> list[str]:
        """Return the most telling words; words that very many tools have would only cost time."""
        spread = sorted((self._database.execute(self._count, (word,)).fetchone()[0], word) for word in words)
        reached = list(accumulate(count for count, _ in spread))
        return [word for (_, word), so_far in zip(spread, reached, strict=True) if so_far <= _WEIGHED] or [spread[0][1]]


def _meaning_of(definitions: list[Definition]) -> Any:
    """Return what ranks by meaning, or None without the extra that brings word vectors."""
    if any(find_spec(library) is None for library in ("wordllama", "tokenizers", "safetensors", "numpy")):
        return None
    from toolbox.catalog.embeddings import Embeddings  # noqa: PLC0415 - its libraries come with an extra

    return Embeddings(definitions)


def _row(definition: Definition) -> tuple[str, str, str, str]:
    return (
        " ".join([definition.provider, *words_of(definition.provider)]),
        " ".join([definition.mcp_name, *words_of(definition.mcp_name)]),
        f"{definition.description} {' '.join(_inner_words(definition.description[:_INDEXED]))}",
        " ".join(_parameter_words(definition.parameters))[:_INDEXED],
    )


def _inner_words(text: str) -> Iterable[str]:
    """Yield the words inside names such as `maxResults` and `e-mail`; SQLite finds the others itself."""
    for word in text.split():
        plain = word if word.isalpha() else word.strip(".,;:!?()'\"`")
        if not (plain.islower() or plain.istitle()) or not plain.isalpha():
            yield from words_of(plain)


def _parameter_words(schema: dict[str, Any]) -> Iterable[str]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, rule in list(properties.items())[:200]:
        yield from words_of(str(name))
        if isinstance(rule, dict) and isinstance(rule.get("description"), str):
            yield rule["description"][:500]
