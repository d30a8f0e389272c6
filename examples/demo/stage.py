"""The parts of the demo: Temporal, a model, the mailbox, and a worker that can be killed."""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from gateways.terminal.local.embedded import EmbeddedServer, environment_for, start_temporal
from gateways.terminal.local.parts import start_page, start_worker
from gateways.terminal.local.ports import free_port
from system.child import Child

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "examples.mailbox.reminders:Reminders"
PRICED_MODEL = "gpt-5.4-mini"
MAILS_BEFORE_THE_KILL = 3
_KEPT = (
    "BACKSTAY_MODEL",
    "BACKSTAY_PRICES",
    "BACKSTAY_MAX_COMPLETION_TOKENS",
    "BACKSTAY_SYSTEM_ROLE",
    "BACKSTAY_METRICS_ADDRESS",
)
_READY_S = 60.0
_END_S = 5.0
_CRASH_DEADLINE_S = "8"
"""The request deadline of the crash demo; a lost answer is checked after it."""


class Stage:
    """Start all parts, and stop them again."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        *,
        crash: bool,
        page: Mapping[str, str] | None = None,
        today: str = "",
        metrics: str = "",
    ) -> None:
        """Serve the page, too, with these settings if they are given; `today` is the mailbox's date.

        `metrics`: where the worker serves them, if not where the environment says.
        """
        self.home = home.absolute()
        self.crash = crash
        self.page = page
        self.page_url = ""
        self._today = today
        self._metrics = metrics
        self.mailbox = self.home / "mailbox.db"
        self.scripted = settings.openai_api_key is None and settings.openai_base_url is None
        self.model = PRICED_MODEL if self.scripted else settings.model
        self._given = settings.environment
        self._parts: list[Child | EmbeddedServer] = []
        self._environment: dict[str, str] = {}
        self.server: EmbeddedServer
        self.worker: Child
        self.programs = ""
        """What the worker says about programs: that they run in jails, or why they cannot."""

    async def set_up(self) -> None:
        """Start everything, and return when the worker is ready."""
        self._empty()
        model = await self._start_model()
        try:
            self.server = await self._start_temporal(free_port(7233), free_port(8233))
        except SettingsInvalid:
            # Another process may have taken a port since it was checked.
            self.server = await self._start_temporal(free_port(), free_port())
        self._parts.append(self.server)
        self._environment = self._settings_of_worker()
        if model is not None:
            self._environment["OPENAI_BASE_URL"] = (await self._ready(model)).rpartition(": ")[2]
        self._render()
        await self.start_worker()
        if self.page is not None:
            port = int(self.page_url.rpartition(":")[2])
            self._parts.append(page := await start_page(self.home, self._environment, port, folder=self.home))
            await self._ready(page)

    def _empty(self) -> None:
        """Empty the folder, but keep the images of jails, which are named by their content."""
        self.home.mkdir(parents=True, exist_ok=True)
        for left in self.home.iterdir():
            if left.name == "images":
                continue
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink()

    @property
    def environment(self) -> dict[str, str]:
        """Return the worker's environment, for commands that look at the same run."""
        return dict(self._environment)

    @property
    def is_at_home(self) -> bool:
        """Return whether commands find this Temporal by its default address."""
        told = any(name.startswith("TEMPORAL_") for name in self._given)
        return self.server.address == "127.0.0.1:7233" and not told

    async def _start_temporal(self, port: int, ui_port: int) -> EmbeddedServer:
        return await start_temporal(
            port=port,
            ui_port=ui_port,
            database=self.home / "temporal.db",
            log=self.home / "logs" / "temporal.log",
            environment=self._given,
        )

    async def start_worker(self) -> None:
        """Start a worker and wait until it polls."""
        self.worker = await start_worker(self.home, self._environment, folder=self.home)
        self._parts.append(self.worker)
        self.programs = (await self._ready(self.worker)).partition(", store ")[2].partition(", ")[2]

    async def take_down(self) -> None:
        """Stop every part by its own process id, the worker first."""
        for part in reversed(self._parts):
            await part.stop(_END_S)

    async def _start_model(self) -> Child | None:
        if not self.scripted:
            return None
        command = [sys.executable, "-m", "backstay.testing", "--script", SCRIPT]
        child = await Child.start(
            "model",
            command,
            environment=environment_for("", "", self._given),
            log=self.home / "logs" / "model.log",
            ready="scripted model ready:",
            folder=ROOT,
        )
        self._parts.append(child)
        return child

    async def _ready(self, child: Child) -> str:
        ready = await child.is_ready(_READY_S)
        if ready is None:
            raise RuntimeError(f"the {child.name} did not start: {' / '.join(child.last)} (log: {child.log})")
        return ready

    def _settings_of_worker(self) -> dict[str, str]:
        given = {name: v for name, v in self._given.items() if not name.startswith("BACKSTAY_") or name in _KEPT}
        own = {
            "BACKSTAY_HOME": str(self.home),
            "BACKSTAY_TOOLBOX": str(self.home / "toolbox.json"),
            "BACKSTAY_POLICY": str(ROOT / "examples" / "policy.yaml"),
            "BACKSTAY_MODEL": self.model,
        }
        if self.page is not None:
            self.page_url = f"http://127.0.0.1:{free_port()}"
            own |= {"BACKSTAY_URL": self.page_url, "BACKSTAY_WEB_UI_URL": str(self.server.ui), **self.page}
        if self._metrics:
            own["BACKSTAY_METRICS_ADDRESS"] = self._metrics
        if self.crash:
            own["BACKSTAY_REQUEST_DEADLINE_SECONDS"] = _CRASH_DEADLINE_S
        return environment_for(self.server.address, self.server.namespace, given) | own

    def _render(self) -> None:
        toolbox = json.loads((ROOT / "examples" / "toolbox.json").read_text(encoding="utf-8"))
        environment = {"MAILBOX_DB": str(self.mailbox)} | ({"MAILBOX_TODAY": self._today} if self._today else {})
        if self.crash:
            # The worker is killed after this mail was sent and before the mailbox has answered: the hardest moment.
            environment |= {"MAILBOX_HANG_ON_SEND": str(MAILS_BEFORE_THE_KILL), "MAILBOX_SLOW_SECONDS": "0.3"}
        server = str(ROOT / "examples" / "mailbox" / "server.py")
        toolbox["mcpServers"]["mail"] = {"command": "python", "args": [server], "env": environment}
        # Mails are sent one by one, so that at the crash some are sent, one is under way, and some are still to send.
        toolbox["providers"]["mail"]["serial"] = self.crash
        (self.home / "toolbox.json").write_text(json.dumps(toolbox, indent=2), encoding="utf-8")
