"""Find the values of Secrets of Kubernetes, which are secrets under whatever names, in YAML."""

import re
from collections.abc import Iterator

from backstay.redaction.harmless import is_placeholder
from backstay.redaction.vendor_tokens import Span

SECRET, SECRETS = "Secret", "SecretList"
DATA_FIELDS = ("data", "stringData")
_LINE = re.compile(
    r"""^(?P<indent>[ ]*(?:-[ ]+)*)
    (?:(?P<key>"[^"\n]*"|'[^'\n]*'|[^\s:\#"'][^:\n]*):(?=[ \t\r]|$)[ \t]*)?(?P<value>[^\r\n]*)""",
    re.VERBOSE | re.MULTILINE,
)
_NO_VALUE = re.compile(r"(?:!\S{1,80}[ \t]*)?(?:[|>][0-9+-]{0,2})?[ \t]*(?:\#.*)?|\{[ \t]*\}|---.*")


def manifests_in(text: str) -> Iterator[Span]:
    """Yield all values of the Secrets in a string."""
    if "ata:" not in text:
        return
    opened: dict[int, _Mapping] = {}
    for line in _LINE.finditer(text):
        if not line["key"] and not line["value"].strip():
            continue
        column = len(line["indent"])
        is_new = "-" in line["indent"] or line["value"].startswith("---")
        for closed in [other for other in opened if other > column or (is_new and other == column)]:
            yield from opened.pop(closed).secrets()
        for other, mapping in opened.items():
            if other < column and mapping.in_data:
                mapping.take(line)
        opened.setdefault(column, _Mapping()).read(line)
    for mapping in opened.values():
        yield from mapping.secrets()


class _Mapping:
    """One mapping, whose keys begin in the same column."""

    def __init__(self) -> None:
        self.in_data = False
        self._is_secret = False
        self._entries = 0
        """The column of the entries of its data."""
        self._found: list[tuple[int, int]] = []

    def read(self, line: re.Match[str]) -> None:
        """Read a line of its own keys."""
        key = (line["key"] or "").strip("\"'")
        self.in_data = key in DATA_FIELDS
        self._entries = 0
        if key == "kind":
            self._is_secret = line["value"].strip(" \t\"'") == SECRET
        elif self.in_data:
            self._keep(line, line.start("value"))

    def take(self, line: re.Match[str]) -> None:
        """Take the value of a line in its data, which is the whole line where a longer value goes on."""
        column = len(line["indent"])
        self._entries = self._entries or column
        is_entry = line["key"] and column == self._entries
        self._keep(line, line.start("value") if is_entry else line.end("indent"))

    def _keep(self, line: re.Match[str], start: int) -> None:
        text, end = line.string, line.end()
        if _NO_VALUE.fullmatch(text, start, end) is not None:
            return
        if end - start > 1 and text[start] in "\"'" and text[end - 1] == text[start]:
            start, end = start + 1, end - 1
        if end > start and not is_placeholder(text[start:end]):
            self._found.append((start, end))

    def secrets(self) -> Iterator[Span]:
        """Yield the values of its data if it is a Secret."""
        if self._is_secret:
            yield from ((start, end, "secret") for start, end in self._found)
