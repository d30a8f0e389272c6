"""The commands `definitions ...`: list, show and check the plans that are kept in files; and start a run of one."""

import asyncio
from typing import Annotated, Any

from cyclopts import Parameter

from backstay.errors import TaskInvalid
from backstay.settings import Settings
from gateways.terminal.exit_codes import DONE, USAGE
from gateways.terminal.flags import Output
from gateways.terminal.terminal import Terminal

DefinitionId = Annotated[str, Parameter(help="ID of the definition.")]


async def list_definitions(*, output: Output = "text") -> int:
    """List the plans that are kept in the folder of definitions."""
    terminal, found = Terminal(), await _found(Settings.load())
    rows = [_row(found, definition) for _, definition in sorted(found.by_id.items())]
    if not rows:
        terminal.say(f"there are no definitions in {found.folder}", "dim")
    for fault in found.faults.values():
        terminal.say(fault, "yellow")
    terminal.results(output, rows, [f"{row['id']:<32} {row['title']}" for row in rows])
    return DONE


async def show(definition: DefinitionId, *, output: Output = "text") -> int:
    """Show one definition: the input that it takes, its steps, and how models are offered it."""
    terminal, found = Terminal(), await _found(Settings.load())
    known = found.named(definition)
    offered = known.offered()
    lines = [f"{known.id}, version {known.version}: {known.line}", *_input_lines(known.input)]
    lines += [
        f"{number}. {step.tool} {step.arguments} {step.summary}".rstrip() for number, step in enumerate(known.steps)
    ]
    lines += [f"offered to models as {offered.name}: {offered.description}"] if offered else []
    told = None if offered is None else offered._asdict()
    terminal.results(output, known.plain() | {"file": found.files[known.id], "offered": told}, lines)
    return DONE


async def validate(*, output: Output = "text") -> int:
    """Check every file in the folder of definitions; the exit code is 2 if one cannot be used."""
    terminal, found = Terminal(), await _found(Settings.load())
    good = [{"file": file, "id": name, "fault": None} for name, file in sorted(found.files.items())]
    bad = [{"file": file, "id": None, "fault": fault} for file, fault in sorted(found.faults.items())]
    lines = [f"{row['file']}: {row['id']} can be used" for row in good] + [str(row["fault"]) for row in bad]
    terminal.results(output, [*good, *bad], lines)
    if not lines:
        terminal.say(f"there are no definitions in {found.folder}", "yellow")
    return USAGE if bad else DONE


async def task_of(settings: Settings, name: str, given: dict[str, Any] | None) -> dict[str, Any]:
    """Return the fields of a task that carries out a definition; raises TaskInvalid for an unknown one or bad input."""
    from activities.definitions import input_fault

    known = (await _found(settings)).named(name)
    fault = await asyncio.to_thread(input_fault, known, given or {})
    if fault is not None:
        raise TaskInvalid(f"--input: {fault}; see: backstay definitions show {known.id}")
    return known.task(given or {})


async def _found(settings: Settings) -> Any:
    from activities.definitions import read_definitions

    return await asyncio.to_thread(read_definitions, settings.definitions)


def _row(found: Any, definition: Any) -> dict[str, Any]:
    return {
        "id": definition.id,
        "version": definition.version,
        "title": definition.line,
        "domain": definition.domain,
        "steps": len(definition.steps),
        "offer": definition.offer,
        "file": found.files[definition.id],
    }


def _input_lines(schema: dict[str, Any]) -> list[str]:
    """Return the fields of the input, one a line."""
    required = schema.get("required", ())
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ["input: any object"]
    lines: list[str] = []
    for name, part in properties.items():
        known = part if isinstance(part, dict) else {}
        words = [
            str(known.get("type", "any")),
            "" if name in required else "optional",
            str(known.get("description", "")),
        ]
        lines.append(f"input.{name}: {', '.join(word for word in words if word)}")
    return lines
