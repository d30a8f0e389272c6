"""Work that goes on beside other work, and ends with it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

Value = TypeVar("Value")


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Do work that never ends by itself beside the block, and cancel it when that ends; raises what the work raised."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def in_thread_to_its_end(act: Callable[..., Value], *given: Any) -> Value:
    """Call in a thread, and return or raise only when the thread has ended, also if this is cancelled meanwhile.

    A thread cannot be cancelled, so what must not begin beside it has to wait for it.
    """
    # A future of the executor, and not a task: the end of the loop would cancel a task and leave the thread alone.
    running = asyncio.get_running_loop().run_in_executor(None, partial(act, *given))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from running.exception()
    return running.result()
