"""An event loop that never waits: when nothing can go on, the program's calls are made, all at once."""

import sys
from asyncio import events, futures, tasks
from collections import deque
from collections.abc import Callable
from contextvars import Context
from heapq import heappop, heappush
from types import CodeType
from typing import Any
from weakref import WeakSet

from sandbox.guest.programs.clock import Clock

_PATIENCE = 10_000
EXIT_ZERO = (None, 0)
"""The codes of an exit that says of no failure."""
_enter_task: Any = vars(tasks)["_enter_task"]
_leave_task: Any = vars(tasks)["_leave_task"]


def keep_order() -> None:
    """Let as_completed start coroutines in the order in which they are given, not in that of their addresses."""
    real: Any = tasks.as_completed

    def as_completed(fs: Any, *, timeout: float | None = None) -> Any:
        """Return what yields the results of awaitables in the order in which they complete."""
        return real([*map(tasks.ensure_future, fs)], timeout=timeout)

    for module in (tasks, sys.modules["asyncio"]):
        vars(module)["as_completed"] = as_completed


def start_anywhere() -> None:
    """Let create_task take coroutines before the loop runs, as ensure_future does: there is only this one loop."""

    def create_task(coro: Any, **options: Any) -> Any:
        """Run a coroutine beside the others."""
        return events.get_event_loop().create_task(coro, **options)

    for module in (tasks, sys.modules["asyncio"]):
        vars(module)["create_task"] = create_task


def nest_runs(runners: Any) -> None:
    """Let asyncio.run be called where the loop runs already."""
    real: Any = runners.run

    def run(main: Any, **options: Any) -> Any:
        """Run a coroutine and return its result."""
        running = events._get_running_loop()  # noqa: SLF001 - the only way to ask
        return real(main, **options) if running is None else running.run_until_complete(main)

    runners.run = run


class Deadlock(RuntimeError):
    """The program awaits something that nothing will complete."""


class Loop(events.AbstractEventLoop):
    """Run coroutines in the order in which they can go on, by a clock that only moves when nothing else can.

    Calls that have been made are never abandoned: no timer runs between a call and what the program does with its
    answer. A timeout that is due ends what follows.
    """

    def __init__(self, clock: Clock, make_calls: Callable[[], bool]) -> None:
        """Use a function that makes the waiting calls, sets their results, and returns whether there were any."""
        self._clock = clock
        self._make_calls = make_calls
        self._ready: deque[events.Handle] = deque()
        self._timers: list[tuple[float, int, events.TimerHandle]] = []
        self._timed = 0
        self._turns = 0
        self._answered = False
        self._stopped = False
        self._factory: Any = None
        self._on_error: Any = None
        self._generators: WeakSet[Any] = WeakSet()
        self.entry: CodeType | None = None
        """The code of the program's entry."""
        self.entry_tasks: list[Any] = []
        """The tasks that run the entry, in the order in which they were made."""

    def run_until_complete(self, future: Any) -> Any:
        """Run until the future is done and return its result."""
        task = tasks.ensure_future(future, loop=self)
        self._run(task.done)
        return task.result()

    def run_forever(self) -> None:
        """Run until `stop`."""
        self._stopped = False
        self._run(lambda: self._stopped)

    def drain(self) -> None:
        """Run what can go on at once, without time passing and without calls.

        A task that leaves by exit zero keeps no other from its end: those that waited for it leave so, too.
        """
        turns = iter(range(_PATIENCE))

        def done() -> bool:
            return not self._ready or next(turns, None) is None

        while not done():
            try:
                self._run(done)
            except SystemExit as leaving:
                if leaving.code not in EXIT_ZERO:
                    raise

    def _run(self, done: Callable[[], bool]) -> None:
        """Run until it is done; a task that is under way and asks for that stands aside meanwhile."""
        outside = events._get_running_loop()  # noqa: SLF001 - the only way to ask
        current = None if outside is None else tasks.current_task(self)
        if current is not None:
            _leave_task(self, current)
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._generators.add, finalizer=self._finalize)
        events._set_running_loop(self)  # noqa: SLF001 - what every event loop must call
        try:
            while not done():
                self._turn()
        finally:
            events._set_running_loop(outside)  # noqa: SLF001 - what every event loop must call
            sys.set_asyncgen_hooks(*hooks)
            if current is not None:
                _enter_task(self, current)

    def _turn(self) -> None:
        self._clock.tick()
        self._turns += 1
        if not self._answered:
            self._wake()
        if not self._ready:
            self._rest()
        elif self._turns > _PATIENCE:
            # A program that only yields and never rests must not keep its own calls and timers waiting.
            self._turns = 0
            self._answered = self._make_calls()
        for _ in range(len(self._ready)):
            if not self._ready:
                # A nested run has taken what was ready.
                break
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001 - what an event loop does with a handle

    def _rest(self) -> None:
        """Go on to whatever happens next, now that nothing happens by itself."""
        self._turns = 0
        if self._answered:
            self._answered = False
        elif self._make_calls():
            self._answered = True
        elif self._timers:
            self._clock.jump(self._timers[0][0])
        else:
            raise Deadlock(Deadlock.__doc__)

    def _wake(self) -> None:
        """Make ready what is due, in the order in which it was asked for."""
        now = self._clock.elapsed()
        while self._timers and (self._timers[0][0] <= now or self._timers[0][2].cancelled()):
            self._ready.append(heappop(self._timers)[2])

    def _finalize(self, generator: Any) -> None:
        self.call_soon(self.create_task, generator.aclose())

    def time(self) -> float:
        """Return the program's own time."""
        return self._clock.elapsed()

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> events.Handle:
        """Call back in the next turn."""
        handle = events.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> events.TimerHandle:
        """Call back after the given seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> events.TimerHandle:
        """Call back at this time of the loop."""
        handle = events.TimerHandle(when, callback, args, self, context)
        self._timed += 1
        heappush(self._timers, (when, self._timed, handle))
        return handle

    def create_future(self) -> Any:
        """Return a future of this loop."""
        return futures.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> Any:
        """Run a coroutine beside the others."""
        if self._factory is not None:
            task = self._factory(self, coro, context=context) if context else self._factory(self, coro)
        else:
            task = tasks.Task(coro, loop=self, name=name, context=context)
        if self.entry is not None and getattr(coro, "cr_code", None) is self.entry:
            self.entry_tasks.append(task)
        return task

    def set_task_factory(self, factory: Any) -> None:
        """Make tasks with this function."""
        self._factory = factory

    def get_task_factory(self) -> Any:
        """Return what makes the tasks."""
        return self._factory

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """Call the function at once, since there are no threads; return a future that is done."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    async def shutdown_asyncgens(self) -> None:
        """Close the generators that were not exhausted."""
        while self._generators:
            await self._generators.pop().aclose()

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing, since there is none."""

    def stop(self) -> None:
        """End `run_forever`."""
        self._stopped = True

    def close(self) -> None:
        """Stay as it is: the program has this one loop."""

    def is_closed(self) -> bool:
        """Return that it is not."""
        return False

    def is_running(self) -> bool:
        """Return whether it is running."""
        return events._get_running_loop() is self  # noqa: SLF001 - the only way to ask

    def get_debug(self) -> bool:
        """Return that it does not debug."""
        return False

    def set_debug(self, enabled: bool) -> None:  # noqa: FBT001 - asyncio's own signature
        """Ignore it."""

    def set_exception_handler(self, handler: Any) -> None:
        """Tell errors that nobody awaits to this function."""
        self._on_error = handler

    def get_exception_handler(self) -> Any:
        """Return who is told of errors that nobody awaits."""
        return self._on_error

    def call_exception_handler(self, context: Any) -> None:
        """Tell of an error that nobody awaits."""
        if self._on_error is not None:
            self._on_error(self, context)
        else:
            self.default_exception_handler(context)

    def default_exception_handler(self, context: Any) -> None:
        """Print the error."""
        error = context.get("exception")
        told = f": {type(error).__name__}: {error}" if error is not None else ""
        sys.stderr.write(f"{context.get('message', 'error')}{told}\n")

    def _timer_handle_cancelled(self, handle: events.TimerHandle) -> None:
        """Leave it where it is; it is skipped when its time comes."""


class LoopPolicy(events.AbstractEventLoopPolicy):  # pyright: ignore[reportGeneralTypeIssues] - it is a class at run time
    """Know one loop, which asyncio.run and get_event_loop use too."""

    def __init__(self, loop: Any) -> None:
        """Hold the program's loop."""
        self._loop = loop

    def get_event_loop(self) -> Any:
        """Return the loop."""
        return self._loop

    def set_event_loop(self, loop: Any) -> None:
        """Keep the loop there is."""

    def new_event_loop(self) -> Any:
        """Return the loop; there is no second one."""
        return self._loop
