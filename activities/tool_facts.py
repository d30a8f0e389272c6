"""What a workflow is told of a tool, so that it can rule on calls without its schema."""

from backstay.tool import Tool
from toolbox.catalog import Catalog
from toolbox.definition import Definition


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
