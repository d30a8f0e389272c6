"""Write the Python source of bindings; whatever a stranger's text holds, it stays text."""

import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template

from toolbox.binding import Binding
from toolbox.binding_names import literal

FULL_LIMIT = 12_000
"""Characters of a source with types and documentation; one that is longer is written without."""
BRIEF_LIMIT = 2_500
"""Characters of a source without them; one that is longer takes any argument by its name."""
_TYPES = frozenset({"bool", "dict", "float", "int", "list", "str"})
_FOLDER = Path(__file__).parent / "templates"
_DESCRIPTION = 2_000
_LINE = 300
_ENVIRONMENT = Environment(
    autoescape=False,  # noqa: S701 - what is written is Python: texts are literals, or are escaped below
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_ENVIRONMENT.filters["literal"] = literal


def full_source(binding: Binding) -> str:
    """Return the source with types and documentation, or the brief one when that would be too long."""
    # A function called like a type hides that type from its own annotations.
    typed = _bare(binding) if binding.function in _TYPES else binding
    source = _source(typed, _documentation(binding))
    return source if len(source) <= FULL_LIMIT else brief_source(binding)


def brief_source(binding: Binding) -> str:
    """Return the source with the names of parameters only, or without any when they are too long."""
    source = _source(_bare(binding), one_line(binding.description))
    if len(source) <= BRIEF_LIMIT:
        return source
    return _source(replace(binding, parameters=(), others="others", records={}), "")


def exports(documentation: str, names: Iterable[tuple[str, str]]) -> str:
    """Return the source of a package that offers these names, each with the module it comes from."""
    return _template("exports").render(documentation=_escaped(documentation), names=list(names))


def client() -> str:
    """Return the source of the module through which every binding calls."""
    return _template("client").render()


def one_line(text: str, limit: int = 200) -> str:
    """Return the first sentence of a text in one line without anything that a reader could not see."""
    line = " ".join(_visible(text[: limit * 10]).split())
    end = line.find(". ")
    line = line[: end + 1] if end > 0 else line
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _bare(binding: Binding) -> Binding:
    return replace(binding, parameters=tuple(replace(one, type="Any") for one in binding.parameters), records={})


def _source(binding: Binding, documentation: str) -> str:
    types = [one.type for one in binding.parameters]
    types += [text for fields in binding.records.values() for text in fields.values()]
    used = {
        "Any": True,
        "Literal": any("Literal[" in text for text in types),
        "NotRequired": any(text.startswith("NotRequired[") for text in types),
        "TypedDict": bool(binding.records),
    }
    return _template("binding").render(
        typing=[name for name, is_used in used.items() if is_used],
        function=binding.function,
        tool=binding.tool,
        parameters=binding.parameters,
        optional=any(not one.required for one in binding.parameters),
        others=binding.others,
        records=binding.records,
        documentation=_indented(_escaped(f"{documentation or 'Call the tool.'}\n\nSafety: {_visible(binding.safety)}")),
    )


def _documentation(binding: Binding) -> str:
    text = _visible(binding.description[:_DESCRIPTION])
    described = [
        f"    {one.name}: {' '.join([*_visible(one.description).split(), *_default(one.default)])[:_LINE]}"
        for one in binding.parameters
        if one.description or one.default
    ]
    return "\n".join([text.strip(), *(["", "Args:", *described] if described else [])]).strip()


def _default(default: str | None) -> list[str]:
    return [] if default is None else [f"(default: {default})"]


def _visible(text: str) -> str:
    """Return the text in lines, without characters that control or hide."""
    return "\n".join(_printable(line).rstrip() for line in text.expandtabs(4).splitlines())


def _printable(line: str) -> str:
    return line if line.isprintable() else "".join(one for one in line if unicodedata.category(one)[0] != "C")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"') if '"""' in text else text.replace("\\", "\\\\")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.split("\n")).strip()


@cache
def _template(name: str) -> Template:
    return _ENVIRONMENT.from_string((_FOLDER / f"{name}.py.j2").read_text(encoding="utf-8"))
