"""The commands `servers add`, `servers list` and `servers remove`: MCP servers that users have for themselves."""

from typing import Annotated

from cyclopts import Parameter

from backstay.errors import ArgumentsInvalid, SettingsInvalid
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.terminal.flags import Output
from gateways.terminal.serving.connections import Whose, named
from gateways.terminal.session import open_store, require_store
from gateways.terminal.terminal import Terminal

Header = Annotated[tuple[str, ...], Parameter(negative="")]


async def add_server(
    name: str, url: str, /, *, header: Header = (), user: Whose = None, output: Output = "text"
) -> int:
    """Add an MCP server for one user; only runs of that user can reach it.

    Parameters
    ----------
    name
        What the user calls it.
    url
        Its https address, at a host that `users_servers` in toolbox.json allows.
    header
        NAME=VALUE that is sent with each request; ${VARIABLE} is read from your environment.
    """
    from opening import open_own_servers
    from toolbox.configuration.load import Variables

    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    given = [text.partition("=") for text in header]
    if wrong := [name for name, sign, _ in given if not sign]:
        raise SettingsInvalid(f"--header: {one_line(wrong[0], 40)!r} is not NAME=VALUE; write it so")
    variables = Variables(settings.environment)
    headers = [(key.strip(), variables.resolve(value, f"--header {one_line(key, 40)}")) for key, _, value in given]
    async with open_store(settings) as store:
        registry = open_own_servers(settings, store)
        if registry is None:
            raise SettingsInvalid(
                f"{settings.toolbox}: users may add no servers; say at which hosts they may, under `users_servers`"
            )
        try:
            added = await registry.add(named(user), name, url, headers)
        except ArgumentsInvalid as error:
            raise SettingsInvalid(str(error)) from None
    terminal.results(
        output, added.told(), [f"added; runs of {one_line(added.user_id, 80)} find it as {added.provider}"]
    )
    return 0


async def list_servers(*, user: Whose = None, output: Output = "text") -> int:
    """List the servers of single users; neither an address nor a header is shown."""
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with open_store(settings) as store:
        told = [each.told() for each in await store.own_servers.listed(None if user is None else named(user))]
    lines = [
        f"{one_line(each['user'], 80)}  {each['name']}  {one_line(each['host'], 100)}  {each['provider']}"
        for each in told
    ]
    if not lines and output == "text":
        terminal.say("no user has a server of their own", "yellow")
    terminal.results(output, told, lines)
    return 0


async def remove_server(name: str, /, *, user: Whose = None) -> int:
    """Forget a server of a user, with its address and headers.

    Parameters
    ----------
    name
        What the user calls it.
    """
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with open_store(settings) as store:
        # Also where toolbox.json allows such servers no more.
        provider = await store.own_servers.removed(who := named(user), name)
    if not provider:
        terminal.say(f"{one_line(who, 80)} has no server {one_line(name, 60)!r}", "yellow")
        return 1
    terminal.say(f"removed; no run reaches {provider} any more")
    return 0
