"""Keep the parts of one machine running: a worker, and the page of approvals, each in a process of its own."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from backstay.rooms import house
from backstay.settings import Settings
from gateways.terminal.local.embedded import EmbeddedServer, environment_for
from gateways.terminal.local.keeping import KeptPart
from gateways.terminal.local.reloading import policy_watch, watch_of
from gateways.terminal.session import account_name
from gateways.terminal.terminal import Terminal
from system.child import Child
from system.files import write_whole

_READY, _PAGE_READY = "backstay worker ready:", "backstay web ready:"
_TELLS_TOOLS = "backstay worker tools: "
_TELLS_UNAVAILABLE = "backstay worker unavailable: "


class Parts(NamedTuple):
    """Hold what the parts of one machine need to find each other."""

    terminal: Terminal
    settings: Settings
    server: EmbeddedServer
    model: Mapping[str, str] | None
    page: int | None
    """The port of the page; None without one."""
    opens: bool = False
    """Whether the page is opened in a browser, where there is one."""

    @property
    def address(self) -> str:
        """Return where people find the page; an operator's own address comes before ours."""
        return self.settings.url or ("" if self.page is None else f"http://127.0.0.1:{self.page}")

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of worker and page."""
        server, settings = self.server, self.settings
        found = environment_for(server.address, server.namespace, settings.environment) | dict(self.model or {})
        if server.ui is not None and settings.web_ui_url is None:
            found["BACKSTAY_WEB_UI_URL"] = server.ui
        return found | ({"BACKSTAY_URL": self.address} if self.address else {})


async def start_worker(
    home: Path,
    environment: Mapping[str, str],
    *,
    role: str = "all",
    folder: Path | None = None,
    heard: Callable[[str], None] | None = None,
) -> Child:
    """Start a worker as a process of its own; wait for it with `Child.is_ready`. `heard` gets every line it says."""
    command = [sys.executable, str(house() / "worker.py"), "--role", role]
    log = home / "logs" / "worker.log"
    options: dict[str, Any] = {"environment": environment, "log": log, "folder": folder, "heard": heard}
    return await Child.start("worker", command, ready=_READY, **options)


async def start_page(home: Path, environment: Mapping[str, str], port: int, *, folder: Path | None = None) -> Child:
    """Start the page of approvals as a process of its own; wait for it with `Child.is_ready`."""
    command = [sys.executable, "-m", "backstay", "web", "--port", str(port)]
    log = home / "logs" / "page.log"
    # Only who acts for runs signs what the ledger says of them.
    own = {name: value for name, value in environment.items() if name.upper() != "BACKSTAY_LEDGER_KEY"}
    return await Child.start("page", command, environment=own, log=log, ready=_PAGE_READY, folder=folder)


def kept_worker(
    terminal: Terminal,
    settings: Settings,
    start: Callable[[], Awaitable[Child]],
    ready: Callable[[str], None],
    **options: float,
) -> KeptPart:
    """Return a worker that is kept running, and replaced when its files change; it begins with `run`."""
    # Two processes cannot offer their metrics at one address.
    together = settings.metrics_address is None
    return KeptPart(terminal, start, ready, watch_of(settings), together=together, **options)


async def keep_worker(parts: Parts, ready: asyncio.Event) -> None:
    """Keep a worker running, and say when one is ready; raises SettingsInvalid when it cannot start at all."""
    home, environment = parts.settings.home, parts.environment

    def tell(said: str) -> None:
        parts.terminal.say(said, "green")
        ready.set()

    def hear(line: str) -> None:
        if line.startswith(_TELLS_TOOLS):
            parts.terminal.say(f"tools       {line.removeprefix(_TELLS_TOOLS)}")
        elif line.startswith(_TELLS_UNAVAILABLE):
            parts.terminal.say(f"no tools    {line.removeprefix(_TELLS_UNAVAILABLE)}", "red")

    start = partial(start_worker, home, environment, heard=hear)
    await kept_worker(parts.terminal, parts.settings, start, tell).run()


async def keep_page(parts: Parts, port: int) -> None:
    """Keep the page running on a port; raises SettingsInvalid when it cannot start at all."""
    home, environment = parts.settings.home, parts.environment
    start = partial(start_page, home, environment, port)
    await KeptPart(parts.terminal, start, lambda _: _say_page(parts), policy_watch(parts.settings)).run()


def _say_page(parts: Parts) -> None:
    """Say where the page is; with links, one that lets the person in who sits here."""
    from gateways.links import link_for, open_seals

    settings, terminal = parts.settings, parts.terminal
    if settings.web_identity != "link":
        terminal.say(f"page        {parts.address}", "green")
        return
    by = account_name()
    token = link_for(open_seals(settings), by)
    terminal.say(f"page        http://127.0.0.1:{parts.page}/link/{token}", "green")
    terminal.say(f"            for {by}, for 12 hours; another link: backstay web link --by NAME --port {parts.page}")
    if parts.opens and _has_desktop(terminal, settings):
        _open_in_browser(settings.home / "page.html", f"http://127.0.0.1:{parts.page}/link/{token}")


def _has_desktop(terminal: Terminal, settings: Settings) -> bool:
    """Return whether somebody sits at a desktop here, whose browser would come up."""
    shows = sys.platform == "darwin" or any(settings.environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return terminal.interactive and shows


def _open_in_browser(file: Path, address: str) -> None:
    """Open an address that lets its reader in.

    A file that only this user can read leads there: others on this machine see what a browser is started with.
    """
    import webbrowser

    write_whole(file, f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">\n'.encode(), mode=0o600)
    webbrowser.open(file.absolute().as_uri())
