"""Describe a log or a thread of mails in plain text, without a model."""

import re
from collections import Counter
from typing import Any

_LEAST_LINES = 5
_MOST_SHAPES = 1000
_MOST_COMPARED = 10_000
_LONGEST_LINE = 300
_LONGEST_SHAPE = 100
_LEVEL_WITHIN = 80
_LEVELS = ("trace", "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal", "panic")
_LEVEL = re.compile(
    rf"[^\w./](?:({'|'.join(map(str.upper, _LEVELS))})(?:[\]\s:,|]|$)"
    rf"|(?:\[|level\"?[=:] ?\"?)({'|'.join(_LEVELS)})(?:[\]\s\",]|$))"
)
_MOMENT = re.compile(
    r"\[?([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:[.,][0-9]+)?(?:Z|[+-][0-9:]{4,5})?\]?"
)
_VARYING = re.compile(r"0x[0-9a-fA-F]+|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+(?:[.:,-][0-9]+)*|\"[^\"]*\"|'[^']*'")
_SAME = {"warning": "warn", "fatal": "critical", "panic": "critical"}
_GRAVE = ("critical", "error")
_MAIL = re.compile(r"(?:^|>\s?)(From|Subject|Date):\s*(.{1,200})", re.IGNORECASE)


class LineFacts:
    """Facts about the lines of a string."""

    def __init__(self, lines: list[str]) -> None:
        """Read every line once."""
        self.levels: Counter[str] = Counter()
        self.shapes: Counter[str] = Counter()
        self.mail: dict[str, Counter[str]] = {"from": Counter(), "subject": Counter(), "date": Counter()}
        self.first_grave = ""
        self.lines = len(lines)
        # Comparing lines costs ten times as much as reading them.
        self.compared_each = 1 + self.lines // _MOST_COMPARED
        moments = self._read(lines if self.lines >= _LEAST_LINES else [])
        self.moments = len(moments)
        self.earliest, self.latest = min(moments, default=""), max(moments, default="")

    @property
    def is_log(self) -> bool:
        """Return whether most lines have a time or a level."""
        return max(self.moments, self.levels.total()) * 2 > self.lines >= _LEAST_LINES

    @property
    def mails(self) -> int:
        """Return how many mails the text holds: each has at least a sender and a subject."""
        return min(self.mail["from"].total(), self.mail["subject"].total())

    def facts(self, choices: int) -> dict[str, Any]:
        """Return what is known; `choices` is how many of the most frequent lines or writers may be named."""
        if self.is_log:
            facts: dict[str, Any] = {"levels": dict(sorted(self.levels.items()))}
            if self.moments:
                facts |= {"earliest": self.earliest, "latest": self.latest}
            counted = {} if self.compared_each == 1 else {"compared_each": self.compared_each}
            return facts | {"frequent": _frequent(self.shapes, choices)} | counted
        if self.mails:
            return {"mails": self.mails, "from": _frequent(self.mail["from"], choices),
                    "subjects": _frequent(self.mail["subject"], choices)}  # fmt: skip
        return {}

    def oddities(self) -> list[str]:
        """Return what a reader should know to avoid mistakes."""
        grave = sum(self.levels[level] for level in _GRAVE)
        if not self.is_log or not grave:
            return []
        return [f"{grave} of {self.lines} lines report errors; the first: {self.first_grave[:_LONGEST_SHAPE]}"]

    def _read(self, lines: list[str]) -> list[str]:
        """Count levels, shapes and headers; return the times."""
        moments: list[str] = []
        words: list[str] = []
        for number, line in enumerate(lines):
            moment = _MOMENT.match(line)
            if moment is None:
                level = _LEVEL.search(f" {line[:_LEVEL_WITHIN]}")
            else:
                moments.append(moment[1].replace(" ", "T"))
                level = _LEVEL.search(line, moment.end() - 1, max(_LEVEL_WITHIN, moment.end()))
            if level is not None:
                words.append(level[1] or level[2])
                if not self.first_grave and _named(words[-1]) in _GRAVE:
                    self.first_grave = line
            elif moment is None:
                if ":" in line[:12] and (header := _MAIL.match(line, 0, _LONGEST_LINE)):
                    _count(self.mail[header[1].lower()], header[2].strip())
                continue
            if number % self.compared_each == 0:
                rest = line[moment.end() if moment else 0 : _LONGEST_LINE]
                _count(self.shapes, _VARYING.sub("#", rest).strip())
        for word, count in Counter(words).items():
            self.levels[_named(word)] += count
        return moments


def _named(word: str) -> str:
    level = word.lower()
    return _SAME.get(level, level)


def _count(counted: Counter[str], line: str) -> None:
    shape = line[:_LONGEST_SHAPE]
    if shape in counted or len(counted) < _MOST_SHAPES:
        counted[shape] += 1
    else:
        counted[""] += 1


def _frequent(counted: Counter[str], choices: int) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda entry: (not entry[0], -entry[1], entry[0]))[:choices])
