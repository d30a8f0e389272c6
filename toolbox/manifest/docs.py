"""Write what tools do, take and cost to undo as Markdown, in which nothing that a server says can act."""

import json
import math
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from backstay.shown import counted, markdown_line
from toolbox.bindings.names import IN_BINDINGS, literal
from toolbox.bindings.types import Types
from toolbox.catalog.naming import file_name, first_sentence
from toolbox.manifest.manifest import Manifest, ManifestProvider, ManifestTool
from toolbox.schema import compile_schema, fault_of

_LINE = 1000
_FIRST = 160
_INDEX = "index"
_DEPTH = 6
_LONGEST = 200
_MOST = 5
_STEPS = 500
_BY_FORMAT = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "ana@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "/",
    "uuid": "12345678-1234-4234-8234-123456789abc",
    "json-pointer": "/name",
    "regex": ".*",
}


def example_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a value for each argument that must be given; never fails, and fits the schema where a guess can."""
    return _Example(schema).fields(schema, 0)


def call_line(tool: ManifestTool, arguments: dict[str, Any]) -> str:
    """Return the line of a program that makes the call."""
    names = {parameter.argument: parameter.name for parameter in tool.arguments}
    known = [f"{names[argument]}={_python(value)}" for argument, value in arguments.items() if argument in names]
    others = {argument: value for argument, value in arguments.items() if argument not in names}
    return f"await {tool.binding}({', '.join([*known, *([f'**{_python(others)}'] if others else [])])})"


class _Example:
    """Guess values for the parts of one schema."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.types = Types(root, prefix="", taken=IN_BINDINGS, inline=True)
        self.steps = 0

    def fields(self, schema: Any, depth: int) -> dict[str, Any]:
        members = self.types.members(schema)
        needed = {name: rule for name, rule in members.fields.items() if name in members.required}
        return {name: self.value(rule, name, depth + 1) for name, rule in needed.items() if self.steps <= _STEPS}

    def value(self, schema: Any, name: str, depth: int) -> Any:
        self.steps += 1
        if not isinstance(schema, dict) or depth > _DEPTH or self.steps > _STEPS:
            return name
        said = _said(schema)
        if said:
            return said[0]
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self.value(self.types.find(reference), name, depth + 1)
        for key in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(key)
            if "type" not in schema and "properties" not in schema and isinstance(parts, list) and parts:
                some = [part for part in parts if not (isinstance(part, dict) and part.get("type") == "null")]
                return self.value((some or parts)[0], name, depth + 1)
        return self.of_type(schema, name, depth)

    def of_type(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((name for name in kind if name != "null"), None)
        match kind:
            case "integer" | "number":
                return _number(schema, whole=kind == "integer")
            case "boolean":
                return False
            case "null":
                return None
            case "array":
                count = min(max(1, _count(schema, "minItems")), _MOST)
                return [self.value(schema.get("items"), name, depth + 1)] * count
            case "object":
                return self.fields(schema, depth)
            case _:
                return self.fields(schema, depth) if "properties" in schema else _text(schema, name)


def _said(schema: dict[str, Any]) -> list[Any]:
    """Return the values that the schema itself names, the best first."""
    given, named = schema.get("examples"), schema.get("enum")
    values = [
        *(given[:1] if isinstance(given, list) else []),
        *(schema[key] for key in ("default", "const") if key in schema),
    ]
    values += [value for value in named if value is not None][:1] if isinstance(named, list) else []
    return [value for value in values if len(json.dumps(value)) <= _LONGEST]


def _text(schema: dict[str, Any], name: str) -> str:
    said = schema.get("format")
    text = _BY_FORMAT.get(said, name) if isinstance(said, str) else name
    least = min(_count(schema, "minLength"), _LONGEST)
    text = text[:_LONGEST].ljust(least, "x")
    most = schema.get("maxLength")
    return text[:most] if isinstance(most, int) and most >= 0 else text


def _number(schema: dict[str, Any], *, whole: bool) -> float:
    """Return the least number above nothing that the bounds and the step allow."""
    try:
        step = _bound(schema, "multipleOf") or 1
        value: float = step
        if (least := _bound(schema, "minimum")) is not None:
            value = max(value, math.ceil(least / step) * step)
        if (least := _bound(schema, "exclusiveMinimum")) is not None:
            value = max(value, (math.floor(least / step) + 1) * step)
        if (most := _bound(schema, "maximum")) is not None:
            value = min(value, math.floor(most / step) * step)
        if (most := _bound(schema, "exclusiveMaximum")) is not None:
            value = min(value, (math.ceil(most / step) - 1) * step)
        return int(value) if whole and float(value).is_integer() else value
    except (OverflowError, ValueError):  # of numbers beyond what a machine computes with
        return 1


def _bound(schema: dict[str, Any], key: str) -> float | None:
    said = schema.get(key)
    return said if isinstance(said, int | float) and not isinstance(said, bool) else None


def _count(schema: dict[str, Any], key: str) -> int:
    said = schema.get(key)
    return said if isinstance(said, int) and said > 0 else 0


def _python(value: Any) -> str:
    match value:
        case str():
            return literal(value)
        case dict():
            return f"{{{', '.join(f'{literal(str(key))}: {_python(item)}' for key, item in value.items())}}}"
        case list():
            return f"[{', '.join(_python(item) for item in value)}]"
        case _:
            return ascii(value)


def tool_docs(manifest: Manifest) -> dict[str, str]:
    """Return an index and one page per provider that the user is granted, by file name."""
    granted = [provider for provider in manifest.providers.values() if provider.granted]
    pages = {f"{_page_name(provider)}.md": _page(manifest, provider) for provider in granted}
    linked = [(provider, f"{_page_name(provider)}.md", _standing(provider)) for provider in granted]
    withheld = [provider for provider in manifest.providers.values() if not provider.granted]
    index = _TEMPLATES.get_template("tool_index.md.j2").render(
        linked=linked, withheld=withheld, problems=manifest.problems
    )
    return {f"{_INDEX}.md": index, **pages}


def _page_name(provider: ManifestProvider) -> str:
    name = file_name(provider.name)
    return f"{name}.provider" if name.lower() == _INDEX else name


def _page(manifest: Manifest, provider: ManifestProvider) -> str:
    tools = manifest.of(provider.name)
    examples = {tool.name: example_of(tool.parameters) for tool in tools}
    return _TEMPLATES.get_template("tool_docs.md.j2").render(
        provider=provider,
        standing=_standing(provider),
        tools=tools,
        reasons={tool.name: manifest.reason(tool) for tool in tools},
        examples=examples,
        calls={tool.name: call_line(tool, examples[tool.name]) for tool in tools},
        faults={tool.name: _fault(tool.parameters, examples[tool.name]) for tool in tools},
    )


def _standing(provider: ManifestProvider) -> str:
    classes = ", ".join(f"{count} {safety.value}" for safety, count in provider.safety.items() if count)
    tools = f"{counted(provider.tools, 'tool')}{f' ({classes})' if classes else ''}"
    available = "available" if provider.available else f"not available: {markdown_line(provider.reason or '')}"
    return f"Kind: {provider.kind}; {tools}; {available}"


def _fault(schema: dict[str, Any], example: dict[str, Any]) -> str | None:
    return fault_of(compile_schema(schema), example)


def _line(text: str) -> str:
    return markdown_line(text.expandtabs(4), _LINE)


def _first(text: str) -> str:
    """Return the first sentence, for a table."""
    return markdown_line(first_sentence(text, _LINE), _FIRST)


def _paragraphs(text: str) -> str:
    """Return the text line by line as it was written; a backslash keeps the end of a line."""
    blocks: list[list[str]] = [[]]
    for line in text.expandtabs(4).splitlines():
        if line.strip():
            blocks[-1].append(_line(line.strip()))
        elif blocks[-1]:
            blocks.append([])
    return "\n\n".join("\\\n".join(block) for block in blocks if block)


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=False,  # noqa: S701 - what is written is Markdown: every text passes one of the filters
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters |= {
    "line": _line,
    "first": _first,
    "paragraphs": _paragraphs,
    "json": lambda value: json.dumps(value, indent=2),
}
