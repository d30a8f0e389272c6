"""Record one history per shape into tests/replay/histories; only ever add files, never replace one.

python -m tests.replay.record VERSION [SHAPE ...]
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHistory
from temporalio.testing import WorkflowEnvironment

from backstay.calls import DATA_CONVERTER
from tests.conftest import KEYS
from tests.e2e.test_endless import executions_of
from tests.engine import assert_no_task_failure, engine
from tests.replay import continued, models
from tests.replay.shapes import SHAPES, rules
from tests.replay.steps import Play, ended, options

HISTORIES = Path(__file__).parent / "histories"
SUGGESTED = "limit.historyCount.suggestContinueAsNew"
"""The setting of the server that says after how many events a history is long."""


async def main(version: str, *wanted: str) -> None:
    binary = str(Path(sys.executable).parent / "temporal")
    chosen = {name: play for name, play in SHAPES.items() if not wanted or name in wanted}
    continuing = chosen.keys() & continued.SHAPES.keys()
    for shapes, long_after in ((chosen.keys() - continuing, 4096), (continuing, continued.LONG_AFTER)):
        if not shapes:
            continue
        async with await WorkflowEnvironment.start_local(
            data_converter=DATA_CONVERTER,
            dev_server_existing_path=binary,
            dev_server_extra_args=["--dynamic-config-value", f"{SUGGESTED}={long_after}"],
            search_attributes=KEYS,
            identity="recorder",
        ) as environment:
            for name in sorted(shapes):
                for number, history in enumerate(await played(environment.client, chosen[name]), 1):
                    keep(HISTORIES / f"{version}-{name}{'' if number == 1 else f'-{number}'}.json", history)


def keep(path: Path, history: WorkflowHistory) -> None:
    """Write a history that is not kept yet."""
    if path.exists():
        raise SystemExit(f"{path} exists; a kept history is never replaced")
    path.write_text(shown(history) + "\n", encoding="utf-8")


async def played(client: Client, play: Play) -> list[WorkflowHistory]:
    """Return the histories of all executions of one shape, played in an engine of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with engine(
            client, Path(folder), rules, **options(Path(folder)), **models.options(Path(folder))
        ) as opened:
            handle = await play(opened)
            await ended(handle)
            histories = await executions_of(opened, handle.id)
    for history in histories:
        assert_no_task_failure(history)
    return histories


def shown(history: WorkflowHistory) -> str:
    """Return a history without stack traces: they name the machine, and no replay reads them."""

    def without_trace(value: dict[str, Any]) -> dict[str, Any]:
        return {key: inner for key, inner in value.items() if key != "stackTrace"}

    return json.dumps(json.loads(history.to_json(), object_hook=without_trace), indent=2)


if __name__ == "__main__":
    HISTORIES.mkdir(exist_ok=True)
    asyncio.run(main(*sys.argv[1:]))
