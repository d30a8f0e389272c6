"""Make a program that the model wrote ready to run: check it, and bundle it with all that its run depends on."""

import asyncio
from collections.abc import Sequence

from activities.resources import facts_of
from backstay.canonical import digest_of
from backstay.errors import ArgumentsInvalid
from backstay.program import Program
from sandbox.images.image import importable
from sandbox.programs.check import check_program
from store.blobs.shown import ShownBlobs
from toolbox.bindings.package import bindings_of, signatures_of
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition

MOST_TOOLS = 200
MOST_SOURCE_BYTES = 65_536


class ProgramWriter:
    """Store programs for one run, with the tools that its model can see."""

    def __init__(self, blobs: ShownBlobs, catalog: Catalog, *, run: str, image: str, now: float) -> None:
        """Take the catalog as it is now; a later change of a tool is noticed when it is called."""
        self._blobs = blobs
        self._catalog = catalog
        self._run = run
        self._image = image
        self._now = now

    async def write(self, visible: Sequence[str], source: str, call_id: str) -> str:
        """Return the ref of the stored program; raises ArgumentsInvalid for one that cannot work."""
        if len(source.encode()) > MOST_SOURCE_BYTES:
            raise ArgumentsInvalid(f"code: longer than {MOST_SOURCE_BYTES} bytes; split the work")
        definitions = self._declared(visible)
        faults = await asyncio.to_thread(
            check_program, source, functions=signatures_of(definitions), importable=importable(self._image)
        )
        if faults:
            raise ArgumentsInvalid("code: " + "; ".join(faults))
        program = Program(
            source=source,
            bindings=await asyncio.to_thread(bindings_of, definitions),
            tools={one.name: facts_of(self._catalog, one) for one in definitions},
            parameters={one.name: one.parameters for one in definitions},
            seed=digest_of([self._run, call_id, source])[:32],
            now=self._now,
        )
        return await self._blobs.put_json(program.model_dump(mode="json", exclude_unset=True))

    def _declared(self, visible: Sequence[str]) -> list[Definition]:
        """Return the tools of every provider of which the model sees a tool, the visible ones first."""
        found = {name: one for name, one in self._catalog.definitions.items() if not one.hidden}
        first = [name for name in visible if name in found]
        providers = {found[name].provider for name in first}
        rest = sorted(name for name, one in found.items() if one.provider in providers and name not in first)
        return [found[name] for name in [*first, *rest][:MOST_TOOLS]]
