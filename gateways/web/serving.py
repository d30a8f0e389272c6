"""Open what the page needs, and serve it on one address until told to stop."""

from collections.abc import Callable, Sequence
from typing import Any

from starlette.routing import BaseRoute

from backstay.client import Backstay
from backstay.errors import SettingsInvalid
from backstay.policies.policy import Policy
from backstay.settings import Settings
from backstay.tools.connection import SignIns
from backstay.tools.own_server import OwnServerRegistry
from gateways.links import Seals, open_seals
from gateways.listening import PageServer, address_of, config_of, listen
from gateways.web.app import build_app
from gateways.web.identity import ByHeader, ByLink, Identity
from gateways.web.oidc import ByIdToken
from gateways.web.page import PageRoutes
from store.store import Store
from system.addresses import is_loopback

MOST_CONNECTIONS = 400


def open_page(
    settings: Settings,
    store: Store,
    backstay: Backstay,
    policy: Policy,
    host: str,
    *,
    sign_ins: SignIns | None = None,
    own_servers: OwnServerRegistry | None = None,
) -> PageRoutes:
    """Return the page for an address to listen on; raises SettingsInvalid for one that would let in anybody."""
    seals = open_seals(settings)
    identity = open_identity(settings, seals, host)
    return PageRoutes(
        settings, backstay, store, policy, identity=identity, seals=seals, sign_ins=sign_ins, own_servers=own_servers
    )


async def serve(
    page: PageRoutes, host: str, port: int, ready: Callable[[str], Any], more: Sequence[BaseRoute] = ()
) -> None:
    """Serve the page until SIGTERM or Ctrl-C; `ready` is told its address when it can be reached.

    `more` are routes of other gateways that are served beside it.
    """
    with listen(host, port) as listener:
        address = address_of(host, listener.getsockname()[1])
        config = config_of(build_app(page, more), MOST_CONNECTIONS)
        await PageServer(config, lambda: ready(address)).serve(sockets=[listener])


def open_identity(settings: Settings, seals: Seals, host: str) -> Identity:
    """Return the identity of the settings; raises SettingsInvalid for what would let in whom nobody knows."""
    match settings.web_identity:
        case "header":
            if settings.web_proxy_secret is None:
                raise SettingsInvalid(
                    "BACKSTAY_WEB_PROXY_SECRET: required with BACKSTAY_WEB_IDENTITY=header; without it, whoever "
                    "reaches the page could write the header"
                )
            return ByHeader(settings.web_header, settings.web_proxy_secret.get_secret_value())
        case "oidc":
            if settings.oidc_issuer is None or settings.oidc_audience is None:
                raise SettingsInvalid(
                    "BACKSTAY_OIDC_ISSUER, BACKSTAY_OIDC_AUDIENCE: required with BACKSTAY_WEB_IDENTITY=oidc; without "
                    "them, anybody's token would do"
                )
            return ByIdToken(settings.oidc_issuer, settings.oidc_audience, settings.oidc_claim)
        case "link":
            if not is_loopback(host):
                raise SettingsInvalid(
                    f"--host: {host} can be reached from elsewhere, and links are for this machine only; "
                    "set BACKSTAY_WEB_IDENTITY to header or oidc, or listen on 127.0.0.1"
                )
            return ByLink(seals)
