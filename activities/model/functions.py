"""The functions that a model may call, as Chat Completions describes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from activities.model.planning import ALIASES, may_read
from activities.model.schemas import brief
from backstay.data_files import data_beside
from backstay.plans.definition import PlanDefinition
from toolbox.catalog.catalog import Catalog


def function(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Describe a function to the model."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


FINISH, PROGRAM = "finish", "run_program"
BUILT_IN, READING, PLANNING, MEMORY, DELEGATION = (
    [function(row["name"], row["description"], _object(row["required"], **row["properties"])) for row in rows]
    for rows in data_beside(__file__).values()
)
_OWN: dict[str, dict[str, Any]] = {
    row["function"]["name"]: row["function"]["parameters"]
    for row in (*BUILT_IN, *READING, *PLANNING, *MEMORY, *DELEGATION)
}
SCHEMAS: Mapping[str, dict[str, Any]] = _OWN | {alias: _OWN[name] for alias, name in ALIASES.items()}
NAMES = frozenset(SCHEMAS)


def functions_for(
    catalog: Catalog,
    visible: Sequence[str],
    *,
    programs: bool = False,
    planning: bool = False,
    plans: bool = False,
    reading: bool = False,
    memory: bool = False,
    delegation: bool = False,
    offered: Mapping[str, PlanDefinition] | None = None,
    finish: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the built-in functions and those of the visible tools, in a stable order.

    `finish`: what is offered instead of the function of that name. With `plans`, the model may propose plans; with
    `reading`, there is more to read of what it was told; with `memory`, it may recall earlier runs; with `delegation`,
    it may give parts of its task to sub-runs. While a model only plans, the tools are those that read its workspace.
    """
    programs = programs and not planning
    built_in = [row for row in BUILT_IN if programs or row["function"]["name"] != PROGRAM]
    if finish is not None:
        built_in = [finish if row["function"]["name"] == FINISH else row for row in built_in]
    tools = [catalog.definitions[name] for name in visible if name in catalog.definitions]
    if planning:
        tools = [definition for definition in catalog.definitions.values() if may_read(definition)]
    return [
        *built_in,
        *(PLANNING if plans or planning else ()),
        *(MEMORY if memory else ()),
        *(DELEGATION if delegation and not planning else ()),
        *(
            function(name, about.description, about.parameters)
            for name, definition in (offered or {}).items()
            if (about := definition.offered()) is not None
        ),
        *(function(tool.function, tool.offered, brief(tool.parameters)) for tool in tools),
        # Last, because it comes later: the part before it stays the same.
        *(READING if reading else ()),
    ]
