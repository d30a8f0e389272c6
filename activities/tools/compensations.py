"""Prepare what takes an effect back, from what its tool answered."""

from typing import Any

from activities.records import Records
from activities.resources import demand_valid
from backstay.canonical import canonical
from backstay.errors import ArgumentsInvalid
from backstay.shown import one_line
from store.effects.types import BoundUndo
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.configuration.template import render


class Compensations:
    """Bind compensations to the effects that they take back."""

    def __init__(self, records: Records) -> None:
        """Seal their arguments in the store."""
        self.records = records

    async def bound(
        self, run: str, catalog: Catalog, definition: Definition, variables: dict[str, Any]
    ) -> BoundUndo | None:
        """Render the compensation; one that cannot be rendered says that the effect cannot be undone."""
        declared, found = definition.declaration.undo, catalog.undo_of(definition)
        if declared is None or found is None:
            return None
        try:
            arguments = render(declared.arguments, variables)
            demand_valid(found, arguments)
        except ArgumentsInvalid:
            return None
        shown = await self.records.show(run, arguments, found.provider)
        line = f"{found.name}({', '.join(f'{key}={canonical(value)}' for key, value in shown.payload.items())})"
        return BoundUndo(
            tool=found.name,
            sealed_ref=await self.records.store.blobs.of(run).seal_json(arguments),
            shown=one_line(line, 300)[0],
        )
