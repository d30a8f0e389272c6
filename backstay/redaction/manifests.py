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
_COMMENT = re.compile(r"[ \t]#.*")
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
        if not line["key"] and line["value"].startswith("#"):
            for other, mapping in opened.items():
                if other < column and mapping.in_data:
                    mapping.take_comment(line)
            continue
        is_new = "-" in line["indent"] or line["value"].startswith("---")
        yield from _closed(opened, column + (not is_new))
        for other, mapping in opened.items():
            if other < column and mapping.in_data:
                mapping.take(line)
        opened.setdefault(column, _Mapping()).read(line)
    yield from _closed(opened, 0)


def _closed(opened: dict[int, "_Mapping"], least: int) -> Iterator[Span]:
    """Close the mappings from a column on, and yield the values of Secrets."""
    for column in sorted((other for other in opened if other >= least), reverse=True):
        mapping = opened.pop(column)
        yield from mapping.secrets()
        if opened:
            opened[max(opened)].listed += mapping.found


class _Mapping:
    """One mapping, whose keys begin in the same column."""

    def __init__(self) -> None:
        self.in_data = False
        self._kind = ""
        self._entries = 0
        """The column of the entries of its data."""
        self.found: list[tuple[int, int]] = []
        """The values of its data."""
        self.listed: list[tuple[int, int]] = []
        """Those of mappings right within it, of which a list of Secrets does not say the kind."""

    def read(self, line: re.Match[str]) -> None:
        """Read a line of its own keys."""
        key = (line["key"] or "").strip("\"'")
        self.in_data = key in DATA_FIELDS
        self._entries = 0
        if key == "kind":
            self._kind = _COMMENT.sub("", line["value"]).strip(" \t\"'")
        elif self.in_data:
            self._keep(line, line.start("value"))

    def take(self, line: re.Match[str]) -> None:
        """Take the value of a line in its data, which is the whole line where a longer value goes on."""
        column = len(line["indent"])
        self._entries = self._entries or column
        is_entry = line["key"] and column == self._entries
        self._keep(line, line.start("value") if is_entry else line.end("indent"))

    def take_comment(self, line: re.Match[str]) -> None:
        """Take a line that is a comment, or a part of a longer value."""
        if 0 < self._entries < len(line["indent"]):
            self.found.append(line.span("value"))

    def _keep(self, line: re.Match[str], start: int) -> None:
        text, end = line.string, line.end()
        if _NO_VALUE.fullmatch(text, start, end) is not None:
            return
        if end - start > 1 and text[start] in "\"'" and text[end - 1] == text[start]:
            start, end = start + 1, end - 1
        if end > start and not is_placeholder(text[start:end]):
            self.found.append((start, end))

    def secrets(self) -> Iterator[Span]:
        """Yield the values of its data if it is a Secret, and those of a list of Secrets."""
        found = {SECRET: self.found, SECRETS: self.listed}.get(self._kind, ())
        yield from ((start, end, "secret") for start, end in found)
