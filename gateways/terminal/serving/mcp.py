"""The command `mcp`: let a program that speaks MCP start runs and follow them, over stdio or over HTTP."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from backstay.errors import SettingsInvalid, TaskInvalid
from backstay.logs import configure_logs
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings
from gateways.terminal.definitions import found_in
from gateways.terminal.session import account_name, open_store, require_store, session
from gateways.terminal.terminal import Terminal

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from backstay.budgets.budget import Budget
    from backstay.task.task import Task
    from gateways.engine_mcp.runs import EngineRuns

HOST, PATH = "127.0.0.1", "/mcp"
_MOST_CONNECTIONS = 200
Caller = Annotated[
    str | None, Parameter(help="Over stdio: who starts these runs; the name of your account by default.")
]
Port = Annotated[int | None, Parameter(help="Serve over HTTP on this port instead, at /mcp; 0 for any that is free.")]


async def mcp(*, by: Caller = None, port: Port = None, host: str = HOST) -> None:
    """Let a program that speaks MCP start runs and follow them, over stdio or, with --port, over HTTP.

    Parameters
    ----------
    host
        With --port: the address to listen on.
    """
    from gateways.engine_mcp.runs import EngineRuns
    from gateways.links import open_seals

    settings = Settings.load()
    if by is not None and port is not None:
        raise SettingsInvalid("--by: over HTTP each request says who sends it; leave it out")
    require_store(settings)
    trusted, signs = settings.mcp_trusted, settings.approver_key is not None
    async with session(settings) as backstay, open_store(settings) as store:
        runs = EngineRuns(backstay, store, open_seals(settings), trusted=trusted, signs=signs)
        if port is None:
            await _over_stdio(settings, runs, by or account_name())
        else:
            await _over_http(settings, runs, host, port)


async def _over_stdio(settings: Settings, runs: "EngineRuns", by: str) -> None:
    from gateways.engine_mcp.serving import engine_server
    from gateways.links import Stranger, person
    from gateways.mcp_serving import serve_stdio

    try:
        caller = person(by)
    except Stranger as error:
        raise SettingsInvalid(f"--by: {error}") from None
    server = engine_server(runs, _DefinitionFiles(settings), caller=lambda _: caller, may_start=lambda _: True)
    await serve_stdio(server)


async def _over_http(settings: Settings, runs: "EngineRuns", host: str, port: int) -> None:
    from gateways.listening import PageServer, address_of, config_of, listen

    terminal = Terminal()
    configure_logs(Redactor(settings.secrets()))
    config = config_of(app_of(settings, runs, host), _MOST_CONNECTIONS)
    with listen(host, port) as listener:
        address = f"{address_of(host, listener.getsockname()[1])}{PATH}"
        await PageServer(config, lambda: terminal.say(f"backstay mcp ready: {address}", "green")).serve([listener])
    terminal.say("stopped")


def app_of(settings: Settings, runs: "EngineRuns", host: str) -> "Starlette":
    """Return what serves the engine over HTTP to whom the page would know, behind its guard; raises SettingsInvalid."""
    from starlette.middleware import Middleware
    from starlette.requests import Request

    from gateways.engine_mcp.serving import SignIn, caller_of, engine_server, http_app
    from gateways.links import open_seals
    from gateways.web.guard import Guard
    from gateways.web.identity import may_start
    from gateways.web.serving import open_identity

    identity = open_identity(settings, open_seals(settings), host)

    async def named(request: Request) -> str:
        return (await identity.visitor(request)).by

    def starts(caller: str) -> bool:
        return may_start(identity, settings.web_starters, caller)

    sign_in = None
    if settings.web_identity == "oidc" and settings.oidc_issuer is not None:
        sign_in = SignIn(settings.oidc_issuer, settings.url)
    server = engine_server(runs, _DefinitionFiles(settings), caller=caller_of, may_start=starts)
    return http_app(server, PATH, named, Middleware(Guard, url=settings.url), sign_in=sign_in)


class _DefinitionFiles:
    """Know the definitions and profiles of the settings, as their files are now."""

    def __init__(self, settings: Settings) -> None:
        """Read them anew each time."""
        self._settings = settings

    async def listed(self) -> list[dict[str, Any]]:
        """Return all of them, each with the schema of its input."""
        found = await found_in(self._settings)
        return [
            {
                "id": known.id,
                "version": known.version,
                "title": known.line,
                "summary": known.summary,
                "input": known.input,
            }
            for _, known in sorted(found.by_id.items())
        ]

    async def task(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a task that carries one out; raises TaskInvalid for an unknown one or other input."""
        from activities.definitions import input_fault

        found = await found_in(self._settings)
        known = found.by_id.get(name)
        if known is None:
            raise TaskInvalid(f"definition: there is no {name[:80]!r}; list_definitions names those that there are")
        if (fault := await asyncio.to_thread(input_fault, known, given)) is not None:
            raise TaskInvalid(f"input: {fault}; list_definitions tells its schema")
        return known.task(given)

    async def budget(self, task: "Task") -> "Budget":
        """Return the limits of a run of this task, those of its profile where it sets none."""
        from opening import read_profiles

        profiles = await asyncio.to_thread(read_profiles, self._settings.profiles)
        return profiles.named(task.profile).budget_of(task.budget)
