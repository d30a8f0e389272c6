"""Start the parts of benchmarks that use Temporal: a dev server, and a process for each measured part."""

import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from backstay.client.connecting import DATA_CONVERTER
from benchmarks.processes import process, worker_environment

SETTINGS = ("matching.enableFairness=true", "matching.numTaskqueueWritePartitions=1")
"""As `backstay dev` and the Compose file set them, so that users take turns: each part of a queue has its own order."""


@asynccontextmanager
async def temporal() -> AsyncGenerator[tuple[Client, str, int]]:
    """Run a dev server; yield a client, the address and the server's process id."""
    binary = str(Path(sys.executable).parent / "temporal")
    options = [argument for setting in SETTINGS for argument in ("--dynamic-config-value", setting)]
    async with await WorkflowEnvironment.start_local(
        data_converter=DATA_CONVERTER, dev_server_existing_path=binary, dev_server_extra_args=options
    ) as environment:
        address = environment.client.service_client.config.target_host
        yield environment.client, address, _pid_of(address)


@contextmanager
def home_of_jails() -> Iterator[Path]:
    """Make a home for as long as the block runs; jails are other users than root, and must reach their image."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def floor(address: str, queue: str = "floor") -> Iterator[int]:
    """Run a worker of the floor; yield its process id."""
    with process([sys.executable, "-m", "benchmarks.floor", address, queue], "ready") as (started, _):
        yield started.pid


@contextmanager
def model(script: str, **env: str) -> Iterator[str]:
    """Run a scripted model; yield its address."""
    command = [sys.executable, "-m", "backstay.testing", "--script", script, "--port", "0"]
    with process(command, "ready", **env) as (_, line):
        yield line.rpartition(" ")[2]


@contextmanager
def engine(home: Path, address: str, model_url: str, role: str = "runs", **more: str) -> Iterator[int]:
    """Run a worker in a role; yield its process id."""
    environment = worker_environment(home, address, model_url) | more
    ready = "programs in jails" if role == "all" else "backstay worker ready"
    with process([sys.executable, "worker.py", "--role", role], ready, **environment) as (started, _):
        yield started.pid


def _pid_of(address: str) -> int:
    port = address.rpartition(":")[2]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"start-dev" in command and port.encode() in command:
                return int(entry.name)
    raise SystemExit(f"no dev server on port {port}")
