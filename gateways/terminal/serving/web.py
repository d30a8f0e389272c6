"""The commands `web` and `web link`: serve the page of approvals, and let one person in."""

from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import App, Parameter

from backstay.errors import SettingsInvalid
from backstay.logs import configure_logs
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings
from gateways.served import HOST, PORT, link_command, page_here
from gateways.terminal.flags import Output
from gateways.terminal.serving.slack import slack_beside
from gateways.terminal.session import open_store, session
from gateways.terminal.terminal import Terminal

app = App(name="web")


@app.default
async def web(*, host: str = HOST, port: int = PORT) -> None:
    """Serve the page of approvals until Ctrl-C: what all runs ask, one request whole, one run.

    Parameters
    ----------
    host
        Address to listen on; with links, only this machine can be let in.
    port
        Port to listen on; 0 for any that is free.
    """
    from gateways.web.serving import open_page, serve
    from opening import open_own_servers, open_sign_ins, read_policy

    settings, terminal = Settings.load(), Terminal()
    settings.claim_home()
    policy = read_policy(settings.policy)
    async with (
        session(settings) as backstay,
        open_store(settings) as store,
        slack_beside(settings, store, backstay) as more,
        open_sign_ins(settings, store) as sign_ins,
    ):
        own_servers = open_own_servers(settings, store)
        page = open_page(settings, store, backstay, policy, host, sign_ins=sign_ins, own_servers=own_servers)
        configure_logs(Redactor(settings.secrets()))
        if settings.approver_key is None:
            terminal.say("BACKSTAY_APPROVER_KEY is not set, so decisions are recorded as unverified", "yellow")

        def ready(address: str) -> None:
            terminal.say(f"backstay web ready: {settings.url or address}", "green")
            if settings.web_identity == "link":
                terminal.say(f"let somebody in with: {link_command('NAME', urlsplit(address).port)}")

        await serve(page, host, port, ready, more)
    terminal.say("stopped")


@app.command
async def link(
    *,
    by: Annotated[str, Parameter(help="The person that the link is for; decisions are recorded under this name.")],
    port: int | None = None,
    output: Output = "text",
) -> None:
    """Print a link that lets one person into the page on this machine, for 12 hours.

    Parameters
    ----------
    port
        The port of `backstay web`; without it, that of the page of `backstay dev` here, or 8234.
    """
    from gateways.links import link_for, open_seals

    settings = Settings.load()
    if settings.web_identity != "link":
        raise SettingsInvalid(
            f"BACKSTAY_WEB_IDENTITY: {settings.web_identity}; there are no links, the proxy says who people are"
        )
    token = link_for(open_seals(settings), by)
    page = page_here(settings.home) if port is None else f"http://{HOST}:{port}"
    address = f"{page}/link/{token}"
    Terminal().results(output, {"link": address, "by": by}, [address])
