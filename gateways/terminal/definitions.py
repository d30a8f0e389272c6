"""The commands `definitions ...`: list, show and check the plans that are kept in files; and start a run of one."""

import asyncio
from typing import Annotated, Any

from cyclopts import Parameter

from backstay.canonical import canonical
from backstay.errors import TaskInvalid
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.terminal.exit_codes import DONE, USAGE
from gateways.terminal.flags import Output, User
from gateways.terminal.session import silence_logs
from gateways.terminal.terminal import Terminal

Prompts = Annotated[
    bool, Parameter(negative="", help="List the prompts of servers, too; starts the servers in toolbox.json.")
]
DefinitionId = Annotated[str, Parameter(help="ID of the definition.")]


async def list_definitions(*, prompts: Prompts = False, user: User = "singleton", output: Output = "text") -> int:
    """List the plans that are kept in the folder of definitions, and the prompts of servers if wanted."""
    settings, terminal = Settings.load(), Terminal()
    found = await found_in(settings)
    rows = [_row(found, definition) for _, definition in sorted(found.by_id.items())]
    if not rows:
        terminal.say(f"there are no definitions in {found.folder}", "dim")
    if prompts:
        rows += [_prompt_row(name, tool) for name, tool in (await _prompts(settings, user)).items()]
    for fault in found.faults.values():
        terminal.say(fault, "yellow")
    terminal.results(output, rows, [f"{row['id']:<32} {row['title']}" for row in rows])
    return DONE


async def show(definition: DefinitionId, *, output: Output = "text") -> int:
    """Show one definition: the input that it takes, its steps, and how models are offered it."""
    terminal, found = Terminal(), await found_in(Settings.load())
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
    terminal, found = Terminal(), await found_in(Settings.load())
    good = [{"file": file, "id": name, "fault": None} for name, file in sorted(found.files.items())]
    bad = [{"file": file, "id": None, "fault": fault} for file, fault in sorted(found.faults.items())]
    lines = [f"{row['file']}: {row['id']} can be used" for row in good] + [str(row["fault"]) for row in bad]
    terminal.results(output, [*good, *bad], lines)
    if not lines:
        terminal.say(f"there are no definitions in {found.folder}", "yellow")
    return USAGE if bad else DONE


async def task_of(settings: Settings, name: str, given: dict[str, Any] | None, user: str) -> dict[str, Any]:
    """Return the fields of a task that carries out a definition, or what a prompt of a server says.

    Raises TaskInvalid for an unknown one or bad input.
    """
    from activities.definitions import input_fault

    if ":" in name:
        return await _task_of_prompt(settings, name, given or {}, user)
    known = (await found_in(settings)).named(name)
    fault = await asyncio.to_thread(input_fault, known, given or {})
    if fault is not None:
        raise TaskInvalid(f"--input: {fault}; see: backstay definitions show {known.id}")
    return known.task(given or {})


async def _task_of_prompt(settings: Settings, name: str, given: dict[str, Any], user: str) -> dict[str, Any]:
    """Return a task whose model reads a prompt first, whose words stay those of its server."""
    known = await _prompts(settings, user)
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise TaskInvalid(
            f"definition: no server has a prompt {one_line(name, 80)!r}; there are: {one_line(listed, 400)}"
        )
    tool = known[name]
    if (fault := await tool.check(given)) is not None:
        raise TaskInvalid(f"--input: {fault}")
    arguments = canonical(given)
    return {"text": f"Read the prompt of a server by {tool.name}, with the arguments {arguments}, and do what it says."}


async def _prompts(settings: Settings, user: str) -> dict[str, Any]:
    """Return the tools that read prompts of servers, by the names of these."""
    from opening import open_toolbox
    from toolbox.mcp.prompts import PREFIX

    silence_logs(settings)
    async with open_toolbox(settings) as toolbox:
        catalog = await toolbox.catalog(user)
    return {
        f"{tool.provider}:{tool.mcp_name.removeprefix(PREFIX)}": tool
        for tool in catalog.definitions.values()
        if tool.of_engine and tool.mcp_name.startswith(PREFIX)
    }


def _prompt_row(name: str, tool: Any) -> dict[str, Any]:
    known = dict.fromkeys(("version", "domain", "steps", "file"))
    return {"id": name, "title": one_line(tool.description, 100), "offer": True, **known}


async def found_in(settings: Settings) -> Any:
    """Return what the folder of definitions holds."""
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
