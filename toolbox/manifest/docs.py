"""Write what tools do, take and cost to undo as Markdown, in which nothing that a server says can act."""

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from backstay.shown import counted, markdown_line
from toolbox.catalog.naming import file_name, first_sentence
from toolbox.manifest.example import call_line, example_of
from toolbox.manifest.manifest import Manifest, ManifestProvider
from toolbox.schema import compile_schema, fault_of

_LINE = 1000
_FIRST = 160
_INDEX = "index"


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
