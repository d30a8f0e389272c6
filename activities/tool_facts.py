"""What a workflow is told of a tool, so that it can rule on calls without its schema."""

from typing import Any

from backstay.asks import OfRun
from backstay.errors import ArgumentsInvalid
from backstay.tool import Tool
from toolbox.catalog import Catalog
from toolbox.definition import Definition
from toolbox.provider import Workplace


def facts_of(catalog: Catalog, definition: Definition) -> Tool:
    """Return what the workflow must know of a tool in order to rule on it."""
    undo = catalog.undo_of(definition)
    by_id = catalog.undo_by_effect_id_of(definition)
    facts = definition.tool.model_dump(exclude_defaults=True) | {"safety": definition.tool.safety}
    if (target := undo or by_id) is not None:
        facts["undo_tool"] = target.name
    if by_id is not None:
        facts["undo_by_effect_id"] = True
    # Only what is set is passed on, so that defaults do not reach history.
    return Tool.model_validate(facts)


def workplace_of(ask: OfRun) -> Workplace | None:
    """Return where the calls of a run work, or None when it was given no workspace."""
    return Workplace(run=ask.run, workspace=ask.workspace, writable=True) if ask.workspace else None


def demand_valid(definition: Definition, arguments: dict[str, Any]) -> None:
    """Raise ArgumentsInvalid when the arguments do not fit the tool's schema."""
    fault = definition.validate(arguments)
    if fault is not None:
        raise ArgumentsInvalid(f"{definition.name}: {fault}")
