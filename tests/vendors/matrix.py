"""Run each column with each vendor, and write what became of it into docs/models.md. python -m tests.vendors.matrix."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

import opening
from backstay.client.connecting import DATA_CONVERTER
from tests.e2e.scripted_server import ScriptedServer, toolbox_of_servers, writes
from tests.engine import ROOT, Engine, engine, pending
from tests.vendors.all import VENDORS
from tests.vendors.scripts import COLUMNS, PRICE, Play, Ran, Script, fault_of, scripts_for
from tests.vendors.wire import Vendor, Vendors

PAGE = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- vendors: python -m tests.vendors.matrix -->", "<!-- /vendors -->"
EXCLUDED: Mapping[str, Mapping[str, Mapping[str, str]]] = yaml.safe_load(
    Path(__file__).with_name("excluded.yaml").read_text(encoding="utf-8")
)
POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow, read_only_egress: allow}
repeated: allow
"""
AT_ONCE = 8
"""How many runs go on at a time: more would wait for each other."""
GUARD_S = 150
SHAPE = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "run": {"type": "string"}, "title": {"type": "string"}},
    "required": ["number"],
}


@dataclass(frozen=True)
class Opened:
    """Hold what runs need."""

    engine: Engine
    play: Play
    desk: ScriptedServer
    vendors: Vendors


@asynccontextmanager
async def opened(client: Client, folder: Path) -> AsyncIterator[Opened]:
    """Open one engine, and all stand-ins as the endpoints of its file of models."""
    play = Play()
    vendors = Vendors(VENDORS, play)
    desk = ScriptedServer(folder / "desk.json", [writes("note", SHAPE, "Note a number.")], {"note": {"data": "noted"}})
    async with AsyncExitStack() as stack:
        os.environ["VENDORS_KEY"] = "key-of-all-vendors"
        stack.callback(os.environ.pop, "VENDORS_KEY")
        address = await stack.enter_async_context(vendors.serving())
        models = folder / "models.yaml"
        models.write_text(yaml.safe_dump(_models(address)), encoding="utf-8")
        options: dict[str, Any] = {"toolbox": toolbox_of_servers(folder, desk=desk), "models": models}
        # What is replayed elsewhere is the same for all vendors.
        made = await stack.enter_async_context(engine(client, folder, [], replayed=False, policy=POLICY, **options))
        yield Opened(made, play, desk, vendors)


def _models(address: str) -> dict[str, Any]:
    endpoints, models = {}, {}
    for vendor in VENDORS:
        place = f"{address}/{vendor.name}{vendor.base}"
        endpoints[vendor.name] = {"base_url": place, "key": "${VENDORS_KEY}", "api": vendor.api}
        models[vendor.name] = {"endpoint": vendor.name, "model": vendor.model, "price": PRICE}
    return {"endpoints": endpoints, "models": models}


async def faults(made: Opened, vendors: Iterable[Vendor], *, one_in: int = 1) -> dict[tuple[str, str], list[str]]:
    """Run the scripts, or one in so many with each vendor, other ones with the next; return what is wrong, by cell."""
    places = asyncio.Semaphore(AT_ONCE)

    async def run(vendor: Vendor, script: Script) -> tuple[tuple[str, str], str]:
        try:
            async with places, asyncio.timeout(GUARD_S):
                fault = await _fault(made, vendor, script)
        except TimeoutError:
            fault = "does not end"
        return (vendor.name, script.column), f"{script.name}: {fault}" if fault else ""

    planned = [
        (vendor, script)
        for place, vendor in enumerate(vendors)
        for number, script in enumerate(scripts_for(vendor))
        if (place + number) % one_in == 0
    ]
    found: dict[tuple[str, str], list[str]] = {}
    for cell, fault in await asyncio.gather(*(run(*each) for each in planned)):
        found.setdefault(cell, []).extend([fault] if fault else [])
    return found


async def _fault(made: Opened, vendor: Vendor, script: Script) -> str:
    label = f"run {vendor.name} {script.name}{' ' + script.turns[1].end if script.refuses else ''}"
    made.play.add(label, script)
    text = f"Note what is to be noted. <{label}>"
    task = {"text": text, "model": vendor.name, "budget": {"max_steps": 12}, **script.task}
    handle = await made.engine.start(task)
    said: list[str] = []
    async with AsyncExitStack() as stack:
        if script.streamed:
            key = f"{handle.id}/{handle.first_execution_run_id}"
            await stack.enter_async_context(_read_along(made.engine, key, said))
            made.play.watched[label].set()
        outcome, told, result = await _ended(handle, asks=script.refuses)
    notes = [each["arguments"]["number"] for each in made.desk.calls("note") if each["arguments"].get("run") == label]
    ran = Ran(outcome, told, "".join(said), notes, result)
    return fault_of(vendor, script, ran, made.vendors.of(vendor.name, f"<{label}>"))


@asynccontextmanager
async def _read_along(engine: Engine, key: str, said: list[str]) -> AsyncIterator[None]:
    async with opening.open_store(engine.settings) as store:

        async def read() -> None:
            async with aclosing(store.deltas.after(key)) as deltas:
                async for delta in deltas:
                    said.append(delta.text)  # noqa: PERF401  # what was read by the time of the cancellation counts

        await store.deltas.watch(key, "somebody")
        reading = asyncio.create_task(read())
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _ended(handle: Any, *, asks: bool) -> tuple[str, str, dict[str, Any]]:
    """Wait until a run ends, or asks a person; return how, what is told, and the Result."""
    ends = asyncio.ensure_future(handle.result())
    asked = [asyncio.ensure_future(pending(handle))] if asks else []
    done, waiting = await asyncio.wait([ends, *asked], return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    if ends in done:
        result = ends.result()
        return result["outcome"], str(result.get("error") or result["final_summary"]), result
    await handle.terminate()
    return "asks", str(asked[0].result()[0]["question"]), {}


def table(found: Mapping[tuple[str, str], list[str]]) -> str:
    """Return the table of the page: a cell is ok, excluded by what its vendor publishes, or says what is wrong."""
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
    for vendor in VENDORS:
        if vendor.title:
            cells = [_cell(vendor, column, found.get((vendor.name, column), [])) for column in COLUMNS]
            lines.append(f"| {vendor.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(vendor: Vendor, column: str, wrong: list[str]) -> str:
    excluded = EXCLUDED.get(vendor.name, {}).get(column)
    if excluded is not None:
        return f"[{excluded['why']}]({excluded['source']})"
    return wrong[0].replace("|", "/").replace("\n", " ") if wrong else "ok"


def written(page: str, rows: str) -> str:
    """Return the page with these rows."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{rows}\n{END}{after}"


async def main() -> None:
    """Run everything, and write the table."""
    from tests.conftest import KEYS, SERVER

    binary = str(Path(sys.executable).parent / "temporal")
    options: Any = {"dev_server_extra_args": SERVER, "search_attributes": KEYS}
    options |= {"dev_server_existing_path": binary, "data_converter": DATA_CONVERTER}
    async with await WorkflowEnvironment.start_local(**options) as environment:
        with tempfile.TemporaryDirectory() as folder:
            async with opened(environment.client, Path(folder)) as made:
                found = await faults(made, VENDORS)
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), table(found)), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
