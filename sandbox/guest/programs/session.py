"""One program from its first frame to its last; calls that it never awaited end it with an error that names them."""

import ast
import gc
import os
import sys
import warnings
from asyncio import events, tasks
from collections.abc import Callable
from types import CoroutineType, FrameType, ModuleType
from typing import Any, Self

from sandbox.guest.programs.bindings import PACKAGE, install, is_binding
from sandbox.guest.programs.clock import Clock
from sandbox.guest.programs.errors import NeverAwaited, describe_error
from sandbox.guest.programs.event_loop import (
    EXIT_ZERO,
    Deadlock,
    Loop,
    LoopPolicy,
    keep_order,
    nest_runs,
    start_anywhere,
)
from sandbox.guest.programs.host_pipe import HostPipe
from sandbox.guest.programs.imports import ModuleChanges
from sandbox.guest.programs.randomness import SeededRandomness
from sandbox.guest.programs.source import FILENAME, PreparedProgram, own, prepare
from sandbox.guest.programs.strict_json import encode
from sandbox.guest.programs.tool_calls import Mcp, ProgramCalls

_NO_DESCRIPTION = '{"error":{"type":"MemoryError","message":"the error itself could not be told","line":null}}'
_COROUTINE = 0x80
_RUNS = ("run", "run_until_complete", "run_forever")
# Every jail runs this before it is ready, so that no other program pays for what only the first one costs.
START: dict[str, Any] = {
    "source": "n, found = 0, []\nwhile n < 3:\n    found.append(await tools.find(n=n))\n    n += 1\nreturn found",
    "bindings": {
        "tools": {
            "find": (
                "from typing import Any\n\nfrom sandbox_py.client import UNSET, call\n\n\n"
                "async def find(*, n: int, limit: int = UNSET) -> Any:\n"
                '    """Find."""\n'
                '    return await call("tools.find", {\n'
                '        name: value for name, value in {"n": n, "limit": limit}.items() if value is not UNSET\n'
                "    })\n"
            )
        }
    },
    "seed": "warm up",
    "now": 0.0,
    "calls_from": 0,
}
END = '{"ok":[0,1,2]}'


def watch(tool_calls: ProgramCalls) -> None:
    """Note every coroutine that is thrown away without having been awaited."""
    sys.set_coroutine_origin_tracking_depth(1)

    def note(coroutine: Any) -> None:
        tool_calls.forgotten.append(_forgotten(coroutine))

    setattr(warnings, "_warn_unawaited_coroutine", note)  # noqa: B010 - no name that types know


def settle(loop: Loop, tool_calls: ProgramCalls) -> None:
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


class WarmUpPipe(HostPipe):
    """Answer each call by its number, without a host."""

    def __init__(self) -> None:
        """Begin with the first call."""
        self._calls = 0

    def send(self, text: str) -> None:
        """Take a frame."""

    def receive(self) -> Any:
        """Return the answer to the last frame."""
        number, self._calls = self._calls, self._calls + 1
        return {"now": float(number), "results": [{"i": number, "ok": number}]}


class EntryWatch:
    """Notice when the top level of a program starts its entry itself: started again, its calls would be made twice."""

    def __init__(self, prepared: PreparedProgram) -> None:
        """Watch for the entry's own code; a top level that starts nothing is not slowed down by being watched."""
        self.code = prepared.own_entry if prepared.is_module and _may_start(prepared) else None
        """The entry's code, when it is watched for."""
        self.started = False
        self.value: Any = None
        """What the entry returned, when it is not a coroutine."""

    def __enter__(self) -> Self:
        """Begin to watch."""
        if self.code is not None:
            sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, value: Any) -> None:
        if frame.f_code is self.code:
            self.started = True
            self.value = value if event == "return" else None
            if event == "return" or frame.f_code.co_flags & _COROUTINE:
                sys.setprofile(None)


def _may_start(prepared: PreparedProgram) -> bool:
    """Return whether the top level calls a function of its own, or something that runs coroutines."""
    body = prepared.tree.body
    names = {*_RUNS, *(node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))}
    for node in own(body):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in names:
                return True
            case _:
                pass
    return False


class Session:
    """Hold what one program runs with."""

    def __init__(self, pipe: HostPipe, clock: Clock, randomness: SeededRandomness, changes: ModuleChanges) -> None:
        """Prepare everything that does not depend on the program."""
        self._changes = changes
        self._clock = clock
        self._randomness = randomness
        self._tool_calls = ProgramCalls(pipe, clock)
        self._loop: Any = Loop(clock, self._tool_calls.make_calls)
        set_policy: Any = events.set_event_loop_policy  # pyright: ignore[reportDeprecated] - the way until Python 3.14
        set_policy(LoopPolicy(self._loop))
        watch(self._tool_calls)
        keep_order()
        start_anywhere()
        changes.add("asyncio.runners", nest_runs)

    def answer(self, start: dict[str, Any]) -> str:
        """Run the program of a start frame and return what it ended with, as JSON."""
        try:
            value = self._value(start)
            settle(self._loop, self._tool_calls)
            return f'{{"ok":{encode(value, "the result")}}}'
        except BaseException as error:
            return _error_frame(error)

    def _value(self, start: dict[str, Any]) -> Any:
        """Return what the program returns; one that leaves by exit zero returns nothing."""
        try:
            return self._run(start)
        except SystemExit as leaving:
            if leaving.code in EXIT_ZERO:
                return None
            raise

    def _run(self, start: dict[str, Any]) -> Any:
        self._clock.start(start["now"], start.get("given_s"))
        self._randomness.start(start["seed"])
        self._tool_calls.start(start["calls_from"])
        prepared = prepare(start["source"])
        self._changes.add("linecache", lambda module: _show(module, start["source"]))
        module = ModuleType("__main__")
        ready = install(start["bindings"], self._tool_calls)
        given = {name: sys.modules[name] for name in ("asyncio", "json", "re")}
        mcp = Mcp(self._tool_calls, start.get("tools", {}))
        vars(module).update(__file__=FILENAME, mcp=mcp, exit=sys.exit, quit=sys.exit, **given, **ready)
        sys.modules["__main__"] = module
        sys.argv = ["program"]
        watched = EntryWatch(prepared)
        try:
            self._loop.entry = prepared.own_entry
            with watched:
                exec(prepared.code, vars(module))  # noqa: S102 - the program is what this process is for
            value = watched.value
            if not watched.started and not self._loop.entry_tasks:
                value = self._called(prepared, vars(module)[prepared.entry])
            if value is None:
                value = self._entry_result()
        except SystemExit as leaving:
            # A script may hand on what its entry returned, which says of no failure.
            if not any(returned is leaving.code for returned in (watched.value, *self._returned())):
                raise
            value = leaving.code
        except Deadlock as stuck:
            raise Deadlock(f"{stuck}{waits(self._loop)}") from None
        return value

    def _entry_result(self) -> Any:
        """Return what the entry returned to the tasks that the program made of it; those still under way end first."""
        for task in self._loop.entry_tasks:
            if not task.done():
                self._loop.run_until_complete(task)
        for task in self._loop.entry_tasks:
            if getattr(task, "_log_traceback", False):
                # It failed, and the program has not looked.
                task.result()
        returned = self._returned()
        return returned[-1] if returned else None

    def _returned(self) -> list[Any]:
        """Return what the entry has returned to each task that the program made of it."""
        ended = [task for task in self._loop.entry_tasks if task.done() and not task.cancelled()]
        return [task.result() for task in ended if task.exception() is None]

    def _called(self, prepared: PreparedProgram, entry: Callable[[], Any]) -> Any:
        """Call the program's entry and wait for what it returns."""
        value = entry()
        if isinstance(value, CoroutineType) and _is_plain_body(prepared):
            # A body that never waits may still hand a coroutine to asyncio.run, which no loop may be running for.
            try:
                value.send(None)
            except StopIteration as end:
                return end.value
        return self._loop.run_until_complete(value) if hasattr(value, "__await__") else value


def serve(clock: Clock, randomness: SeededRandomness, changes: ModuleChanges) -> None:
    """Take the control pipes over, get ready, run one program, and leave at once."""
    pipe = HostPipe()
    _warm_up(Session(WarmUpPipe(), clock, randomness, changes))
    session = Session(pipe, clock, randomness, changes)
    gc.collect()
    # Objects that exist now stay for good; looking at them again would only cost time.
    gc.freeze()
    pipe.send('{"ready": 1}')
    pipe.send(f'{{"done":{session.answer(pipe.receive())}}}')
    # No exit handlers and no finalizers: the program has ended.
    os._exit(0)


def _warm_up(session: Session) -> None:
    end = session.answer(START)
    if end != END:
        raise RuntimeError(f"the warm-up ended with {end}")
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def _show(linecache: Any, source: str) -> None:
    """Let tracebacks and inspect find the program's lines."""
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(keepends=True), FILENAME)


def _error_frame(error: BaseException) -> str:
    try:
        description = describe_error(error)
        error.__traceback__ = None
        return f'{{"error":{encode(description, "the error")}}}'
    except BaseException:
        return _NO_DESCRIPTION


def _is_plain_body(prepared: PreparedProgram) -> bool:
    """Return whether the program is a body without anything to wait for."""
    for node in own(prepared.tree.body):
        match node:
            case ast.Await() | ast.AsyncFor() | ast.AsyncWith() | ast.comprehension(is_async=1):
                return False
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name == prepared.entry:
                return False
            case _:
                pass
    return True
