"""Keep where the remembered parts of runs stand, and an index of their words for each database."""

from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, TextClause, bindparam, delete, func, insert, select, text

from backstay.memory.item import ItemKind, MemoryItem
from backstay.memory.ranking import Match, ranked
from backstay.memory.words import asked_words, owner_word
from store.database.database import Database
from store.database.schema import Words, memory_items
from store.database.transactions import reading, writing

MOST_MATCHES = 2000
"""The newest matches of one word that are ranked; a word of more items tells little."""
_NUMBERS = 1 << 31
"""No database takes larger ones for the number of an item."""
_HERE = Path(__file__).parent
_COLUMNS = [column for column in memory_items.c if column.name != "position"]
_ITEMS = select(memory_items.c.position.label("id"), *_COLUMNS)
_KEEP = insert(memory_items)
_OF_RUN = select(memory_items.c.position).where(memory_items.c.run == bindparam("run_"))


class NewItem(NamedTuple):
    """Hold an item that is to be kept, with the words by which it is found."""

    item: MemoryItem
    words: Sequence[str]


class MemoryItems:
    """Keep items by user; the reader names whose memory it is."""

    def __init__(self, database: Database) -> None:
        """Use this database."""
        self.database = database

    @writing
    def keep(self, connection: Connection, run: str, items: Sequence[NewItem]) -> int:
        """Keep what is remembered of a run in place of what was; return how many items."""
        drop_items(connection, run)
        add = _statement(connection, "add")
        for item, words in items:
            values = {column.name: getattr(item, column.name) for column in _COLUMNS} | {"size": len(words)}
            made = connection.execute(_KEEP, values).inserted_primary_key
            position = None if made is None else made[0]
            named = {"position": position, "owner": owner_word(item.owner), "words": " ".join(words)}
            connection.execute(add, named)
        return len(items)

    @reading
    def search(
        self, connection: Connection, owner: str, query: str, *, limit: int = 8, without: str = ""
    ) -> list[MemoryItem]:
        """Return the items of a user that answer a question best, best first; none of the run `without`."""
        words = asked_words(query)
        if not owner or not words:
            return []
        find = _statement(connection, "find")
        asked: dict[str, Any] = {"hash": owner_word(owner), "owner": owner, "most": MOST_MATCHES}
        found = {word: [Match(*row) for row in connection.execute(find, asked | {"word": word})] for word in words}
        count = connection.execute(select(func.count()).where(memory_items.c.owner == owner)).scalar_one()
        told = {word: [match for match in some if match.run != without] for word, some in found.items()}
        best = ranked(told, int(count), limit)
        rows = self._items(connection, owner, memory_items.c.position.in_(best))
        return sorted(rows, key=lambda item: best.index(item.id))

    @reading
    def get(self, connection: Connection, owner: str, number: int) -> MemoryItem | None:
        """Return one item of a user, or None."""
        if not 0 < number < _NUMBERS:
            return None
        return next(iter(self._items(connection, owner, memory_items.c.position == number)), None)

    @reading
    def newest(
        self, connection: Connection, owner: str, *, kind: ItemKind, limit: int = 8, session_id: str | None = None
    ) -> list[MemoryItem]:
        """Return the newest items of one kind, of a user, or of a session of theirs."""
        chosen = _ITEMS.where(memory_items.c.owner == owner, memory_items.c.kind == kind)
        if session_id is not None:
            chosen = chosen.where(memory_items.c.session_id == session_id)
        newest = chosen.order_by(memory_items.c.at.desc(), memory_items.c.position.desc()).limit(limit)
        return [MemoryItem.model_validate(dict(row)) for row in connection.execute(newest).mappings()]

    @reading
    def of_run(self, connection: Connection, owner: str, run: str) -> list[MemoryItem]:
        """Return what is remembered of a run of a user."""
        return self._items(connection, owner, memory_items.c.run == run)

    @reading
    def owners(self, connection: Connection, run: str) -> frozenset[str]:
        """Return in whose memory a run stands."""
        return frozenset(connection.execute(select(memory_items.c.owner).where(memory_items.c.run == run)).scalars())

    def _items(self, connection: Connection, owner: str, *where: Any) -> list[MemoryItem]:
        chosen = _ITEMS.where(memory_items.c.owner == owner, *where).order_by(memory_items.c.position)
        return [MemoryItem.model_validate(dict(row)) for row in connection.execute(chosen).mappings()]


def drop_items(connection: Connection, run: str, numbers: Collection[int] | None = None) -> int:
    """Remove what is remembered of a run, or some items of it, with their words; return how many there were."""
    there = connection.execute(_OF_RUN, {"run_": run}).scalars().all()
    gone = [position for position in there if numbers is None or position in numbers]
    if not gone:
        return 0
    drop = _statement(connection, "drop")
    for position in gone:
        connection.execute(drop, {"position": position})
    connection.execute(delete(memory_items).where(memory_items.c.position.in_(gone)))
    return len(gone)


def clean_index(connection: Connection) -> None:
    """Have no word of what was removed left in the files of the index."""
    if (_HERE / f"clean_{connection.dialect.name}.sql").exists():
        connection.execute(_statement(connection, "clean"))


def _statement(connection: Connection, name: str) -> TextClause:
    return _read(f"{name}_{connection.dialect.name}.sql")


@cache
def _read(name: str) -> TextClause:
    statement = text((_HERE / name).read_text(encoding="utf-8"))
    # The name of a user may hold what no database accepts; words are letters and digits.
    return statement.bindparams(bindparam("owner", type_=Words)) if ":owner" in str(statement) else statement
