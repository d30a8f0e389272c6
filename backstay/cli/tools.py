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
    async with _catalog(user) as catalog:
        listed = sorted(catalog.definitions.values(), key=lambda one: one.name)
        rows = [
            {
                "tool": one.name,
                "safety": one.tool.safety.value,
                "undo": one.tool.undo,
                "description": one.description,
            }
            for one in listed
        ]
        _warn(terminal, catalog)
    if output == "json":
        terminal.result_json(rows)
    else:
        for row in rows:
            undo = f"undo: {row['undo']}" if row["undo"] else ""
            terminal.result(f"{row['tool']:<32} {row['safety']:<16} {undo}")
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
    async with _catalog(user) as catalog:
        hits = catalog.search(query, detail_level, limit)
        _warn(terminal, catalog)
    if output == "json":
        terminal.result_json([hit.plain() for hit in hits])
    else:
        for hit in hits:
            terminal.result(f"{hit.tool:<32} {hit.short_description}")
            terminal.result(f"    {hit.parameters}")
    return 0


@asynccontextmanager
async def _catalog(user: str) -> AsyncGenerator[Any]:
    settings = Settings.load()
    quiet(settings)
    jail = room("sandbox.command_jail").CommandJail(nsjail=settings.nsjail, home=settings.home, image=settings.image)
    async with room("toolbox.toolbox").open_toolbox(
        settings.toolbox, environment=settings.environment, home=settings.home, confinement=jail
    ) as toolbox:
        yield await toolbox.catalog(user)


def _warn(terminal: Terminal, catalog: Any) -> None:
    for name, reason in catalog.unavailable.items():
        terminal.say(f"{name} is not available: {reason}", "yellow")
    for problem in catalog.problems:
        terminal.say(problem, "yellow")
