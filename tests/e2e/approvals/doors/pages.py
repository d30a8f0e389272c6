"""Read the calls and the form out of a page, as a browser without scripts does."""

from dataclasses import dataclass
from html.parser import HTMLParser

from tests.e2e.approvals.doors.decoding import Shown
from tests.e2e.approvals.doors.forms import Field, named

_VOID = {"input", "meta", "link", "br", "img", "hr"}


@dataclass
class Option:
    """One of several things that can be chosen."""

    value: str
    marked: bool
    said: str = ""


class Page(HTMLParser):
    """Hold what a page shows of calls, and the fields of the form in which it is decided."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.calls: list[Shown] = []
        self.fields: dict[str, str] = {}
        """What a browser would send as it stands: hidden fields, texts and marked choices."""
        self.labels: dict[str, str] = {}
        self.boxes: set[str] = set()
        self.buttons: list[str] = []
        self.options: dict[str, list[Option]] = {}
        """What can be chosen in each field."""
        self.said = ""
        """All that stands there."""
        self._select = ""
        self._open: list[tuple[str, str, str]] = []
        self._said: list[str] = []
        self._names: list[str] = []
        self._lines: list[str] = []
        self._whole: list[str] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        if tag == "input" and self._in("form", "decide"):
            self._input(given)
        if tag == "select":
            self._select = given["name"]
            self.options[self._select] = []
        if tag == "option":
            self.options[self._select].append(Option(given["value"], "selected" in given))
        if tag == "button" and given.get("name") == "verdict" and self._in("form", "decide"):
            self.buttons.append(given["value"])
        if tag in _VOID:
            return
        self._open.append((tag, given.get("class", ""), given.get("name") or given.get("for", "")))
        self._said.append("")
        if tag == "article" and "call" in given.get("class", "").split():
            self.calls.append(Shown(-1, ""))
        if tag == "dd":
            self._lines, self._whole = [], None
        if tag == "details" and "whole" in given.get("class", ""):
            self._whole = []

    def _input(self, given):
        kind = given.get("type", "text")
        if kind in {"checkbox", "radio"}:
            self.boxes.add(f"{given['name']}={given.get('value', 'on')}")
            self.options.setdefault(given["name"], []).append(Option(given.get("value", "on"), "checked" in given))
            self._select = given["name"]
            if "checked" not in given:
                return
        self.fields[given["name"]] = given.get("value", "")

    def named(self, field: Field) -> str:
        """Return the name of the one field in which a value of a form is filled in."""
        (found,) = [name for name, label in self.labels.items() if name.startswith("x.") and named(label, field)]
        return found

    def chosen(self, name: str, said: str) -> dict[str, str]:
        """Return what a browser sends where a person chooses what is called so; the last, where nothing is."""
        found = [option.value for option in self.options[name] if option.said == said or not said]
        return {name: found[-1]}

    def handle_data(self, data):
        self.said += data
        if self._said:
            self._said[-1] += data

    def handle_endtag(self, tag):
        if not self._open or tag in _VOID:
            return
        assert self._open[-1][0] == tag, f"</{tag}> ends {self._open[-1]}"
        (_, kind, name), said = self._open.pop(), self._said.pop()
        match tag:
            case "textarea" if self._in("form", "decide"):
                # A browser leaves out the line break after the tag, and sends every one as two signs.
                self.fields[name] = said.removeprefix("\n").replace("\r\n", "\n").replace("\n", "\r\n")
            case "label" if self._in("form", "decide") and not name:
                self.options[self._select][-1].said = said.strip()
            case "label" if self._in("form", "decide"):
                self.labels.setdefault(name, said.strip())
            case "legend" if self._in("fieldset", "choices"):
                self._legend = said.strip()
            case "fieldset" if "choices" in kind.split():
                self.labels[self._select] = self._legend
            case "option":
                self.options[self._select][-1].said = said.strip()
            case "select":
                options = self.options[self._select]
                if self._in("form", "decide") and options:
                    marked = [option.value for option in options if option.marked]
                    self.fields[self._select] = (marked or [options[0].value])[-1]
            case "span" | "strong" | "code" | "dt" | "dd" | "details" if self.calls and self._in("article", "call"):
                self._of_call(tag, kind.split(), said)
            case _:
                # What stands in an inner element belongs to what its outer one says.
                self._said[-1:] = [self._said[-1] + said] if self._said and tag in {"a", "em"} else self._said[-1:]

    def _of_call(self, tag, kinds, said):
        call = self.calls[-1]
        if tag == "code" and self._in("h3", ""):
            call.tool = said
        elif tag == "span" and "number" in kinds:
            call.index = int(said)
        elif tag == "dt":
            self._names.append(said)
        elif "text" in kinds and self._in("div", "changed"):
            if tag == "strong":
                call.changed_by = said.removeprefix("Changed by ")
            else:
                call.changed.append(said)
        elif "text" in kinds and self._in("dd", ""):
            (self._lines if self._whole is None else self._whole).append(said)
        elif tag == "dd":
            call.add(self._names[-1], self._lines if self._whole is None else self._whole, inline=None)

    def _in(self, tag, kind):
        return any(name == tag and (not kind or kind in classes.split()) for name, classes, _ in self._open)
