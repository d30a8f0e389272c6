"""The commands that look at the tools."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

from backstay.cli.flags import Output, User
from backstay.cli.session import quiet
from backstay.cli.terminal import Terminal
from backstay.library import room
from backstay.settings import Settings


async def list_tools(*, user: User = "singleton", output: Output = "text") -> int:
    """List every tool that a user's runs may call; starts the servers of toolbox.json to ask them."""
    terminal = Terminal()
    async with open_builder() as builder:
        manifest = await builder.manifest(user)
    say_what_is_missing(terminal, manifest)
    rows = [
        {
            "tool": tool.name,
            "safety": tool.safety.value,
            "undo": tool.undo,
            "description": tool.description,
            "available": manifest.reason(tool) is None,
            "reason": manifest.reason(tool),
        }
        for tool in manifest.tools.values()
    ]
    if output == "json":
        terminal.result_json(rows)
    else:
        for row in rows:
            undo = f"undo: {row['undo']}" if row["undo"] else ""
            reason = f"[not available: {row['reason']}]" if row["reason"] else ""
            terminal.result(f"{row['tool']:<32} {row['safety']:<16} {' '.join(filter(None, (reason, undo)))}")
    return 0


async def search(
    query: str,
    *,
    detail_level: Literal["summary", "full"] = "summary",
    limit: int = 10,
    user: User = "singleton",
    output: Output = "text",
) -> int:
    """Search the tools as a run's model does.

    Parameters
    ----------
    query
        What the tool should do.
    """
    terminal = Terminal()
    settings = Settings.load()
    quiet(settings)
    async with _toolbox(settings) as toolbox:
        catalog = await toolbox.catalog(user)
        hits = catalog.search(query, detail_level, limit)
        for name, reason in catalog.unavailable.items():
            terminal.say(f"{name} is not available: {reason}", "yellow")
        for problem in catalog.problems:
            terminal.say(problem, "yellow")
    if output == "json":
        terminal.result_json([hit.plain() for hit in hits])
    else:
        for hit in hits:
            terminal.result(f"{hit.tool:<32} {hit.short_description}")
            terminal.result(f"    {hit.parameters}")
    return 0


async def show(name: str, *, user: User = "singleton", output: Output = "text") -> int:
    """Show all of one tool: what it does and takes, how dangerous it is, how it is taken back.

    Parameters
    ----------
    name
        The tool, as provider.tool.
    """
    terminal = Terminal()
    async with open_builder() as builder:
        manifest = await builder.manifest(user)
    say_what_is_missing(terminal, manifest)
    tool = manifest.find(name)
    reason = manifest.reason(tool)
    if output == "json":
        terminal.result_json(tool.plain() | {"available": reason is None, "reason": reason})
        return 0
    for line in _lines(manifest, tool):
        terminal.result(line)
    return 0


@asynccontextmanager
async def open_builder() -> AsyncGenerator[Any]:
    """Open the toolbox with the operator's policy, and what makes manifests of it."""
    settings = Settings.load()
    quiet(settings)
    policy = room("worker").read_policy(settings.policy)
    async with _toolbox(settings) as toolbox:
        yield room("toolbox.manifest.builder").ToolboxBuilder(
            toolbox, settings.home, policy=policy, secrets=settings.secrets()
        )


def say_what_is_missing(terminal: Terminal, manifest: Any) -> None:
    """Tell people what cannot be used and why."""
    for provider in manifest.providers.values():
        if not provider.available:
            terminal.say(f"{provider.name} is not available: {provider.reason}", "yellow")
    for problem in manifest.problems:
        terminal.say(problem, "yellow")


@asynccontextmanager
async def _toolbox(settings: Settings) -> AsyncGenerator[Any]:
    jail = room("sandbox.isolation.command_jail").CommandJail(
        nsjail=settings.nsjail, home=settings.home, image=settings.image
    )
    async with room("toolbox.toolbox").open_toolbox(
        settings.toolbox, environment=settings.environment, home=settings.home, confinement=jail
    ) as toolbox:
        yield toolbox


def _lines(manifest: Any, tool: Any) -> list[str]:
    reason = manifest.reason(tool)
    facts = {
        "tool": tool.name,
        "provider": f"{tool.provider} ({manifest.providers[tool.provider].kind})",
        "available": "yes" if reason is None else f"no: {reason}",
        "safety": tool.safety.value,
        "undo": tool.undo or ("" if tool.safety.level == 0 else "none: it cannot be taken back"),
        "verify": tool.verify,
        "program": tool.binding,
        "function": tool.function,
        "file": tool.path,
        "definition": tool.definition,
    }
    arguments = [
        f"    {one.argument:<20} {one.type} ({'required' if one.required else 'optional'}"
        f"{f', default {one.default}' if one.default else ''})  {' '.join(one.description.split())}".rstrip()
        for one in tool.arguments
    ]
    return [
        *(f"{what:<12} {fact}" for what, fact in facts.items() if fact),
        *(["arguments"] if arguments or tool.others else []),
        *arguments,
        *(["    and others"] if tool.others else []),
        *(["description", *(f"    {line}" for line in tool.description.splitlines())] if tool.description else []),
    ]
