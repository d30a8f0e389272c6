"""Count and sum the columns of a table and find their ranges, in one pass."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

_MOST_COLUMNS = 200
_MOST_DISTINCT = 1000
_LONGEST_VALUE = 100
_DEEPEST_TABLE = 4
_LEAST_KEYED = 2
_ALIKE = 0.5
"""Entries of one kind have, on average, at least this share of all names."""
_LEAST_FOR_OUTLIERS = 20
_FAR = 10
_DIGITS = 15
"""As many digits of a sum or a mean as a float holds for certain, however small or large it is."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].{0,24})?\Z", re.DOTALL)
_NOT_NUMBERS = frozenset(("NaN", "Infinity", "-Infinity"))


class Column:
    """Facts about one column, without its values."""

    def __init__(self, values: list[Any]) -> None:
        """Read values of strict JSON, none of them null."""
        texts = [value for value in values if type(value) is str]
        numbers = values if not texts and {*map(type, values)} <= {int, float} else _numbers(values)
        truths = [] if len(texts) + len(numbers) == len(values) else [value for value in values if type(value) is bool]
        self.kinds = Counter({"string": len(texts), "number": len(numbers), "boolean": len(truths)})
        if self.kinds.total() < len(values):
            self.kinds["object"] = sum(type(value) is dict for value in values)
            self.kinds["array"] = len(values) - self.kinds.total()
        self.kinds = +self.kinds
        self.sum = _sum(numbers)
        self.least: Any = min(numbers, default=None)
        self.most: Any = max(numbers, default=None)
        counted = Counter(texts)
        self.not_numbers = sum(counted[name] for name in _NOT_NUMBERS)
        counted.update("true" if value else "false" for value in truths)
        self.distinct = len(counted)
        self.values = counted if len(counted) <= _MOST_DISTINCT else Counter[str]()
        self.dated = bool(texts) and all(map(_DATE.match, texts))
        self.earliest = min(texts)[:25] if self.dated else ""
        self.latest = max(texts)[:25] if self.dated else ""

    @property
    def filled(self) -> int:
        """Return how many values were not null."""
        return self.kinds.total()

    def facts(self, rows: int, choices: int) -> dict[str, Any]:
        """Return what is known; `choices` is how many of the most frequent values may be named."""
        facts: dict[str, Any] = {"type": self._type(), "count": self.filled}
        if rows > self.filled:
            rate = (rows - self.filled) / rows
            rounded = _significant(rate, 4)
            # A rounded rate of 1 would tell of a column without any value.
            facts["null_rate"] = rate if rounded == 1 and self.filled else rounded
        if self.kinds["number"]:
            facts |= {"sum": _told(self.sum), "min": self.least, "max": self.most, "mean": _told(self._mean())}
        if self.dated:
            facts |= {"earliest": self.earliest, "latest": self.latest}
        if self.distinct:
            facts["distinct"] = self.distinct if self.values else f"over {_MOST_DISTINCT}"
            if choices and self.values and self.distinct < self.filled:
                frequent = sorted(self.values.items(), key=lambda entry: (-entry[1], entry[0]))[:choices]
                named: dict[str, int] = {}
                for value, count in frequent:
                    # Of values that begin alike, the most frequent one is named.
                    named.setdefault(_named(value), count)
                facts["frequent"] = named
        return facts

    def oddities(self, rows: int) -> list[str]:
        """Return what a reader of the column should know to avoid mistakes."""
        odd: list[str] = []
        if rows > self.filled:
            odd.append(f"{rows - self.filled} of {rows} empty")
        if len(self.kinds) > 1:
            odd.append("mixed types: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items())))
        if self.not_numbers:
            odd.append(f"{self.not_numbers} not a number")
        mean = self._mean() if self.kinds["number"] >= _LEAST_FOR_OUTLIERS else None
        if mean and self.most > _FAR * abs(mean):
            odd.append(f"the largest, {self.most}, is {round(self.most / abs(mean))} times the mean")
        return odd

    def _type(self) -> str:
        kinds = {kind for kind in self.kinds if kind != "string" or self.kinds[kind] > self.not_numbers}
        if kinds == {"string"} and self.dated:
            return "date"
        if not self.filled:
            return "null"
        return "mixed" if len(kinds) > 1 else next(iter(kinds), "number")

    def _mean(self) -> float | None:
        try:
            return None if self.sum is None else _significant(self.sum / self.kinds["number"], _DIGITS)
        except OverflowError:
            return None


class Table:
    """The columns of a list of objects, of lists, or of plain values, or of an object that holds entries by key."""

    def __init__(self, path: str, found: list[Any] | dict[str, Any]) -> None:
        """Read every row once."""
        self.path = path
        self.keys = list(found) if isinstance(found, dict) else None
        """Of an object, the key of each row."""
        rows = self.rows = list(found.values()) if isinstance(found, dict) else found
        self.left_out = 0
        self.columns = {name: Column(values) for name, values in (_alike(rows) or self._read(rows)).items()}

    def _read(self, rows: list[Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for row in rows:
            for name, cell in _cells(row):
                values = found.get(name)
                if values is None:
                    if len(found) >= _MOST_COLUMNS:
                        self.left_out += 1
                        continue
                    values = found[name] = []
                if cell is not None:
                    values.append(cell)
        return found


def table_in(payload: Any) -> Table | None:
    """Return the main table of a payload: the payload itself, or the longest list or keyed object under its names."""
    if isinstance(payload, list) or is_keyed(payload):
        return Table("", payload)
    found: tuple[str, Any] = ("", [])
    level: list[tuple[str, Any]] = [("", payload)]
    for _ in range(_DEEPEST_TABLE):
        inside = [(f"{path}.{name}".lstrip("."), item) for path, items in level for name, item in items.items()]
        level = []
        for path, item in inside:
            is_table = isinstance(item, list) or is_keyed(item)
            if is_table and len(item) > len(found[1]):
                found = (path, item)
            if isinstance(item, dict) and not is_table:
                level.append((path, item))
    return Table(*found) if found[1] else None


def is_keyed(value: Any) -> bool:
    """Return whether an object holds entries of one kind, each under a key of its own, such as products by their id."""
    if not isinstance(value, dict) or len(value) < _LEAST_KEYED or {*map(type, value.values())} != {dict}:
        return False
    names = set[str]().union(*value.values())
    return bool(names) and sum(map(len, value.values())) >= _ALIKE * len(names) * len(value)


def _alike(rows: list[Any]) -> dict[str, list[Any]] | None:
    """Return the columns of objects that all have the same names in the same order, else None."""
    if {*map(type, rows)} != {dict} or len(shapes := {*map(tuple, rows)}) > 1:
        return None
    (names,) = shapes
    if len(names) > _MOST_COLUMNS:
        return None
    return {name: [cell for row in rows if (cell := row[name]) is not None] for name in names}


def _cells(row: Any) -> Iterable[tuple[str, Any]]:
    match row:
        case dict():
            return row.items()
        case list():
            return [(str(at), cell) for at, cell in enumerate(row[:_MOST_COLUMNS])]
        case _:
            return (("value", row),)


def _sum(numbers: list[Any]) -> float | None:
    """Return the sum, or None where no float can hold it."""
    whole = sum(value for value in numbers if type(value) is int)
    try:
        fractions = math.fsum(value for value in numbers if type(value) is float)
        total = _significant(whole + fractions, _DIGITS) if fractions else whole
    except OverflowError:
        return None
    return total if isinstance(total, int) or math.isfinite(total) else None


def _significant(figure: float, digits: int) -> float:
    """Return a figure without the digits that only its arithmetic has made."""
    return float(f"{figure:.{digits}g}")


def _named(value: str) -> str:
    """Return a value as it is named, with a mark where it is cut."""
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}…"


def _told(figure: float | None) -> float | str:
    return "out of range" if figure is None else figure


def _numbers(values: list[Any]) -> list[Any]:
    return [value for value in values if type(value) is int or type(value) is float]
