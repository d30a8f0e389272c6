"""Open what the page needs, and serve it on one address until told to stop."""

import asyncio
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.routing import BaseRoute
from uvicorn.protocols.http.h11_impl import H11Protocol

from backstay.client import Backstay
from backstay.errors import SettingsInvalid
from backstay.policies.policy import Policy
from backstay.settings import Settings
from gateways.web.app import build_app
from gateways.web.identity import ByHeader, ByLink, Identity, is_loopback
from gateways.web.oidc import ByIdToken
from gateways.web.page import Doors, Page
from gateways.web.tokens import Seals, open_seals
from store.store import Store

HEAD_S = 10.0
"""How long a connection may take to say what it wants."""
_MOST_HEAD = 32 * 1024
_MOST_CONNECTIONS = 400
_DRAIN_S = 3


def open_page(settings: Settings, store: Store, backstay: Backstay, policy: Policy, host: str) -> Page:
    """Return the page for an address to listen on; raises SettingsInvalid for one that would let in anybody."""
    seals = open_seals(settings)
    unsigned = Backstay(backstay.client, task_queue=backstay.task_queue)
    return Page(settings, Doors(backstay, unsigned, store), policy, open_identity(settings, seals, host), seals)


async def serve(page: Page, host: str, port: int, ready: Callable[[str], Any], more: Sequence[BaseRoute] = ()) -> None:
    """Serve the page until SIGTERM or Ctrl-C; `ready` is told its address when it can be reached.

    `more` are routes of other gateways that are served beside it.
    """
    with _listen(host, port) as listener:
        await _Server(config_of(page, more), lambda: ready(_address(host, listener.getsockname()[1]))).serve(
            sockets=[listener]
        )


def config_of(page: Page, more: Sequence[BaseRoute] = ()) -> uvicorn.Config:
    """Return how the page is served: with bounds for heads and connections, and without a word about itself."""
    return uvicorn.Config(
        build_app(page, more),
        http=Patient,
        ws="none",
        log_config=None,
        log_level="warning",
        # An address may hold the token of a link.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MOST_HEAD,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_DRAIN_S,
    )


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _Server(uvicorn.Server):
    """Say when it can be reached, and stop in good order at SIGTERM and Ctrl-C."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], Any]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop at a signal, and do not raise it again afterwards, as the library would."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stop)
        yield

    def _stop(self) -> None:
        self.should_exit = True


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


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise SettingsInvalid(f"--port: {host}:{port} cannot be listened on ({error}); choose another") from None
    # Its connections inherit this; without it, each answer waits 40 ms for the browser to confirm its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class Patient(H11Protocol):
    """Close a connection that does not say within seconds what it wants."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._waiting = self.loop.call_later(HEAD_S, transport.close)

    def data_received(self, data: bytes) -> None:
        """Wait on while only a part of a head has come."""
        super().data_received(data)
        cycle: Any = self.cycle  # the library leaves out that there may be none
        under_way = cycle is not None and not cycle.response_complete
        if under_way and self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        elif not under_way and self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)
