"""Record one history per shape into tests/replay/histories, in place of those that are kept of it.

python -m tests.replay.record [--beside NAME] [SHAPE ...]

From the tag v0.1.0 on, a kept history is never replaced: `--beside NAME` adds files that are named NAME-SHAPE.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHistory
from temporalio.testing import WorkflowEnvironment

from backstay.client.connecting import DATA_CONVERTER
from tests.conftest import KEYS
from tests.e2e.loop.test_endless import executions_of
from tests.engine import assert_no_task_failure, engine
from tests.replay import continued, models, steered
from tests.replay.shapes import SHAPES, rules
from tests.replay.steps import ended, options

HISTORIES = Path(__file__).parent / "histories"
TEMPORAL = str(Path(sys.executable).parent / "temporal")
SUGGESTED = "limit.historyCount.suggestContinueAsNew"
"""The setting of the server that says after how many events a history is long."""
UNREAD = frozenset({"stackTrace", "identity", "requestId", "workerVersion"})
"""What no replay reads, and only makes a history longer or names a machine."""


async def main(wanted: Collection[str], beside: str) -> None:
    chosen = {name: play for name, play in SHAPES.items() if not wanted or name in wanted}
    groups: dict[int, list[str]] = {}
    for name in sorted(chosen):
        groups.setdefault(continued.LONG_AFTER.get(name, 4096), []).append(name)
    for long_after, shapes in groups.items():
        async with await WorkflowEnvironment.start_local(
            data_converter=DATA_CONVERTER,
            dev_server_existing_path=TEMPORAL,
            dev_server_extra_args=["--dynamic-config-value", f"{SUGGESTED}={long_after}"],
            search_attributes=KEYS,
            identity="recorder",
        ) as environment:
            for name in shapes:
                keep(f"{beside}-{name}" if beside else name, await played(environment.client, name))


def keep(name: str, histories: Sequence[WorkflowHistory]) -> None:
    """Write the histories of all executions of one shape, in place of what is kept under this name."""
    old = re.compile(rf"{re.escape(name)}(-\d+)?\.json")
    for path in [path for path in HISTORIES.iterdir() if old.fullmatch(path.name)]:
        path.unlink()
    for number, history in enumerate(histories, 1):
        path = HISTORIES / f"{name}{'' if number == 1 else f'-{number}'}.json"
        path.write_text(shown(history) + "\n", encoding="utf-8")


async def played(client: Client, name: str) -> list[WorkflowHistory]:
    """Return the histories of all executions of one shape, played in an engine of its own."""
    with tempfile.TemporaryDirectory() as folder:
        given = options(Path(folder)) | models.options(Path(folder))
        given["policy"] = steered.POLICIES.get(name, given["policy"])
        async with engine(client, Path(folder), rules, **given) as opened:
            handle = await SHAPES[name](opened)
            await ended(handle)
            histories = await executions_of(opened, handle.id)
    for history in histories:
        assert_no_task_failure(history)
    return histories


def shown(history: WorkflowHistory) -> str:
    """Return a history without what no replay reads, each event on a line of its own."""

    def read(value: dict[str, Any]) -> dict[str, Any]:
        return {key: inner for key, inner in value.items() if key not in UNREAD}

    events = json.loads(history.to_json(), object_hook=read)["events"]
    return '{"events": [\n' + ",\n".join(json.dumps(event) for event in events) + "\n]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", default="", help="add files under this name, and replace none")
    parser.add_argument("shapes", nargs="*", help="all of them without this")
    asked = parser.parse_args()
    asyncio.run(main(asked.shapes, asked.beside))
