"""Render tools as Python functions, for programs in the sandbox and for people."""

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from inspect import Signature
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from toolbox.bindings.binding import BoundParameter, FunctionBinding, bind
from toolbox.bindings.names import IN_BINDINGS, IN_PROGRAMS, literal, unique
from toolbox.catalog.definition import Definition
from toolbox.catalog.naming import first_sentence

FULL_LIMIT = 12_000
"""Characters of a source with types and documentation; one that is longer is written without."""
BRIEF_LIMIT = 2_500
"""Characters of a source without them; one that is longer takes any argument by its name."""
_TYPES = frozenset({"bool", "dict", "float", "int", "list", "str"})
_DESCRIPTION = 2_000
_DOC_LINE = 300
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=False,  # noqa: S701 - what is written is Python: texts are literals, or are escaped below
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters["literal"] = literal


def full_source(binding: FunctionBinding) -> str:
    """Return the source with types and documentation, or the brief one when that would be too long."""
    # A function called like a type hides that type from its own annotations.
    typed = _bare(binding) if binding.function in _TYPES else binding
    source = _source(typed, _documentation(binding))
    return source if len(source) <= FULL_LIMIT else brief_source(binding)


def brief_source(binding: FunctionBinding) -> str:
    """Return the source with the names of parameters only, or without any when they are too long."""
    source = _source(_bare(binding), one_line(binding.description))
    if len(source) <= BRIEF_LIMIT:
        return source
    return _source(replace(binding, parameters=(), others="others", records={}), "")


def exports(documentation: str, names: Iterable[tuple[str, str]]) -> str:
    """Return the source of a package that offers these names, each with the module it comes from."""
    return _TEMPLATES.get_template("exports.py.j2").render(documentation=_escaped(documentation), names=list(names))


def client() -> str:
    """Return the source of the module through which every binding calls."""
    return _TEMPLATES.get_template("client.py.j2").render()


def one_line(text: str, limit: int = 200) -> str:
    """Return the first sentence of a string in one line without anything that a reader could not see."""
    return first_sentence(_visible(text[: limit * 10]), limit)


def _bare(binding: FunctionBinding) -> FunctionBinding:
    parameters = tuple(replace(parameter, type="Any") for parameter in binding.parameters)
    return replace(binding, parameters=parameters, records={})


def _source(binding: FunctionBinding, documentation: str) -> str:
    types = [parameter.type for parameter in binding.parameters]
    types += [text for fields in binding.records.values() for text in fields.values()]
    used = {
        "Any": True,
        "Literal": any("Literal[" in text for text in types),
        "NotRequired": any(text.startswith("NotRequired[") for text in types),
        "TypedDict": bool(binding.records),
    }
    return _TEMPLATES.get_template("binding.py.j2").render(
        typing=[name for name, is_used in used.items() if is_used],
        function=binding.function,
        tool=binding.tool,
        parameters=binding.parameters,
        optional=any(not parameter.required for parameter in binding.parameters),
        others=binding.others,
        records=binding.records,
        documentation=_indented(_escaped(f"{documentation or 'Call the tool.'}\n\nSafety: {_visible(binding.safety)}")),
    )


def _documentation(binding: FunctionBinding) -> str:
    text = _visible(binding.description[:_DESCRIPTION])
    described: list[str] = []
    for parameter in binding.parameters:
        default = f" (default: {parameter.default})" if parameter.default else ""
        if line := f"{' '.join(_visible(parameter.description).split())}{default}".strip():
            described.append(f"    {parameter.name}: {line[:_DOC_LINE]}")
    return "\n".join([text.strip(), *(["", "Args:", *described] if described else [])]).strip()


def _visible(text: str) -> str:
    """Return the text in lines, without characters that control or hide."""
    return "\n".join(_printable(line).rstrip() for line in text.expandtabs(4).splitlines())


def _printable(line: str) -> str:
    return line if line.isprintable() else "".join(sign for sign in line if unicodedata.category(sign)[0] != "C")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"') if '"""' in text else text.replace("\\", "\\\\")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.split("\n")).strip()


_FULL_BYTES = 400_000
_LINE = 600
_LAST_LINE = 60


def bindings_of(definitions: Iterable[Definition]) -> dict[str, dict[str, str]]:
    """Return the source of each tool's function by module and function name.

    Each source stands alone given the module `sandbox_py.client`. All of them together stay under a megabyte as JSON
    for 200 tools: when the first ones took much, the rest is written without documentation.
    """
    sources: dict[str, dict[str, str]] = {}
    left = _FULL_BYTES
    for binding in bound(definitions):
        source = full_source(binding) if left > 0 else brief_source(binding)
        left -= len(json.dumps(source))
        sources.setdefault(binding.module, {})[binding.function] = source
    return sources


def signatures_of(definitions: Iterable[Definition]) -> dict[str, dict[str, Signature]]:
    """Return the signature of each tool's function by module and function name."""
    signatures: dict[str, dict[str, Signature]] = {}
    for binding in bound(definitions):
        signatures.setdefault(binding.module, {})[binding.function] = binding.signature
    return signatures


def render_package(definitions: Iterable[Definition]) -> dict[str, str]:
    """Return the files of the package `sandbox_py` by relative path: a client, and one module per tool."""
    every = bound(definitions)
    by_module: dict[str, list[FunctionBinding]] = {}
    for binding in every:
        by_module.setdefault(binding.module, []).append(binding)
    root = "sandbox_py"
    files = {
        f"{root}/__init__.py": exports("Tools as Python functions.", []),
        f"{root}/client.py": client(),
        f"{root}/servers/__init__.py": exports(
            "One package per provider.", [(f"{root}.servers", module) for module in sorted(by_module)]
        ),
    }
    for module, tools in sorted(by_module.items()):
        place = f"{root}/servers/{module}"
        names = sorted(binding.function for binding in tools)
        origins = [(f"{root}.servers.{module}.{name}", name) for name in names]
        provider = tools[0].tool.partition(".")[0]
        files[f"{place}/__init__.py"] = exports(f"Tools of {one_line(provider)}.", origins)
        files |= {f"{place}/{binding.function}.py": full_source(binding) for binding in tools}
    return files


def describe(definitions: Iterable[Definition], limit: int = 16_000) -> str:
    """Return the functions for a model to read, one line each; at most `limit` characters.

    When they are too many, the later ones are left out and their number is named.
    """
    lines = [_line(binding) for binding in bound(definitions, inline=True)]
    kept, used = 0, 0
    while kept < len(lines) and used + len(lines[kept]) + 1 <= limit - (_LAST_LINE if kept + 1 < len(lines) else 0):
        used += len(lines[kept]) + 1
        kept += 1
    left = len(lines) - kept
    return "\n".join([*lines[:kept], *([f"and {left} more; search_tools finds them"] if left else [])])[:limit]


def bound(definitions: Iterable[Definition], *, inline: bool = False) -> list[FunctionBinding]:
    """Return the function of each tool; inline types name the fields of nested objects in place."""
    tools: dict[str, dict[str, Definition]] = {}
    for definition in definitions:
        provider, _, tool = definition.name.partition(".")
        tools.setdefault(provider, {})[tool] = definition
    modules = unique(tools, reserved=IN_PROGRAMS, plain=True)
    found: list[FunctionBinding] = []
    for provider, by_name in tools.items():
        functions = unique(by_name, reserved=IN_BINDINGS, plain=True)
        found += [
            bind(definition, modules[provider], functions[name], inline=inline) for name, definition in by_name.items()
        ]
    return found


def _line(binding: FunctionBinding) -> str:
    shown = ["*"] if binding.parameters else []
    shown += [_shown(parameter) for parameter in binding.parameters]
    shown += [f"**{binding.others}"] if binding.others else []
    text = f"{binding.module}.{binding.function}({', '.join(shown)})"
    if len(text) > _LINE:
        names = [parameter.name if parameter.required else f"{parameter.name}=..." for parameter in binding.parameters]
        text = f"{binding.module}.{binding.function}(*, {', '.join(names)})"
    text = text if len(text) <= _LINE else f"{text[: _LINE - 4]}...)"
    return f"{text} [{one_line(binding.safety).rstrip('.')}] {one_line(binding.description)}".rstrip()


def _shown(parameter: BoundParameter) -> str:
    text = f"{parameter.name}: {parameter.type}"
    return text if parameter.required else f"{text} = {parameter.default or '...'}"
