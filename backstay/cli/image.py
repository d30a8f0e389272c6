"""The commands for the root images that programs run in."""

import asyncio
from typing import Any, Literal

from backstay.cli.session import quiet
from backstay.cli.terminal import Terminal
from backstay.library import room
from backstay.settings import Settings


async def build(kind: Literal["python", "data"] | None = None) -> int:
    """Build a root image from this interpreter, and name its hash; without a kind, the one of BACKSTAY_IMAGE.

    Parameters
    ----------
    kind:
        python: the standard library; data: numpy and pandas too
    """
    settings = Settings.load()
    quiet(settings)
    images = settings.home.absolute() / "images"
    made: Any = await asyncio.to_thread(room("sandbox.image").build_image, kind or settings.image, images)
    Terminal().result(f"{made.kind:<8} {made.hash}  Python {made.python}  {made.path}")
    return 0
