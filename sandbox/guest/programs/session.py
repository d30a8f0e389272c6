"""One program from its first frame to its last."""

import ast
import gc
import os
import sys
from asyncio import events
from collections.abc import Callable
from types import CoroutineType, ModuleType
from typing import Any

from sandbox.guest.programs.after_import import AfterImport
from sandbox.guest.programs.bindings import PACKAGE, install
from sandbox.guest.programs.client import Client
from sandbox.guest.programs.clock import Clock
from sandbox.guest.programs.faults import fault_of
from sandbox.guest.programs.leftovers import settle, waits, watch
from sandbox.guest.programs.loop import Deadlock, Loop, LoopPolicy, keep_order
from sandbox.guest.programs.plain_json import encode
from sandbox.guest.programs.rehearsal import END, START, Rehearsal
from sandbox.guest.programs.seeded import Seeded
from sandbox.guest.programs.self_start import SelfStart
from sandbox.guest.programs.source import FILENAME, Prepared, own, prepare
from sandbox.guest.programs.wire import Wire

_UNSPEAKABLE = '{"error":{"type":"MemoryError","message":"the error itself could not be told","line":null}}'


class Session:
    """Hold what one program runs with."""

    def __init__(self, wire: Wire | Rehearsal, clock: Clock, seeded: Seeded, changes: AfterImport) -> None:
        """Prepare everything that does not depend on the program."""
        self._changes = changes
        self._clock = clock
        self._seeded = seeded
        self._client = Client(wire, clock)
        self._loop: Any = Loop(clock, self._client.make_calls)
        set_policy: Any = events.set_event_loop_policy  # pyright: ignore[reportDeprecated] - the way until Python 3.14
        set_policy(LoopPolicy(self._loop))
        watch(self._client)
        keep_order()

    def answer(self, start: dict[str, Any]) -> str:
        """Run the program of a start frame and return what it ended with, as JSON."""
        try:
            return f'{{"ok":{encode(self._run(start), "the result")}}}'
        except SystemExit as leaving:
            if leaving.code in (None, 0):
                return '{"ok":null}'
            return _told(leaving)
        except BaseException as error:
            return _told(error)

    def _run(self, start: dict[str, Any]) -> Any:
        self._clock.start(start["now"])
        self._seeded.start(start["seed"])
        self._client.start(start["calls_from"])
        prepared = prepare(start["source"])
        self._changes.add("linecache", lambda module: _show(module, start["source"]))
        module = ModuleType("__main__")
        ready = install(start["bindings"], self._client)
        vars(module).update(__file__=FILENAME, asyncio=sys.modules["asyncio"], **ready)
        sys.modules["__main__"] = module
        sys.argv = ["program"]
        try:
            with SelfStart(prepared) as own_start:
                exec(prepared.code, vars(module))  # noqa: S102 - the program is what this process is for
            if own_start.started:
                value = self._loop.results.get(own_start.code, own_start.value)
            else:
                value = self._called(prepared, vars(module)[prepared.entry])
        except Deadlock as stuck:
            raise Deadlock(f"{stuck}{waits(self._loop)}") from None
        settle(self._loop, self._client)
        return value

    def _called(self, prepared: Prepared, entry: Callable[[], Any]) -> Any:
        """Call the program's entry and wait for what it returns."""
        value = entry()
        if isinstance(value, CoroutineType) and _is_plain_body(prepared):
            # A body that never waits may still hand a coroutine to asyncio.run, which no loop may be running for.
            try:
                value.send(None)
            except StopIteration as end:
                return end.value
        return self._loop.run_until_complete(value) if hasattr(value, "__await__") else value


def serve(clock: Clock, seeded: Seeded, changes: AfterImport) -> None:
    """Take the control pipes over, get ready, run one program, and leave at once."""
    wire = Wire()
    _rehearse(Session(Rehearsal(), clock, seeded, changes))
    session = Session(wire, clock, seeded, changes)
    gc.collect()
    # What is here now stays for good; looking at it again would only cost time.
    gc.freeze()
    wire.send('{"ready": 1}')
    wire.send(f'{{"done":{session.answer(wire.receive())}}}')
    # No exit handlers and no finalizers: the program has ended.
    os._exit(0)


def _rehearse(session: Session) -> None:
    end = session.answer(START)
    if end != END:
        raise RuntimeError(f"the rehearsal ended with {end}")
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def _show(linecache: Any, source: str) -> None:
    """Let tracebacks and inspect find the program's lines."""
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(keepends=True), FILENAME)


def _told(error: BaseException) -> str:
    try:
        fault = fault_of(error)
        error.__traceback__ = None
        return f'{{"error":{encode(fault, "the error")}}}'
    except BaseException:
        return _UNSPEAKABLE


def _is_plain_body(prepared: Prepared) -> bool:
    """Return whether the program is a body without anything to wait for."""
    for node in own(prepared.tree.body):
        match node:
            case ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                return False
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name == prepared.entry:
                return False
            case _:
                pass
    return True
