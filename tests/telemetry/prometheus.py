"""A real Prometheus that scrapes one worker, with our alert rules."""

import asyncio
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.engine import ROOT
from tests.serving import free_port

MONITORING = ROOT / "docs" / "monitoring"


@dataclass(frozen=True)
class Prometheus:
    """Ask it as Grafana does."""

    address: str

    async def get(self, path: str, **asked: str) -> Any:
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(asked)}"
        try:
            body = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=20).read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {asked}: {error.read().decode()}") from None
        return json.loads(body)["data"]

    async def query(self, expression: str) -> list[Any]:
        """Return the values of an expression, each with its labels."""
        return (await self.get("query", query=expression))["result"]

    async def numbers(self, expression: str) -> list[float]:
        return [float(found["value"][1]) for found in await self.query(expression)]


@asynccontextmanager
async def open_prometheus(folder: Path, target: str) -> AsyncGenerator[Prometheus]:
    """Scrape an address twice a second, with the configuration of docs/monitoring but for that."""
    told = yaml.safe_load((MONITORING / "prometheus.yml").read_text(encoding="utf-8"))
    told["global"] |= {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"}
    told["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    told["rule_files"] = [str(MONITORING / name) for name in told["rule_files"]]
    await asyncio.to_thread(folder.mkdir)
    await asyncio.to_thread((folder / "prometheus.yml").write_text, yaml.safe_dump(told), encoding="utf-8")
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
        async with asyncio.timeout(60):
            while True:
                assert process.returncode is None, (folder / "log").read_text(encoding="utf-8")
                with suppress(OSError, AssertionError):
                    await opened.query("vector(1)")
                    break
                await asyncio.sleep(0.1)
        yield opened
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), 30)
