"""Make pictures fit what a model takes, in a process of their own, and keep the last ones."""

import asyncio
import importlib.util
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backstay.task.media import MOST_PIXELS, Media, media_of
from system.children import end_group, launched

MOST_SENT = 3_700_000
"""Bytes of one picture; in base64 they are the 5 MB that vendors take."""
_SCRIPT = Path(__file__).with_name("shrinking.py")
_WITHIN_S = 30.0
_LIMITS = ("CPU=20", f"AS={2 << 30}", "FSIZE=0", "CORE=0", "NOFILE=64")
_KEPT = 64_000_000
_AT_ONCE = 2
_HOW = "; install backstay[images], so that it is made to fit"


@dataclass(frozen=True)
class FittedMedia:
    """Hold a picture or PDF as a model is shown it, or why it is not."""

    media: Media
    data: bytes = field(default=b"", repr=False)
    fault: str = ""


class Fitting:
    """Make pictures fit."""

    def __init__(self) -> None:
        """Keep none yet."""
        self._kept: OrderedDict[tuple[str, int], FittedMedia] = OrderedDict()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def fit(self, media: Media, side: int, read: Callable[[], Awaitable[bytes]]) -> FittedMedia:
        """Return a picture with no side longer than this, or a PDF as it is; raises whatever reading it raises."""
        if media.fault:
            return FittedMedia(media, fault=media.fault)
        key = (media.ref, side if media.kind == "image" else 0)
        if (known := self._kept.get(key)) is None:
            data = await read()
            known = FittedMedia(media, data) if media.kind == "pdf" else await self._fitted(media, data, side)
            self._keep(key, known)
        self._kept.move_to_end(key)
        return known

    def _keep(self, key: tuple[str, int], fitted: FittedMedia) -> None:
        self._kept[key] = fitted
        while len(self._kept) > 1 and sum(len(kept.data) for kept in self._kept.values()) > _KEPT:
            self._kept.popitem(last=False)

    async def _fitted(self, media: Media, data: bytes, side: int) -> FittedMedia:
        if importlib.util.find_spec("PIL") is None:
            fits = max(media.width, media.height) <= side and len(data) <= MOST_SENT
            return (
                FittedMedia(media, data)
                if fits
                else FittedMedia(media, fault=f"it is larger than this model takes{_HOW}")
            )
        async with self._turns:
            written = await _shrunk(data, side)
        if written is None:
            return FittedMedia(media, fault="it cannot be decoded")
        fitted = media if not written else media_of(written, "image/png", media.name)
        if fitted is None or fitted.fault or len(written) > MOST_SENT:
            return FittedMedia(media, fault="it cannot be made small enough")
        return FittedMedia(fitted.model_copy(update={"ref": media.ref}), written or data)


async def _shrunk(data: bytes, side: int) -> bytes | None:
    """Return a picture made to fit, nothing where it fits as it is, or None where it cannot be decoded."""
    command = [sys.executable, "-I", str(_SCRIPT), str(side), str(MOST_SENT), str(MOST_PIXELS)]
    pipes: Any = {
        "stdin": asyncio.subprocess.PIPE,
        "stdout": asyncio.subprocess.PIPE,
        "stderr": asyncio.subprocess.DEVNULL,
    }
    process = await asyncio.create_subprocess_exec(
        *launched(command, limits=_LIMITS), env={}, start_new_session=True, **pipes
    )
    try:
        async with asyncio.timeout(_WITHIN_S):
            written, _ = await process.communicate(data)
    except TimeoutError:
        return None
    finally:
        with suppress(ProcessLookupError):
            await end_group(process, ask_s=0.1)
    return written if process.returncode == 0 else None
