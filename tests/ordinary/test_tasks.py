"""Ordinary programs, written before there was an image: nearly all of them run in a jail as they stand."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.isolation.nsjail import Nsjail
from sandbox.programs.frames import Round
from sandbox.programs.sandbox import Sandbox
from tests.requirements import promise
from tests.sandbox.places import image
from tests.sizes import spread

TASKS = Path(__file__).parent / "tasks"
NEARLY_ALL = 0.95


@dataclass(frozen=True)
class Ordinary:
    """Hold one program and what it returns and prints under the interpreter outside."""

    name: str
    kind: str
    source: str
    result: Any
    output: str | None


def ordinary(path: Path) -> Ordinary:
    source = path.read_text(encoding="utf-8")
    said = dict(line.removeprefix("# ").split(": ", 1) for line in source.splitlines()[:3] if line.startswith("# "))
    printed = said.get("output")
    return Ordinary(
        name=path.stem,
        kind=said.get("image", "python"),
        source=source,
        result=json.loads(said["result"]),
        output=None if printed is None else json.loads(printed),
    )


EVERY = [ordinary(path) for path in sorted(TASKS.glob("*.py"))]


async def nothing() -> Sequence[Round]:
    return []


async def differs(sandbox: Sandbox, task: Ordinary) -> str | None:
    start = {"source": task.source, "bindings": {}, "seed": "5" * 32, "now": 1_750_000_000.0, "calls_from": 0}
    halted = await sandbox.advance(
        sandbox.image_hash,
        json.dumps(start).encode(),
        key=None,
        frame=None,
        rounds=nothing,
        tools=frozenset(),
        first_call=0,
    )
    if halted.kind != "finished":
        return f"{halted.kind}: {halted.error}"
    if halted.result != task.result:
        return f"returned {halted.result!r}"
    if task.output is not None and halted.output != task.output:
        return f"printed {halted.output!r}"
    return None


@promise("sandbox:ordinary")
def test_there_are_enough_tasks_for_both_images():
    assert len(EVERY) >= 60
    assert sum(task.kind == "data" for task in EVERY) >= 8


@promise("sandbox:ordinary")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["python", "data"])
async def test_nearly_every_task_runs_unchanged_in_the_image(kind, tmp_path):
    tasks = spread([task for task in EVERY if task.kind == kind], 20 if kind == "python" else 4)
    built = await asyncio.to_thread(image, kind)
    images = built.path.parents[1]
    folder = tmp_path / "profiles"
    async with Sandbox(nsjail=Nsjail.find(), image=built, images=images, folder=folder, ready=2) as sandbox:
        found = {task.name: await differs(sandbox, task) for task in tasks}
    faults = {name: fault for name, fault in found.items() if fault}
    assert len(faults) <= (1 - NEARLY_ALL) * len(tasks), faults
