"""The commands `connect`, `connections list` and `disconnect`: who is signed in at which server."""

from typing import Annotated

from cyclopts import Parameter

from backstay.authority import principal
from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from backstay.shown import NOBODY, one_line
from backstay.tools.connection import SERVICE
from gateways.served import page_here
from gateways.terminal.flags import Output
from gateways.terminal.session import account_name, open_store, require_store
from gateways.terminal.terminal import Terminal

Provider = Annotated[str, Parameter(help="Name of the server in toolbox.json.")]
Whose = Annotated[str | None, Parameter(name="--user", help="Whose connection; that of your account's name if absent.")]
_STATES = {"connected": "signed in", "ended": "ended: must sign in again"}


async def connect(provider: Provider, /, *, user: Whose = None, output: Output = "text") -> int:
    """Print the link by which a user signs in to a server, so that their runs can act there in their name.

    The link gives nobody anything: only that user, in their own session of the page, can sign in with it.
    """
    from opening import open_sign_ins

    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    who = named(user)
    async with open_store(settings) as store, open_sign_ins(settings, store) as sign_ins:
        known = () if sign_ins is None else sign_ins.providers
        if provider not in known:
            raise SettingsInvalid(
                f"PROVIDER: people do not sign in at {one_line(provider, 60)!r} (known: {', '.join(known) or 'none'}); "
                'give it `"auth": {}` in toolbox.json'
            )
        assert sign_ins is not None  # noqa: S101 - it knows a server
        link = sign_ins.link(who, provider)[0] or f"{page_here(settings.home)}/connections"
    if settings.web_identity == "link":
        terminal.say(f"let them in first: backstay web link --by {one_line(who, 80)}")
    terminal.results(output, {"link": link, "user": who, "provider": provider}, [link])
    return 0


async def list_connections(*, user: Whose = None, output: Output = "text") -> int:
    """List who is signed in to which server; no token is shown."""
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with open_store(settings) as store:
        found = await store.connections.listed(None if user is None else named(user))
    told = [each.told() for each in found]
    lines = [
        f"{one_line(each['user'], 80) or '(backstay itself)'}  {each['provider']}  {_STATES[each['state']]}  "
        f"{one_line(each['issuer'], 100)}"
        for each in told
    ]
    if not lines and output == "text":
        terminal.say("nobody is signed in anywhere", "yellow")
    terminal.results(output, told, lines)
    return 0


async def disconnect(provider: Provider, /, *, user: Whose = None) -> int:
    """Forget a user's connection to a server, and have its tokens revoked where that is possible."""
    from opening import open_sign_ins

    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    who = SERVICE if user == SERVICE else named(user)
    async with open_store(settings) as store, open_sign_ins(settings, store) as sign_ins:
        if sign_ins is None:
            # The server may be gone from the toolbox; all that was kept for it is forgotten all the same.
            revoked = None if await store.connections.forget(who, provider) is None else False
        else:
            revoked = await sign_ins.disconnect(who, provider)
    if revoked is None:
        terminal.say(f"{one_line(who, 80)} has no connection to {one_line(provider, 60)}", "yellow")
        return 1
    where = "revoked there" if revoked else "not revoked there, so end it at the server, too"
    terminal.say(f"forgotten; {where}")
    return 0


def named(user: str | None) -> str:
    """Return the person that a command is for; raises SettingsInvalid for nobody."""
    name = principal(user or account_name())
    if name in {NOBODY, SERVICE}:
        raise SettingsInvalid(f"--user: {NOBODY} is nobody, and has neither connections nor servers; name a person")
    return name
