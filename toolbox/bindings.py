"""Write tools as Python functions, for programs in the sandbox and for whoever reads or imports them."""

import json
from collections.abc import Iterable
from inspect import Signature

from toolbox.binding import Binding, BoundParameter, bind
from toolbox.binding_names import IN_BINDINGS, IN_PROGRAMS, unique
from toolbox.binding_source import brief_source, client, exports, full_source, one_line
from toolbox.definition import Definition

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


def tool_names(definitions: Iterable[Definition]) -> dict[tuple[str, str], str]:
    """Return the tool that each function calls, `provider.tool` by module and function name."""
    return {(one.module, one.function): one.tool for one in bound(definitions)}


def signatures_of(definitions: Iterable[Definition]) -> dict[str, dict[str, Signature]]:
    """Return the signature of each tool's function by module and function name."""
    signatures: dict[str, dict[str, Signature]] = {}
    for one in bound(definitions):
        signatures.setdefault(one.module, {})[one.function] = one.signature
    return signatures


def render_package(definitions: Iterable[Definition]) -> dict[str, str]:
    """Return the files of the package `sandbox_py` by relative path: a client, and one module per tool."""
    every = bound(definitions)
    by_module: dict[str, list[Binding]] = {}
    for one in every:
        by_module.setdefault(one.module, []).append(one)
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
        names = sorted(one.function for one in tools)
        origins = [(f"{root}.servers.{module}.{name}", name) for name in names]
        provider = tools[0].tool.partition(".")[0]
        files[f"{place}/__init__.py"] = exports(f"Tools of {one_line(provider)}.", origins)
        files |= {f"{place}/{one.function}.py": full_source(one) for one in tools}
    return files


def describe(definitions: Iterable[Definition], limit: int = 16_000) -> str:
    """Return the functions for a model to read, one line each; at most `limit` characters.

    When they are too many, the later ones are left out and their number is named.
    """
    lines = [_line(one) for one in bound(definitions, inline=True)]
    kept, used = 0, 0
    while kept < len(lines) and used + len(lines[kept]) + 1 <= limit - (_LAST_LINE if kept + 1 < len(lines) else 0):
        used += len(lines[kept]) + 1
        kept += 1
    left = len(lines) - kept
    return "\n".join([*lines[:kept], *([f"and {left} more; search_tools finds them"] if left else [])])[:limit]


def bound(definitions: Iterable[Definition], *, inline: bool = False) -> list[Binding]:
    """Return the function of each tool; inline types name the fields of nested objects in place."""
    tools: dict[str, dict[str, Definition]] = {}
    for definition in definitions:
        provider, _, tool = definition.name.partition(".")
        tools.setdefault(provider, {})[tool] = definition
    modules = unique(tools, reserved=IN_PROGRAMS, plain=True)
    found: list[Binding] = []
    for provider, by_name in tools.items():
        functions = unique(by_name, reserved=IN_BINDINGS, plain=True)
        found += [bind(one, modules[provider], functions[name], inline=inline) for name, one in by_name.items()]
    return found


def _line(binding: Binding) -> str:
    shown = ["*"] if binding.parameters else []
    shown += [_shown(one) for one in binding.parameters]
    shown += [f"**{binding.others}"] if binding.others else []
    text = f"{binding.module}.{binding.function}({', '.join(shown)})"
    if len(text) > _LINE:
        names = [one.name if one.required else f"{one.name}=..." for one in binding.parameters]
        text = f"{binding.module}.{binding.function}(*, {', '.join(names)})"
    text = text if len(text) <= _LINE else f"{text[: _LINE - 4]}...)"
    return f"{text} [{one_line(binding.safety).rstrip('.')}] {one_line(binding.description)}".rstrip()


def _shown(parameter: BoundParameter) -> str:
    text = f"{parameter.name}: {parameter.type}"
    return text if parameter.required else f"{text} = {parameter.default or '...'}"
