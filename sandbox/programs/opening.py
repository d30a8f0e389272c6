"""Open the sandbox of one worker: find nsjail, build the image, prove that jails confine, start the pool."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from sandbox.images.image import Image, ImageKind, build_image
from sandbox.isolation.cgroups import Cgroups, find_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.proof import Proof, prove
from sandbox.limits import Limits
from sandbox.programs.sandbox import Sandbox


@asynccontextmanager
async def open_sandbox(
    *, nsjail: Path | None, home: Path, image: ImageKind, ready: int = 2, limits: Limits | None = None
) -> AsyncGenerator[Sandbox]:
    """Open a sandbox with so many jails kept ready, and end every jail at the end.

    Raises IsolationUnavailable unless every property of a jail is proven here, ImageMissing when none can be built.
    """
    found, built, cgroups = await asyncio.to_thread(_parts, nsjail, home, image)
    (await prove(found, built, _folder(home), limits=limits, cgroups=cgroups)).demand()
    sandbox = Sandbox(
        nsjail=found,
        image=built,
        images=_images(home),
        folder=_folder(home),
        cgroups=cgroups,
        ready=ready,
        limits=limits,
    )
    async with sandbox:
        yield sandbox


async def examine(*, nsjail: Path | None, home: Path, image: ImageKind) -> Proof:
    """Return what is proven of jails here. Raises as `open_sandbox` where not even one can be made."""
    found, built, cgroups = await asyncio.to_thread(_parts, nsjail, home, image)
    return await prove(found, built, _folder(home), cgroups=cgroups)


def _parts(nsjail: Path | None, home: Path, image: ImageKind) -> tuple[Nsjail, Image, Cgroups]:
    return Nsjail.find(None if nsjail is None else str(nsjail)), build_image(image, _images(home)), find_cgroups()


def _images(home: Path) -> Path:
    return home.absolute() / "images"


def _folder(home: Path) -> Path:
    return home.absolute() / "jails"
