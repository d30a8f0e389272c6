"""The commands `tools ...`: list, search, show and document the tools, refresh their manifest, accept changed ones."""

import difflib
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from backstay.errors import SettingsInvalid
from backstay.policies.glob import matches
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings
from backstay.tools.own_server import OWN
from backstay.tools.tool import Safety
from gateways.terminal.flags import Limit, Output, User
from gateways.terminal.session import account_name, open_store, require_store, silence_logs
from gateways.terminal.terminal import Terminal

_WIDTH = 500
_UNSEEN = (
    "only a run of a user of this server sees its tools; when a run asks about a call of a changed one, look at that "
    "call, and approve it to accept the tool"
)
"""Why this command knows nothing of the tools of a server at which users sign in, or that a user has added."""
Folder = Annotated[Path | None, Parameter(help="Folder for one file per provider, instead of stdout.")]


async def list_tools(*, user: User = "singleton", output: Output = "text") -> None:
    """List every tool that a user's runs may call; starts the servers in toolbox.json to ask them."""
    from toolbox.catalog.capabilities import capabilities_of, index_lines

    terminal = Terminal()
    manifest = await _manifest(terminal, user)
    rows: list[dict[str, Any]] = [
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
    terminal.results(output, rows, map(_row, rows))
    for line in index_lines(capabilities_of((tool.provider, tool.safety) for tool in manifest.tools.values())):
        terminal.say(line, "dim")
    if not rows:
        terminal.say("there are no tools; add a server with: backstay toolbox add NAME -- COMMAND", "yellow")
    elif all(row["safety"] == Safety.RESTRICTED_WRITE for row in rows):
        terminal.say("no tool has a safety class, so each call asks; let classes be proposed: backstay toolbox propose")


async def search(
    query: str,
    *,
    detail_level: Literal["summary", "full"] = "summary",
    limit: Limit = 10,
    user: User = "singleton",
    output: Output = "text",
) -> None:
    """Search the tools as the model of a run does.

    Parameters
    ----------
    query
        What the tool should do.
    detail_level
        How much to show of each tool.
    limit
        The most tools to show.
    """
    from opening import open_toolbox

    terminal, settings = Terminal(), Settings.load()
    silence_logs(settings)
    async with open_toolbox(settings) as toolbox:
        catalog = await toolbox.catalog(user)
    hits = catalog.search(query, detail_level, limit)
    for name, reason in catalog.unavailable.items():
        terminal.say(f"{name} is not available: {reason}", "yellow")
    for problem in catalog.problems:
        terminal.say(problem, "yellow")
    lines = [line for hit in hits for line in (f"{hit.tool:<32} {hit.short_description}", f"    {hit.parameters}")]
    terminal.results(output, [hit.plain() for hit in hits], lines)


async def show(name: str, *, user: User = "singleton", output: Output = "text") -> None:
    """Show one tool: what it does, its arguments, how dangerous it is, and how it is undone.

    Parameters
    ----------
    name
        The tool, as provider.tool.
    """
    terminal = Terminal()
    manifest = await _manifest(terminal, user)
    tool = manifest.find(name)
    reason = manifest.reason(tool)
    terminal.results(output, tool.plain() | {"available": reason is None, "reason": reason}, _lines(manifest, tool))


async def refresh(*, user: User = "singleton") -> None:
    """Ask every server for its tools, write manifest and bindings to BACKSTAY_HOME, and print the folder."""
    terminal = Terminal()
    async with _open_builder() as builder:
        refreshed = await builder.refresh_manifest(user)
    manifest = refreshed.manifest
    _warn(terminal, manifest)
    state = "written" if refreshed.changed else "unchanged"
    terminal.say(f"{state}: {len(manifest.tools)} tools, version {manifest.version}")
    terminal.result(str(refreshed.folder))


async def docs(*, user: User = "singleton", output_folder: Folder = None) -> None:
    """Write documentation of the tools as Markdown, one page per provider."""
    from toolbox.manifest.docs import tool_docs

    terminal = Terminal()
    manifest = await _manifest(terminal, user)
    pages = tool_docs(manifest)
    folder = output_folder
    if folder is None:
        terminal.result("\n".join(pages.values()))
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsInvalid(
            f"--output-folder: {folder} cannot be written: {error.strerror}; name another folder"
        ) from None
    for name in pages:
        terminal.result(str(folder / name))


async def diff(name: str = "*", *, user: User = "singleton", output: Output = "text") -> None:
    """Show what has changed in a tool since it was last allowed, line by line; without a name, in every tool.

    Parameters
    ----------
    name
        The tool, as provider.tool, or a server, for what it says of itself; * stands for any characters.
    """
    terminal, settings = Terminal(), Settings.load()
    tools, masked = await _definitions(terminal, settings, user, (name,))
    rows: list[dict[str, Any]] = []
    if settings.has_store:
        async with open_store(settings) as store:
            for known_as, tool in tools.items():
                allowed = await store.definitions.of_tool(known_as)
                if not allowed or tool.digests & {each.digest for each in allowed}:
                    continue
                last = allowed[0]
                lines = difflib.unified_diff(
                    _said(last.said), _said(masked(tool.said)), f"allowed by {last.allowed_by}", "now", lineterm=""
                )
                rows.append({"tool": known_as, "allowed_by": last.allowed_by, "diff": list(lines)})
    if not rows:
        terminal.say("nothing has changed since it was last allowed", "dim")
    terminal.results(output, rows, (line for row in rows for line in (row["tool"], *row["diff"])))


async def accept(*names: str, user: User = "singleton") -> None:
    """Accept tools as their servers describe them now, so that runs call them without asking about the change.

    Parameters
    ----------
    names
        The tools, as provider.tool, or a server, for what it says of itself; * stands for any characters.
    """
    terminal, settings = Terminal(), Settings.load()
    if not names:
        raise SettingsInvalid("accept: name the tools, such as `backstay tools accept mail.send_email`")
    require_store(settings)
    tools, masked = await _definitions(terminal, settings, user, names)
    async with open_store(settings) as store:
        for name, tool in tools.items():
            await store.definitions.allow(name, tool.digest, masked(tool.said), by=account_name())
            terminal.result(name)


async def _definitions(
    terminal: Terminal, settings: Settings, user: str, names: tuple[str, ...]
) -> tuple[dict[str, Any], Any]:
    """Return the definitions that names or patterns stand for, and what masks the secrets in what they say."""
    from opening import open_toolbox
    from toolbox.manifest.builder import masked
    from toolbox.providers.provider import NOBODYS

    silence_logs(settings)
    async with AsyncExitStack() as stack:
        # With the store, servers at which backstay itself signs in are seen, too.
        store = await stack.enter_async_context(open_store(settings)) if settings.has_store else None
        toolbox = await stack.enter_async_context(open_toolbox(settings, store=store))
        catalog = await toolbox.catalog(user)
        redactor = Redactor(toolbox.secrets | settings.secrets())
    of_users = {server for server, why in catalog.withheld.items() if why == NOBODYS}
    for server in sorted(of_users):
        terminal.say(f"{server} is left out: {_UNSEEN}", "yellow")
    for name in names:
        if name != "*" and not any(matches(name, known) for known in catalog.pinned):
            server = name.partition(".")[0]
            if server in of_users or server.startswith(OWN):
                raise SettingsInvalid(f"{name}: {_UNSEEN}")
            near = ", ".join(hit.tool for hit in catalog.search(name, limit=3)) or "none"
            raise SettingsInvalid(f"there is no tool {name!r}; the closest are {near}")
    pinned = sorted(catalog.pinned.items())
    found = {known: tool for known, tool in pinned if any(matches(name, known) for name in names)}
    return found, lambda said: masked(said, redactor)


def _said(said: Any) -> list[str]:
    """Return a definition as lines of which none is too long to be shown whole."""
    split = {**said, "description": str(said["description"]).splitlines()}
    lines = json.dumps(split, indent=2, sort_keys=True, ensure_ascii=False).splitlines()
    return [line[start : start + _WIDTH] for line in lines for start in range(0, len(line), _WIDTH)]


@asynccontextmanager
async def _open_builder() -> AsyncGenerator[Any]:
    """Open the toolbox with the operator's policy, and the builder that makes manifests of it."""
    from opening import open_toolbox, read_policy
    from toolbox.manifest.builder import ToolboxBuilder

    settings = Settings.load()
    settings.claim_home()
    silence_logs(settings)
    policy = read_policy(settings.policy)
    async with open_toolbox(settings) as toolbox:
        yield ToolboxBuilder(toolbox, settings.home, policy=policy, secrets=settings.secrets())


async def _manifest(terminal: Terminal, user: str) -> Any:
    async with _open_builder() as builder:
        manifest = await builder.manifest(user)
    _warn(terminal, manifest)
    return manifest


def _warn(terminal: Terminal, manifest: Any) -> None:
    """Name the providers and tools that cannot be used, and why."""
    for provider in manifest.providers.values():
        if not provider.available:
            terminal.say(f"{provider.name} is not available: {provider.reason}", "yellow")
    for problem in manifest.problems:
        terminal.say(problem, "yellow")


def _row(row: dict[str, Any]) -> str:
    undo = f"undo: {row['undo']}" if row["undo"] else ""
    reason = f"[not available: {row['reason']}]" if row["reason"] else ""
    return f"{row['tool']:<32} {row['safety']:<16} {' '.join(filter(None, (reason, undo)))}"


def _lines(manifest: Any, tool: Any) -> list[str]:
    reason = manifest.reason(tool)
    facts = {
        "tool": tool.name,
        "provider": f"{tool.provider} ({manifest.providers[tool.provider].kind})",
        "available": "yes" if reason is None else f"no: {reason}",
        "safety": tool.safety.value,
        "undo": tool.undo or ("" if tool.safety.level == 0 else "none: it cannot be undone"),
        "verify": tool.verify,
        "program": tool.binding,
        "function": tool.function,
        "file": tool.path,
        "definition": tool.definition,
    }
    arguments = [
        f"    {given.argument:<20} {given.type} ({'required' if given.required else 'optional'}"
        f"{f', default {given.default}' if given.default else ''})  {' '.join(given.description.split())}".rstrip()
        for given in tool.arguments
    ]
    return [
        *(f"{what:<12} {fact}" for what, fact in facts.items() if fact),
        *(["arguments"] if arguments or tool.others else []),
        *arguments,
        *(["    and others"] if tool.others else []),
        *(["description", *(f"    {line}" for line in tool.description.splitlines())] if tool.description else []),
    ]
