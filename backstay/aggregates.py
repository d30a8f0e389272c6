"""Count, sum and range what stands in a table, in one pass."""

from collections import Counter
from typing import Any

_MOST_COLUMNS = 200
_MOST_DISTINCT = 1000
_LONGEST_VALUE = 100
_DEEPEST_TABLE = 4
_LEAST_FOR_OUTLIERS = 20
_FAR = 10
_NOT_NUMBERS = frozenset(("NaN", "Infinity", "-Infinity"))


class Column:
    """Gather what can be said of one column without keeping its values."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.kinds: Counter[str] = Counter()
        self.whole = 0
        self.broken = 0.0
        self.least: Any = None
        self.most: Any = None
        self.earliest = self.latest = ""
        self.dates = self.not_numbers = 0
        self.values: Counter[str] = Counter()
        self.many = False

    def add(self, value: Any) -> None:
        """Take one value of strict JSON that is not null."""
        kind = type(value)
        if kind is str:
            self._add_text(value)
        elif kind is int or kind is float:
            self._add_number(value)
        elif kind is bool:
            self.kinds["boolean"] += 1
            self._count("true" if value else "false")
        else:
            self.kinds["object" if kind is dict else "array"] += 1

    @property
    def filled(self) -> int:
        """Return how many values were not null."""
        return self.kinds.total()

    def facts(self, rows: int, choices: int) -> dict[str, Any]:
        """Return what is known; `choices` is how many of the most frequent values may be named."""
        facts: dict[str, Any] = {"type": self._type(), "count": self.filled}
        if rows > self.filled:
            facts["null_rate"] = round((rows - self.filled) / rows, 4)
        if self.kinds["number"]:
            facts |= {"sum": _finite(self._sum()), "min": self.least, "max": self.most, "mean": _finite(self._mean())}
        if self.dates and self.dates == self.kinds["string"]:
            facts |= {"earliest": self.earliest, "latest": self.latest}
        if self.values:
            facts["distinct"] = f"over {_MOST_DISTINCT}" if self.many else len(self.values)
            if choices and not self.many and len(self.values) < self.filled:
                frequent = sorted(self.values.items(), key=lambda entry: (-entry[1], entry[0]))[:choices]
                facts["frequent"] = dict(frequent)
        return facts

    def oddities(self, rows: int) -> list[str]:
        """Return what a reader of the column should be warned of."""
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

    def _add_number(self, value: float) -> None:
        self.kinds["number"] += 1
        if isinstance(value, int):
            self.whole += value
        else:
            self.broken += value
        if self.least is None:
            self.least = self.most = value
        elif value < self.least:
            self.least = value
        elif value > self.most:
            self.most = value

    def _add_text(self, value: str) -> None:
        if value in _NOT_NUMBERS:
            self.not_numbers += 1
        self.kinds["string"] += 1
        self._count(value[:_LONGEST_VALUE])
        if value[4:5] == "-" and _is_date(value):
            self.dates += 1
            day = value[:25]
            self.earliest = min(self.earliest or day, day)
            self.latest = max(self.latest, day)

    def _count(self, value: str) -> None:
        if value in self.values or len(self.values) < _MOST_DISTINCT:
            self.values[value] += 1
        else:
            self.many = True

    def _type(self) -> str:
        kinds = {kind for kind in self.kinds if kind != "string" or self.kinds[kind] > self.not_numbers}
        if kinds == {"string"} and self.dates == self.kinds["string"]:
            return "date"
        if not self.filled:
            return "null"
        return "mixed" if len(kinds) > 1 else next(iter(kinds), "number")

    def _sum(self) -> float | None:
        try:
            return round(self.whole + self.broken, 6) if self.broken else self.whole
        except OverflowError:
            return None

    def _mean(self) -> float | None:
        total = self._sum()
        try:
            return None if total is None else round(total / self.kinds["number"], 6)
        except OverflowError:
            return None


class Table:
    """Gather the columns of a list of objects, of lists, or of plain values."""

    def __init__(self, path: str, rows: list[Any]) -> None:
        """Read every row once."""
        self.path = path
        self.rows = rows
        self.columns: dict[str, Column] = {}
        self.left_out = 0
        for row in rows:
            self._add(row)

    def _add(self, row: Any) -> None:
        match row:
            case dict():
                cells = row.items()
            case list():
                cells = ((str(at), cell) for at, cell in enumerate(row[:_MOST_COLUMNS]))
            case _:
                cells = (("value", row),)
        for name, cell in cells:
            column = self.columns.get(name)
            if column is None:
                if len(self.columns) >= _MOST_COLUMNS:
                    self.left_out += 1
                    continue
                column = self.columns[name] = Column()
            if cell is not None:
                column.add(cell)


def table_in(payload: Any) -> Table | None:
    """Return the main table of a payload: the payload itself, or the longest list under its names."""
    if isinstance(payload, list):
        return Table("", payload)
    found: tuple[str, list[Any]] = ("", [])
    level: list[tuple[str, Any]] = [("", payload)]
    for _ in range(_DEEPEST_TABLE):
        inside = [(f"{path}.{name}".lstrip("."), item) for path, items in level for name, item in items.items()]
        for path, item in inside:
            if isinstance(item, list) and len(item) > len(found[1]):
                found = (path, item)
        level = [(path, item) for path, item in inside if isinstance(item, dict)]
    return Table(*found) if found[1] else None


def _is_date(text: str) -> bool:
    """Say whether a text begins as an ISO date does."""
    return (
        10 <= len(text) <= 35
        and text[4] == text[7] == "-"
        and f"{text[:4]}{text[5:7]}{text[8:10]}".isdecimal()
        and text[:10].isascii()
        and (len(text) == 10 or text[10] in "T ")
    )


def _finite(value: float | None) -> float | str:
    if value is None or value - value != 0:
        return "out of range"
    return value
