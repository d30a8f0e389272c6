"""Keep the store in SQLite, for one host; the rest of the store is portable SQL."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import structlog
from sqlalchemy import URL, Connection, create_engine, event

from backstay.errors import SettingsInvalid, StoreUnavailable
from store.database.database import BUSY_TIMEOUT_S, LOCK_WAIT_S, NOTES, Answer
from store.database.faults import faults
from store.database.host_time import host_time
from store.faults import unavailable
from system.locks import async_file_lock
from system.places import WatchedPath

_log = structlog.get_logger(__name__)


_THREADS = 4
_TOGETHER = 32
"""At most this many writes share a transaction."""
_Answered: TypeAlias = tuple[Any, BaseException | None]
"""What work answered, or what it raised."""
_LOG_AFTER_S = 1.0
_HERE = Path(__file__).parent
_CONNECT = tuple(
    line for line in (_HERE / "sqlite_connect.sql").read_text(encoding="utf-8").splitlines() if line[:2] != "--"
)
_BEGIN = (_HERE / "sqlite_begin.sql").read_text(encoding="utf-8").strip()


class SqliteDatabase:
    """Run each piece of work in one thread, and writers one after the other.

    An async driver hands every single cursor call to a thread, which takes more than twice the processor time.
    """

    def __init__(self, url: URL, file: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """Prepare the engine; nothing is connected yet."""
        self._file = file
        self._place = WatchedPath("store", file)
        self._busy_timeout_s = busy_timeout_s
        self.before_commit: Callable[[Connection], None] = lambda _: None
        self._asked: list[_WaitingWork] = []
        self._is_writing = False
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="store")
        self._engine = create_engine(
            url,
            hide_parameters=True,
            pool_size=_THREADS,
            connect_args={"timeout": busy_timeout_s},
        )
        event.listen(self._engine, "connect", _on_connect)

    async def read(self, work: Callable[[Connection], Answer]) -> Answer:
        """Run work that only reads."""
        return await asyncio.wrap_future(self._threads.submit(self._run, work))

    async def write(self, work: Callable[[Connection], Answer]) -> Answer:
        """Run work that writes; no other writer runs between its statements.

        Work that has begun finishes even if the caller is cancelled. It may be run again, where it shares a transaction
        with work that fails.
        """
        asked = _WaitingWork(work, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        self._write_next()
        if asked in self._asked:
            await self._turn_of(asked)
        return await asyncio.shield(asked.answer)

    async def timekeeper(self) -> Callable[[Connection], float]:
        """Return what tells the time of the host that holds the file."""
        now = await asyncio.to_thread(host_time, self._file)
        return lambda _: now()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Lock a file beside the database; the kernel releases the lock when this process dies."""
        path = self._file.with_name(self._file.name + ".lock")
        waits = asyncio.get_running_loop().call_later(_LOG_AFTER_S, lambda: _log.info("store.waits", lock=str(path)))
        async with AsyncExitStack() as stack:
            with faults():
                try:
                    await stack.enter_async_context(async_file_lock(path, wait_s=LOCK_WAIT_S))
                except TimeoutError:
                    raise StoreUnavailable(
                        f"store: another process has held {path} for {LOCK_WAIT_S:g} s; see what it is doing"
                    ) from None
                finally:
                    waits.cancel()
            yield

    async def close(self) -> None:
        """Finish what is running and close every connection."""
        await asyncio.to_thread(self._threads.shutdown)
        self._engine.dispose()

    def _run(self, work: Callable[[Connection], Answer], *, writes: bool = False) -> Answer:
        with faults(), self._engine.begin() as connection:
            if writes:
                # Takes the write lock at the start, so that what a transaction reads is still true when it writes.
                connection.exec_driver_sql(_BEGIN)
            # Rows written into a file that was deleted or replaced are forgotten with it.
            if fault := self._place.fault():
                raise StoreUnavailable(fault)
            connection.info.pop(NOTES, None)
            return work(connection)

    async def _turn_of(self, asked: "_WaitingWork") -> None:
        """Wait until work has begun; SQLite alone lets writers poll, and some would wait forever."""
        try:
            await asyncio.wait([asked.answer], timeout=self._busy_timeout_s)
        finally:
            late = asked in self._asked
            if late:
                self._asked.remove(asked)
        if late:
            raise StoreUnavailable(
                f"store: no turn to write within {self._busy_timeout_s:g} s; the database is locked or overloaded"
            )

    def _write_next(self) -> None:
        """Write what was asked for meanwhile, all in one transaction; the disk is waited for once."""
        if self._is_writing or not self._asked:
            return
        some, self._asked = self._asked[:_TOGETHER], self._asked[_TOGETHER:]
        loop = asyncio.get_running_loop()
        try:
            writing = self._threads.submit(self._run_together, [asked.work for asked in some])
        except RuntimeError as error:
            # It was closed.
            _give(some, [(None, unavailable(error))] * len(some))
            return
        self._is_writing = True
        writing.add_done_callback(lambda done: loop.call_soon_threadsafe(self._written, some, done))

    def _written(self, some: "Sequence[_WaitingWork]", done: "Future[list[_Answered]]") -> None:
        self._is_writing = False
        _give(some, done.result())
        self._write_next()

    def _run_together(self, works: Sequence[Callable[[Connection], Any]]) -> "list[_Answered]":
        """Run works in one transaction; return what each answers, or raises.

        Where one fails, nothing is kept, and the others run again without it.
        """
        answers: dict[int, _Answered] = {}
        left, at = list(range(len(works))), -1

        def whole(connection: Connection) -> dict[int, Any]:
            nonlocal at
            found: dict[int, Any] = {}
            for at in left:
                found[at] = works[at](connection)
                # For each by itself, so that a chain that cannot go on fails nobody but who adds to it.
                self.before_commit(connection)
            at = -1
            return found

        while left:
            try:
                answers |= {place: (answer, None) for place, answer in self._run(whole, writes=True).items()}
                left = []
            except BaseException as fault:
                # Beginning and committing concern all of them.
                failed = left if at < 0 else [at]
                answers |= dict.fromkeys(failed, (None, fault))
                left = [place for place in left if place not in failed]
                at = -1
        return [answers[place] for place in range(len(works))]


@dataclass(frozen=True, eq=False)
class _WaitingWork:
    """Hold work that waits for a transaction, and who waits for its answer."""

    work: Callable[[Connection], Any]
    answer: "asyncio.Future[Any]"


def _give(some: Sequence[_WaitingWork], answers: Sequence[_Answered]) -> None:
    for asked, (answer, fault) in zip(some, answers, strict=True):
        if asked.answer.done():
            continue
        if fault is None:
            asked.answer.set_result(answer)
        else:
            asked.answer.set_exception(fault)
            # Nobody hears of it where the caller was cancelled.
            asked.answer.exception()


def _on_connect(connection: Any, _record: Any) -> None:
    """Set the connection up for durable writes; `_run` begins transactions, not the driver."""
    connection.isolation_level = None
    for statement in _CONNECT:
        answer = connection.execute(statement).fetchone()
        if answer is not None and answer[0] != "wal":
            raise SettingsInvalid(
                f"BACKSTAY_DATABASE_URL: SQLite answers {answer[0]!r} to {statement!r}; put the file on a local disk"
            )
