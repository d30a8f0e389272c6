"""A real Prometheus that scrapes one worker, with our alert rules: for the picture of the dashboard, and for tests."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import yaml

from gateways.terminal.local.ports import free_port

MONITORING = Path(__file__).resolve().parents[1] / "monitoring"
_START_S, _ASK_S, _END_S = 60, 20, 30
_POLL_S = 0.1


@dataclass(frozen=True)
class Prometheus:
    """Ask it as Grafana does."""

    address: str

    async def get(self, path: str, **asked: str) -> Any:
        """Return what it answers; raises ValueError with its words if it refuses."""
        # A proxy of the environment has no business between two programs of this machine.
        async with httpx2.AsyncClient(trust_env=False, timeout=_ASK_S) as client:
            answer = await client.get(f"{self.address}/api/v1/{path}", params=asked)
        if answer.is_error:
            raise ValueError(f"{path} {asked}: {answer.text}")
        return answer.json()["data"]

    async def query(self, expression: str) -> list[Any]:
        """Return the values of an expression, each with its labels."""
        return (await self.get("query", query=expression))["result"]

    async def numbers(self, expression: str) -> list[float]:
        """Return the values of an expression."""
        return [float(found["value"][1]) for found in await self.query(expression)]


@asynccontextmanager
async def open_prometheus(folder: Path, target: str) -> AsyncGenerator[Prometheus]:
    """Scrape an address twice a second, with the configuration of docs/monitoring but for that."""
    told = yaml.safe_load((MONITORING / "prometheus.yml").read_text(encoding="utf-8"))
    told["global"] |= {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"}
    told["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    told["rule_files"] = [str(MONITORING / name) for name in told["rule_files"]]
    folder.mkdir()
    (folder / "prometheus.yml").write_text(yaml.safe_dump(told), encoding="utf-8")
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=log,
            stderr=log,
        )
    opened = Prometheus(f"http://127.0.0.1:{port}")
    try:
        async with asyncio.timeout(_START_S):
            while True:
                if process.returncode is not None:
                    raise RuntimeError(f"Prometheus has ended: {(folder / 'log').read_text(encoding='utf-8')}")
                with suppress(httpx2.HTTPError, ValueError):
                    await opened.query("vector(1)")
                    break
                await asyncio.sleep(_POLL_S)
        yield opened
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), _END_S)
