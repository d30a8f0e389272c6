"""Tell those who watch a run what its model is saying, without its secrets."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from backstay.errors import BackstayError
from backstay.redaction.arriving import ArrivingText
from backstay.redaction.redactor import Redactor
from backstay.requests import AskModel
from store.deltas import Deltas

EVERY_S = 0.15
"""How often what was said is passed on: often enough to be read along, and few enough writes."""


class Telling:
    """Pass on one answer while it arrives."""

    def __init__(self, deltas: Deltas, ask: AskModel, stream: int, redactor: Redactor) -> None:
        """Mask what this redactor finds."""
        self._deltas = deltas
        self._ask = ask
        self._stream = stream
        self._text = ArrivingText(redactor)
        self._heard = asyncio.Event()
        self.passing = asyncio.Lock()
        """Held while a piece is on its way to the store: what is dropped then is not told again."""

    def say(self, text: str) -> None:
        """Take what the model says next; it is passed on in the background."""
        self._text.add(text)
        self._heard.set()

    async def keep_telling(self) -> None:
        """Pass on what was said, until nobody needs it any more."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            # Apart: with thousands of known secrets this takes a moment.
            async with self.passing:
                if not await self._append(await asyncio.to_thread(self._text.ready)):
                    return
            await asyncio.sleep(EVERY_S)

    async def end(self) -> None:
        """Pass on the rest of an answer that has come whole."""
        await self._append(await asyncio.to_thread(self._text.rest))

    async def _append(self, text: str) -> bool:
        return not text or await self._deltas.append(self._ask.run, self._stream, self._ask.step, text)


@contextlib.asynccontextmanager
async def open_telling(deltas: Deltas, ask: AskModel, redactor: Redactor) -> AsyncGenerator[Telling | None]:
    """Yield what passes an answer on, or None where nobody watches; no fault of it reaches the call of the model."""
    stream: int | None = None
    with contextlib.suppress(BackstayError):
        stream = await deltas.begin(ask.run, ask.step)
    if stream is None:
        yield None
        return
    telling = Telling(deltas, ask, stream, redactor)
    working = asyncio.create_task(telling.keep_telling())
    try:
        yield telling
        if not working.done():
            async with telling.passing:
                working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            with contextlib.suppress(BackstayError):
                await telling.end()
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
