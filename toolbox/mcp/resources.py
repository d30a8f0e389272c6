"""Offer the resources of a server as tools that only read, and read them by `resources/read` of that server alone.

An address of a resource is a server's own name for it. Nothing here opens one: neither `http:` nor `file:`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mcp import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp.types import CallToolResult, InputRequiredResult, ReadResourceResult

from backstay.shown import message_line
from backstay.tools.tool import Safety
from toolbox.mcp.connection import McpConnection
from toolbox.mcp.paging import Entry, ReadPage, known_entries, read_into, reader_of
from toolbox.mcp.prompts import MOST_PROMPTS, PREFIX, PromptRequest, name_of_prompt, prompt_tools, prompts_of
from toolbox.mcp.streams import WHOLE
from toolbox.mcp.tool_call import ToolCallRequest, as_result, replying
from toolbox.providers.answer import BESIDE, Answer, answer_of, decoded, parsed, parts_of, refused, text_in
from toolbox.providers.declaration import Declaration
from toolbox.providers.elicitation import InputResponse
from toolbox.providers.json_safe import json_safe
from toolbox.providers.label import label_of
from toolbox.providers.listing import ListedTool, ServerExtras, ToolAnnotations

LIST, READ = "resources_list", "resources_read"
MOST_ENTRIES = 2_000
MOST_URI = 8_000
"""Bytes of the address of a resource."""
_WORDS = {"name": 200, "title": 200, "description": 500}
_REACHES_OUT = ("http:", "https:", "{")
_TEXTS = ("text/", "application/json", "application/xml", "application/yaml", "application/javascript")


async def beside_of(connection: McpConnection) -> ServerExtras:
    """Return what a server offers besides tools; one whose resources are not all known may read any address."""
    offered = connection.client.server_capabilities
    lists = [] if offered.resources is None else [*_lists(connection).values()]
    found = await known_entries(lists, _address_of, MOST_ENTRIES)
    lists = [] if offered.prompts is None else [prompts_of(connection)]
    prompts = await known_entries(lists, name_of_prompt, MOST_PROMPTS)
    reaches_out = any(_address_of(entry).lower().startswith(_REACHES_OUT) for entry in found.entries)
    return ServerExtras(
        resources=offered.resources is not None,
        listed=bool(found.entries),
        reaches_out=reaches_out or not found.whole,
        prompts=tuple(prompts.entries),
        whole=found.undisturbed and prompts.undisturbed,
    )


def tools_beside(beside: ServerExtras, taken: Iterable[str]) -> list[ListedTool]:
    """Return the tools for what a server offers besides its own."""
    names = set(taken)
    return [*resource_tools(beside, names), *prompt_tools(beside.prompts, names)]


def request_for_tool(tool: str) -> type[ToolCallRequest]:
    """Return what makes a call of such a tool."""
    return PromptRequest if tool.startswith(PREFIX) else ResourceRequest


def resource_tools(beside: ServerExtras, taken: Iterable[str]) -> list[ListedTool]:
    """Return the tools by which resources are found and read; a server's own tools of these names stay its own."""
    if not beside.resources:
        return []
    declared = Declaration(safety=Safety.READ_ONLY, egress=beside.reaches_out)
    annotations = ToolAnnotations(read_only=True)
    options: Any = {"annotations": annotations, "declared": declared, "of_engine": True}
    listed = ListedTool(
        name=LIST,
        description="List the resources of this server, and the templates of addresses of further ones.",
        input_schema=_schema({"contains": _CONTAINS}),
        **options,
    )
    read = ListedTool(
        name=READ,
        description="Read a resource of this server by its address, such as one that a list or a resource_link names.",
        input_schema=_schema({"uri": _URI, "values": _VALUES}, "uri"),
        quiet=not beside.listed,
        **options,
    )
    found = [listed, read] if beside.listed else [read]
    own = set(taken)
    return [tool for tool in found if tool.name not in own]


_CONTAINS = {"type": "string", "maxLength": 200, "description": "Only those whose name or address contains this."}
_URI = {
    "type": "string",
    "minLength": 1,
    "maxLength": MOST_URI,
    "description": "The address, as the server writes it; or a template, with `values` for its variables.",
}
_VALUES = {
    "type": "object",
    "maxProperties": 50,
    "additionalProperties": {"type": ["string", "number", "boolean", "array"]},
    "description": "The values of the template's variables, by name.",
}


def _schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        **({"required": list(required)} if required else {}),
        "additionalProperties": False,
    }


class ResourceRequest(ToolCallRequest):
    """List or read the resources of a server, with the faults and questions that calls of its tools can meet."""

    async def _called(self, reply: InputResponse | None) -> CallToolResult | InputRequiredResult:
        if self._call.tool == LIST:
            return as_result(await self._listed(str(self._call.arguments.get("contains") or "")))
        uri = _address(self._call.arguments)
        if uri is None:
            return as_result({"refused": "uri: is not a template for these values; write the address"})
        result = await self._connection.client.session.read_resource(uri, **replying(reply))
        return as_result((result.meta or {}).get(WHOLE)) if isinstance(result, ReadResourceResult) else result

    async def _read(self, said: Any) -> Answer:
        if isinstance(said, dict) and "refused" in said:
            return refused(said["refused"])
        if self._call.tool == LIST:
            return Answer(success=True, data=said)
        return answer_of_contents(said)

    async def _listed(self, contains: str) -> dict[str, Any]:
        """Return all that is listed, each list as far as it is read."""
        found: dict[str, Any] = {}
        faults: list[Exception] = []
        for name, read in _lists(self._connection).items():
            entries: dict[str, Entry] = {}
            try:
                more = await read_into(entries, read, _address_of, MOST_ENTRIES)
            except MCPError as error:
                faults.append(error)
                continue
            wanted = [entry for entry in map(_shown, entries.values()) if contains.lower() in _words_of(entry)]
            found[name] = wanted
            if more:
                found[f"more_{name}"] = more
        if len(faults) == len(_LISTS):
            raise faults[0]
        return found


_LISTS = ("resources", "templates")


def _lists(connection: McpConnection) -> dict[str, ReadPage]:
    session = connection.client.session
    return {
        "resources": reader_of(session.list_resources, "resources", _is_usable),
        "templates": reader_of(session.list_resource_templates, "resourceTemplates", _is_usable),
    }


def _address_of(entry: Entry) -> str:
    found = entry.get("uri") or entry.get("uriTemplate")
    return found if isinstance(found, str) else ""


def _is_usable(entry: Any) -> bool:
    return isinstance(entry, dict) and 0 < len(_address_of(entry).encode(errors="replace")) <= MOST_URI


def _shown(entry: Entry) -> Entry:
    """Return an entry of a list as it is shown, with its address word for word."""
    told: Entry = {"uri" if entry.get("uri") else "template": _address_of(entry)}
    for name, most in _WORDS.items():
        if isinstance(said := entry.get(name), str) and said:
            told[name] = message_line(said, most)
    if isinstance(mime := entry.get("mimeType"), str):
        told["mime"] = message_line(mime, 100)
    if isinstance(size := entry.get("size"), int) and not isinstance(size, bool):
        told["bytes"] = size
    return json_safe(told)


def _words_of(entry: Entry) -> str:
    return " ".join(str(entry.get(name, "")) for name in ("uri", "template", *_WORDS)).lower()


def _address(arguments: Mapping[str, Any]) -> str | None:
    """Return the address to read; None for a template that cannot be filled."""
    uri, values = str(arguments["uri"]), arguments.get("values")
    if not values:
        return uri
    try:
        return UriTemplate.parse(uri).expand({name: _text(value) for name, value in dict(values).items()})
    except (ValueError, TypeError, KeyError):
        return None


def _text(value: Any) -> Any:
    match value:
        case list():
            return [_text(item) for item in value]
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def with_reader(answer: Answer, provider: str, listed: Iterable[ListedTool]) -> Answer:
    """Return an answer in which each link to a resource names the tool that reads it, where its server has one."""
    if not any(tool.of_engine and tool.name == READ for tool in listed):
        return answer
    reader = f"{provider}.{READ}"

    def named(part: Any) -> Any:
        is_link = isinstance(part, dict) and part.get("type") == "resource_link"
        return {**part, "read_with": reader} if is_link else part

    match answer.data:
        case list() as parts:
            return replace(answer, data=[named(part) for part in parts])
        case dict() as fields if isinstance(fields.get(BESIDE), list):
            return replace(answer, data={**fields, BESIDE: [named(part) for part in fields[BESIDE]]})
        case _:
            return answer


def answer_of_contents(said: Any) -> Answer:
    """Return what a resource holds: a single text as a string, bytes as files, and several parts as a list."""
    parts = [_as_text(part) for part in parts_of(said.get("contents") if isinstance(said, dict) else None)]
    if not parts:
        return refused("the server answered without contents")
    label = label_of([said.get("_meta"), *(part.get("_meta") for part in parts)])
    if len(parts) == 1 and (text := text_in(parts[0])) is not None:
        data = parsed(text)
        return Answer(success=True, data=data, label=label, scalar=isinstance(data, str))
    return replace(answer_of({"content": [{"type": "resource", "resource": part} for part in parts]}), label=label)


def _as_text(part: Entry) -> Entry:
    """Return bytes that are text as text, whichever way the server sends it."""
    mime, blob = part.get("mimeType"), part.get("blob")
    is_text = isinstance(mime, str) and mime.lower().startswith(_TEXTS)
    if text_in(part) is not None or not isinstance(blob, str) or not is_text:
        return part
    try:
        return {**part, "text": decoded(blob, mime).decode()}
    except ValueError:
        return part
