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
    home, found, built, cgroups = await asyncio.to_thread(_parts, nsjail, home, image)
    folder = home / "jails"
    (await prove(found, built, folder, limits=limits, cgroups=cgroups)).demand()
    images = home / "images"
    async with Sandbox(
        nsjail=found, image=built, images=images, folder=folder, cgroups=cgroups, ready=ready, limits=limits
    ) as sandbox:
        yield sandbox


async def examine(*, nsjail: Path | None, home: Path, image: ImageKind) -> Proof:
    """Return what is proven of jails here. Raises as `open_sandbox` where not even one can be made."""
    home, found, built, cgroups = await asyncio.to_thread(_parts, nsjail, home, image)
    return await prove(found, built, home / "jails", cgroups=cgroups)


def _parts(nsjail: Path | None, home: Path, image: ImageKind) -> tuple[Path, Nsjail, Image, Cgroups]:
    home, found = home.absolute(), Nsjail.find(None if nsjail is None else str(nsjail))
    return home, found, build_image(image, home / "images"), find_cgroups()
