"""The functions that a model may call, as Chat Completions describes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from activities.model.planning import FUNCTIONS as PLANNING
from activities.model.planning import NAMES as PLANNING_NAMES
from activities.model.planning import may_read
from backstay.plans.definition import PlanDefinition
from toolbox.catalog.catalog import Catalog


def _function(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _object(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}

FINISH, PROGRAM = "finish", "run_program"
BUILT_IN: tuple[dict[str, Any], ...] = (
    _function(
        "search_tools",
        "Find tools by what they do; what is found becomes callable.",
        _object(
            ["query"],
            query=_TEXT,
            detail_level={"type": "string", "enum": ["summary", "full"]},
            limit={"type": "integer", "minimum": 1, "maximum": 40},
        ),
    ),
    _function(
        "read_result",
        "Read more of an earlier answer: `path` such as `invoices.0.amount`, `offset` and `limit` for lists and texts.",
        _object(["ref"], ref=_TEXT, path=_TEXT, offset=_COUNT, limit=_COUNT),
    ),
    _function(
        PROGRAM,
        "Run a Python program that calls tools: for loops, many calls, filters and sums. `code` is the body of "
        "`async def main()`; what it returns is the answer, as JSON. The tool function `mail__send_email` is "
        "`await mail.send_email(to=..., subject=...)` there, with keywords only. It returns the tool's whole answer, "
        "or raises ToolError, or OutcomeSettled: done, but no answer. `await result(ref)` reads an earlier answer "
        "whole. Use asyncio.gather for independent calls: they are asked about together. Much of the standard library "
        "is there; network, files outside /tmp, threads and processes are not.",
        _object(["code"], code=_TEXT, reason=_TEXT),
    ),
    _function(
        "ask_person", "Ask a person a question that only a person can answer.", _object(["question"], question=_TEXT)
    ),
    _function(
        FINISH,
        "End the task.",
        _object(["summary"], summary=_TEXT, outputs={"type": "object"}, success={"type": "boolean"}),
    ),
)
NAMES = frozenset(function["function"]["name"] for function in BUILT_IN) | PLANNING_NAMES


def functions_for(
    catalog: Catalog,
    visible: Sequence[str],
    *,
    programs: bool = False,
    planning: bool = False,
    offered: Mapping[str, PlanDefinition] | None = None,
    finish: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the built-in functions and those of the visible tools, in a stable order.

    `finish`: what is offered instead of the function of that name. While a model only plans, the tools are those that
    read its workspace.
    """
    programs = programs and not planning
    built_in = [function for function in BUILT_IN if programs or function["function"]["name"] != PROGRAM]
    if finish is not None:
        built_in = [finish if function["function"]["name"] == FINISH else function for function in built_in]
    tools = [catalog.definitions[name] for name in visible if name in catalog.definitions]
    if planning:
        tools = [definition for definition in catalog.definitions.values() if may_read(definition)]
    return [
        *built_in,
        *PLANNING,
        *(
            _function(name, about.description, about.parameters)
            for name, definition in (offered or {}).items()
            if (about := definition.offered()) is not None
        ),
        *(_function(tool.function, tool.description[:1024], tool.parameters or _object()) for tool in tools),
    ]
