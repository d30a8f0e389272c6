import asyncio
import json
import shutil
from contextlib import AsyncExitStack

import pytest

from tests.crash.temporal_server import client_of, server
from tests.plugins.client import ENDED, PLUGINS, TRUSTED
from tests.plugins.site import Site, grant_of, lines_of
from tests.ports import own_port
from tests.requirements import promise
from tests.sizes import FULL, sized

PLUGINS_AT_ONCE = sized(5, 3)
JOBS = sized(1000, 18)
# A daemon is killed each time.
KILLS = ("daemon", "worker", "server", "all") * 8 if FULL else ("worker", "all")
AGAIN = {"engine_unavailable"}


class Client:
    """Hold what is known of every job, over all daemons of one client."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.ended = {}

    async def until_all_ended(self, daemon):
        """Ask for every job that has not ended, in order, and wait for all of them; ask again where nothing took it."""
        left = [number for number in range(self.jobs) if number not in self.ended]
        for number in left:
            self.ask(daemon, number)
        while len(self.ended) < self.jobs:
            line = await daemon.line()
            if line["status"] not in ENDED:
                continue
            number = int(line["id"].removeprefix("job-"))
            if line["status"] == "error" and line["payload"]["error"] in AGAIN:
                self.ask(daemon, number)
                await asyncio.sleep(0.05)
            else:
                self.ended[number] = (line["status"], line["payload"])

    def ask(self, daemon, number):
        daemon.run(f"job-{number}", f"noting{number % PLUGINS_AT_ONCE}", "run", {"number": number}, timeout=10)


@promise("plugins:kills")
@pytest.mark.timeout(1800 if FULL else 280)
async def test_each_of_many_jobs_runs_once_or_is_unknown_in_order_whatever_is_killed(tmp_path, nursery):
    names = [f"noting{number}" for number in range(PLUGINS_AT_ONCE)]
    providers = {}
    for name in names:
        shutil.copytree(PLUGINS / "noting", tmp_path / "plugins" / name)
        providers[name] = {"env": {"NOTED": str(tmp_path / name)}, "jobs": grant_of(tmp_path / "plugins" / name)}
    written = {"plugins": TRUSTED, "providers": providers}
    (tmp_path / "toolbox.json").write_text(json.dumps(written), encoding="utf-8")
    port = own_port()
    client = Client(JOBS)
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(AsyncExitStack())
        process = await running.enter_async_context(server(port, tmp_path / "temporal.db"))
        site = Site(tmp_path, await client_of(port), nursery)
        worker = await site.worker()
        for number, killed in enumerate(KILLS, 1):
            share = JOBS * number // (len(KILLS) + 1)
            async with site.daemon() as daemon:
                asking = asyncio.ensure_future(client.until_all_ended(daemon))
                async with asyncio.timeout(120):
                    while len(client.ended) < share and not asking.done():
                        await asyncio.sleep(0.02)
                asking.cancel()
                if killed in {"worker", "all"}:
                    worker.kill()
                if killed in {"server", "all"}:
                    process.kill()
                # The daemon is killed as this block ends.
            if process.returncode is not None or killed in {"server", "all"}:
                await running.aclose()
                process = await running.enter_async_context(server(port, tmp_path / "temporal.db"))
                await client_of(port)
            if killed in {"worker", "all"}:
                await worker.end()
                worker = await site.worker()
        async with site.daemon() as daemon:
            await asyncio.wait_for(client.until_all_ended(daemon), 240 if not FULL else 900)
        await worker.end()
    noted = {name: [int(line) for line in lines_of(tmp_path / name)] for name in names}
    ran = [number for numbers in noted.values() for number in numbers]
    assert len(ran) == len(set(ran))  # none twice
    unknown = {number for number, told in client.ended.items() if told[0] != "success"}
    assert {client.ended[number][1].get("error") for number in unknown} <= {"outcome_unknown", "timeout"}
    assert set(range(JOBS)) - unknown <= set(ran)  # nothing lost
    assert all(numbers == sorted(numbers) for numbers in noted.values())  # in order
    assert len(unknown) <= sized(2, 1) * PLUGINS_AT_ONCE * len(KILLS)  # of each plugin one call is under way at a time
