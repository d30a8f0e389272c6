"""Check a program that the model wrote, and bundle it with everything that its run depends on."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from activities.programs.tracing import literals_of
from activities.resources import facts_of
from backstay.errors import ArgumentsInvalid
from backstay.provenance.lookup import Lookup
from backstay.tools.program import Program
from sandbox.images.image import importable
from sandbox.programs.check import check_program
from store.blobs.shown import ShownBlobs
from toolbox.bindings.package import bindings_of, signatures_of
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition

MOST_TOOLS = 200
MOST_SOURCE_BYTES = 65_536


async def store_program(
    blobs: ShownBlobs,
    catalog: Catalog,
    visible: Sequence[str],
    source: str,
    *,
    image: str,
    seed: str,
    now: float,
    chosen: Literal["", "python", "data"] = "",
    markers: bool = False,
    lookup: Lookup | None = None,
) -> str:
    """Store a program that may call the visible tools and their neighbours, and return its ref.

    The catalog is taken as it is now; a tool that changes later is noticed when it is called. Raises ArgumentsInvalid
    for a program that cannot work. With a `lookup`, its calls say where their arguments came from; `chosen`
    is the image that a profile names.
    """
    definitions = _callable(catalog, visible)
    await _demand_sound(source, definitions, image)
    program = Program(
        source=source,
        bindings=await asyncio.to_thread(bindings_of, definitions),
        tools={tool.name: facts_of(catalog, tool) for tool in definitions},
        parameters={tool.name: tool.parameters for tool in definitions},
        seed=seed,
        now=now,
    )
    program = program.model_copy(update={"image": chosen, "markers": markers})
    if commands := {tool.name: dict(tool.commands) for tool in definitions if tool.commands is not None}:
        program = program.model_copy(update={"commands": commands})
    if lookup is not None:
        literals = await asyncio.to_thread(literals_of, source, lookup)
        program = program.model_copy(update={"traced": True, "literals": literals})
    return await blobs.put_json(program.model_dump(mode="json", exclude_unset=True))


async def _demand_sound(source: str, definitions: list[Definition], image: str) -> None:
    """Raise ArgumentsInvalid for a program that cannot work."""
    if len(source.encode()) > MOST_SOURCE_BYTES:
        raise ArgumentsInvalid(f"code: longer than {MOST_SOURCE_BYTES} bytes; split the work")
    faults = await asyncio.to_thread(
        check_program,
        source,
        functions=signatures_of(definitions),
        importable=importable(image),
        tools=[tool.name for tool in definitions],
    )
    if faults:
        raise ArgumentsInvalid("code: " + "; ".join(faults))


def _callable(catalog: Catalog, visible: Sequence[str]) -> list[Definition]:
    """Return the tools of every provider of which the model sees a tool, the visible ones first."""
    found = {name: tool for name, tool in catalog.definitions.items() if not tool.hidden}
    first = [name for name in visible if name in found]
    providers = {found[name].provider for name in first}
    rest = sorted(name for name, tool in found.items() if tool.provider in providers and name not in first)
    return [found[name] for name in [*first, *rest][:MOST_TOOLS]]
