"""Calls and tasks that a program started and never awaited: it ends with an error that names them."""

import gc
import sys
import warnings
from asyncio import tasks
from types import CoroutineType, FrameType
from typing import Any

from sandbox.guest.programs.bindings import is_binding
from sandbox.guest.programs.errors import NeverAwaited
from sandbox.guest.programs.event_loop import Loop
from sandbox.guest.programs.source import FILENAME
from sandbox.guest.programs.tool_calls import ToolCalls


def watch(tool_calls: ToolCalls) -> None:
    """Note every coroutine that is thrown away without having been awaited."""
    sys.set_coroutine_origin_tracking_depth(1)

    def note(coroutine: Any) -> None:
        tool_calls.forgotten.append(_forgotten(coroutine))

    setattr(warnings, "_warn_unawaited_coroutine", note)  # noqa: B010 - no name that types know


def settle(loop: Loop, tool_calls: ToolCalls) -> None:
    """Cancel what still runs when the program has returned.

    Raises NeverAwaited when a call was started that will not be made.
    """
    left = tasks.all_tasks(loop)
    faults = [_unfinished(coroutine) for task in left if _is_unbegun(coroutine := task.get_coro())]
    faults += [f"{tool} was started, but nothing awaits it; await it before returning" for tool in tool_calls.waiting()]
    if not faults:
        for task in left:
            task.cancel()
        loop.drain()
        faults += [f"{tool} was started while the program ended, so it is not made" for tool in tool_calls.waiting()]
    faults += tool_calls.forgotten
    faults += [_forgotten(found) for found in gc.get_objects() if _is_unbegun(found)]
    if faults:
        raise NeverAwaited("; ".join(sorted(set(faults))))


def waits(loop: Loop) -> str:
    """Return where in the program its tasks wait."""
    places = sorted({place for task in tasks.all_tasks(loop) if (place := _place(task.get_coro()))})
    return f" (line {', '.join(map(str, places[:5]))})" if places else ""


def _place(coroutine: Any) -> int:
    """Return the innermost line of the program in a chain of coroutines that await each other."""
    line = 0
    while coroutine is not None:
        frame: FrameType | None = getattr(coroutine, "cr_frame", None)
        if frame is not None and frame.f_code.co_filename == FILENAME:
            line = frame.f_lineno
        coroutine = getattr(coroutine, "cr_await", None)
    return line


def _is_unbegun(found: Any) -> bool:
    if not isinstance(found, CoroutineType):
        return False
    return found.cr_frame is not None and not found.cr_running and not found.cr_suspended


def _unfinished(coroutine: Any) -> str:
    return f"{_name(coroutine)} was started as a task, but the program returned before it ran; await the task"


def _forgotten(coroutine: Any) -> str:
    origin = coroutine.cr_origin
    where = f" (line {origin[0][1]})" if origin and origin[0][0] == FILENAME else ""
    return f"{_name(coroutine)} was called, but never awaited{where}; write `await {_name(coroutine)}(...)`"


def _name(coroutine: Any) -> str:
    """Return the name by which the program calls the function."""
    filename: str = coroutine.cr_code.co_filename
    if is_binding(filename):
        return filename.strip("<>").removeprefix("sandbox_py.")
    return coroutine.__qualname__
