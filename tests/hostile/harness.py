"""Run the hostile corpus in lanes: processes that are root, an unprivileged user, or deliberately careless."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hostile.case import Case
from tests.sandbox.places import HOUSE, NOBODY, image, readable_nsjail

__all__ = ["LANES", "NOBODY", "Area", "make_area", "run_corpus"]

LANES, FEW = 2, 40
"""How many lanes there are, and how many programs are so few that one lane is enough; a lane takes long to start."""
_LONGEST_S = 580.0


@dataclass(frozen=True)
class Area:
    """Hold one folder that every user may read, with all code that lanes need, and what jails are made of."""

    folder: Path
    images: Path
    image: str
    nsjail: Path


def make_area(folder: Path) -> Area:
    """Fill the folder; the checkout itself may be closed to other users."""
    folder.chmod(0o755)
    for name in ("backstay", "sandbox", "tests/hostile"):
        shutil.copytree(HOUSE / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    built = image()
    return Area(folder, built.path.parents[1], built.hash, readable_nsjail().path)


async def run_corpus(area: Area, cases: Sequence[Case], *, uid: int, weak: bool = False) -> list[dict[str, Any]]:
    """Return the verdict on every program; fail when a lane does not come to its end or leaves a process behind."""
    kind = f"{'weak' if weak else 'strong'}-{uid}-{len(cases)}"
    lanes = 1 if len(cases) <= FEW else LANES
    async with asyncio.timeout(_LONGEST_S):
        told = await asyncio.gather(
            *(
                _lane(area, cases[number::lanes], area.folder / f"{kind}-{number}", uid, weak=weak)
                for number in range(lanes)
            )
        )
    verdicts = [verdict for lane in told for verdict in lane]
    assert not (ill := [verdict["ill"] for verdict in verdicts if verdict.get("ill")]), ill
    assert weak or not (left := [verdict["left"] for verdict in verdicts if verdict.get("left")]), left
    named = sorted((verdict for verdict in verdicts if "name" in verdict), key=lambda verdict: verdict["name"])
    assert [verdict["name"] for verdict in named] == sorted(case.name for case in cases)
    return named


async def _lane(area: Area, cases: Sequence[Case], folder: Path, uid: int, *, weak: bool) -> list[dict[str, Any]]:
    folder.mkdir()  # noqa: ASYNC240 - nothing else waits
    asked = {
        "folder": str(folder),
        "images": str(area.images),
        "image": area.image,
        "nsjail": str(area.nsjail),
        "cases": [case.name for case in cases],
        "uid": uid,
        "weak": weak,
    }
    lane = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.hostile.lane",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=area.folder,
        env={"PATH": os.defpath, "PYTHONPATH": str(area.folder), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        out, err = await lane.communicate(json.dumps(asked).encode() + b"\n")
    finally:
        if lane.returncode is None:
            lane.kill()
            await lane.wait()
    assert lane.returncode == 0, f"the lane {folder.name} ended with {lane.returncode}: {err.decode()[-3000:]}"
    return [json.loads(line) for line in out.splitlines()]
