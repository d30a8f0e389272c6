"""Offer the prompts of a server as tools that only read: their answers are the server's words, and no orders."""

from collections.abc import Iterable
from typing import Any

from mcp.types import CallToolResult, GetPromptResult, InputRequiredResult

from backstay.shown import message_line
from backstay.tools.tool import Safety
from toolbox.mcp.connection import McpConnection
from toolbox.mcp.paging import ReadPage, reader_of
from toolbox.mcp.streams import WHOLE
from toolbox.mcp.tool_call import ToolCallRequest, as_result, replying
from toolbox.providers.answer import Answer, answer_of, refused
from toolbox.providers.declaration import Declaration
from toolbox.providers.elicitation import InputResponse
from toolbox.providers.json_safe import as_written, json_safe
from toolbox.providers.listing import ListedTool, ToolAnnotations

PREFIX = "prompt_"
"""What is before the name of a prompt in that of its tool."""
MOST_PROMPTS = 100
"""Of one server; further ones are not offered."""
_WORDS = 500
_ARGUMENTS = 50


def prompts_of(connection: McpConnection) -> ReadPage:
    """Return what reads the prompts that a server lists."""
    return reader_of(connection.client.session.list_prompts, "prompts", lambda entry: bool(name_of_prompt(entry)))


def name_of_prompt(entry: Any) -> str:
    """Return the name of a prompt; none where it cannot be used."""
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else ""


def prompt_tools(prompts: Iterable[dict[str, Any]], taken: Iterable[str]) -> list[ListedTool]:
    """Return a tool for each prompt; a server's own tools of these names stay its own."""
    names = set(taken)
    found: dict[str, ListedTool] = {}
    for prompt in prompts:
        name = f"{PREFIX}{prompt['name']}"
        if name not in names:
            found.setdefault(name, _tool(name, prompt))
    return list(found.values())


def _tool(name: str, prompt: dict[str, Any]) -> ListedTool:
    said = next((prompt[key] for key in ("description", "title") if isinstance(prompt.get(key), str)), "")
    listed = prompt.get("arguments")
    given = listed if isinstance(listed, list) else []
    arguments = [
        argument for argument in given if isinstance(argument, dict) and isinstance(argument.get("name"), str)
    ][:_ARGUMENTS]
    properties = {
        str(argument["name"]): {
            "type": "string",
            "description": message_line(str(argument.get("description") or ""), _WORDS),
        }
        for argument in arguments
    }
    required = [str(argument["name"]) for argument in arguments if argument.get("required") is True]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return ListedTool(
        name=name,
        description=f"Read a prompt that this server has prepared. It says of it: {message_line(str(said), _WORDS)}",
        input_schema=json_safe(schema | ({"required": required} if required else {})),
        annotations=ToolAnnotations(read_only=True),
        declared=Declaration(safety=Safety.READ_ONLY, egress=False),
        of_engine=True,
    )


class PromptRequest(ToolCallRequest):
    """Read one prompt, with the faults and questions that calls of tools can meet."""

    async def _called(self, reply: InputResponse | None) -> CallToolResult | InputRequiredResult:
        given = {name: str(as_written(value)) for name, value in self._call.arguments.items()}
        name = self._call.tool.removeprefix(PREFIX)
        result = await self._connection.client.session.get_prompt(name, given, **replying(reply))
        return as_result((result.meta or {}).get(WHOLE)) if isinstance(result, GetPromptResult) else result

    async def _read(self, said: Any) -> Answer:
        messages = said.get("messages") if isinstance(said, dict) else None
        parts: list[Any] = []
        for message in messages if isinstance(messages, list) else ():
            content = message.get("content") if isinstance(message, dict) else None
            parts += content if isinstance(content, list) else [content]
        if not any(parts):
            return refused("the server answered without messages")
        return answer_of({"content": parts, "_meta": said.get("_meta")})
