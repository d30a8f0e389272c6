"""Send notices to receivers: each at least once, and those of a run in their order, unless a receiver lets them pass.

Any process may do this for a receiver, several at once: the store hands each notice to one of them at a time.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import structlog

from backstay.approvals.notice import Notice
from backstay.client import Backstay
from backstay.errors import BackstayError, RunNotFound, Transient
from people.notices.recovering import Recovery
from store.notices.outbox import Claim, Lost, Outbox
from store.store import Store
from system.tasks import background

IDLE_S = 3.0
"""How soon what another process has written is looked for."""
SEEN_EVERY_S = 600.0
FORGET_EVERY_S = 3600.0
KEPT_DAYS = 7
SWEEP_EVERY_S = 60.0
ENDED_S = 20.0
"""How long a run that has ended may take to say how."""
MOST_FAILED = 5
"""How many runs may fail to be looked at before the others wait for the next time."""
LET_FINISH_S = 5.0
"""How long what is on its way may take when the worker stops; the rest is sent again by whichever worker lives."""
_UNDO_ENDED = "the undo was ended in Temporal while it waited for people"
log = structlog.get_logger("backstay.notices")


class NotTaken(Exception):
    """A receiver did not take a notice; it is tried again."""

    def __init__(self, why: str, retry_in_s: float | None = None, *, holds: bool = True) -> None:
        """Say why in one line, without secrets, and when the receiver wants to be asked again.

        `holds`: whether what comes next of the run waits until this one is taken.
        """
        super().__init__(why)
        self.retry_in_s = retry_in_s
        self.holds = holds


class Receiver(Protocol):
    """Take notices."""

    @property
    def name(self) -> str:
        """Return the name under which the store knows what it has had; it holds no secret."""
        ...

    async def send(self, notice: Notice) -> None:
        """Take one notice within 45 seconds, perhaps for the second time; raises NotTaken."""
        ...


@asynccontextmanager
async def delivering(outbox: Outbox, receivers: Sequence[Receiver]) -> AsyncGenerator[None]:
    """Send what is written for these receivers until the block ends; those on their way may take a moment more."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(_serve(outbox, receiver, stop)) for receiver in receivers]
    try:
        yield
    finally:
        stop.set()
        if tasks:
            # A receiver that hangs must not take the time that the worker has to end its own work.
            _, slow = await asyncio.wait(tasks, timeout=LET_FINISH_S)
            for task in slow:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(outbox: Outbox, receiver: Receiver, stop: asyncio.Event) -> None:
    stopped = asyncio.ensure_future(stop.wait())
    subscribed_at: float | None = None
    try:
        while not stop.is_set():
            seen = outbox.written
            try:
                if subscribed_at is None or time.monotonic() - subscribed_at > SEEN_EVERY_S:
                    await outbox.subscribe(receiver.name)
                    subscribed_at = time.monotonic()
                sent = await deliver_due(outbox, receiver)
            except BackstayError as error:
                log.warning("notices.waiting", receiver=receiver.name, error=str(error))
                sent = 0
            except Exception:
                # What nobody foresaw must not end what sends: a later look may find it sent.
                log.exception("notices.waiting", receiver=receiver.name)
                sent = 0
            if not sent:
                news = asyncio.ensure_future(outbox.news(seen, IDLE_S))
                await asyncio.wait([news, stopped], return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
    finally:
        stopped.cancel()


async def deliver_due(outbox: Outbox, receiver: Receiver) -> int:
    """Send what is due to one receiver now, those of different runs at the same time; return how many it took."""
    claims = await outbox.claim([receiver.name])
    return sum(await asyncio.gather(*(_deliver(outbox, receiver, claim) for claim in claims)))


async def _deliver(outbox: Outbox, receiver: Receiver, claim: Claim) -> bool:
    notice = claim.notice
    about = {"receiver": receiver.name, "notice": notice.id, "told": notice.event.value}
    try:
        async with asyncio.timeout(45):
            await receiver.send(notice)
    except (NotTaken, TimeoutError) as error:
        refused = error if isinstance(error, NotTaken) else NotTaken("no answer in time")
        again = await outbox.failed(claim, refused.retry_in_s, holds=refused.holds)
        said = log.warning if again else log.error
        said("notice.not_taken" if again else "notice.given_up", **about, tries=claim.tries + 1, error=str(refused))
        return False
    except Exception:
        # A receiver with a bug must not stop the others, nor lose what it was given.
        log.exception("notice.failed", **about)
        await outbox.failed(claim)
        return False
    await outbox.sent(claim)
    return True


def tidying(store: Store, backstay: Backstay, page: str = "") -> AbstractAsyncContextManager[None]:
    """Until the block ends, tell for runs that have ended without saying so, and forget old notices.

    First of all, the requests of a restored store are brought up to date.
    """
    return background(_tidy(store, backstay, page))


async def _tidy(store: Store, backstay: Backstay, page: str) -> None:
    forgotten_at, recovery, hurries = -FORGET_EVERY_S, Recovery(store, backstay), False
    while True:
        try:
            hurries = await recovery.compare()
            await close_lost(store, backstay, page)
            if time.monotonic() - forgotten_at > FORGET_EVERY_S:
                await store.outbox.forget(time.time() - KEPT_DAYS * 86_400)
                forgotten_at = time.monotonic()
        except BackstayError as error:
            hurries = False
            log.warning("notices.untidy", error=str(error))
        except Exception:
            hurries = False
            log.exception("notices.untidy")
        await asyncio.sleep(0 if hurries else SWEEP_EVERY_S)


async def close_lost(store: Store, backstay: Backstay, page: str = "") -> int:
    """Tell for runs that Temporal has ended without their saying so, such as terminated ones; return how many.

    Their requests wait no more. `page` is the address of the page that people decide on.
    """
    requests, runs = await store.requests.unchecked(), await store.runs.unchecked()
    # A request knows its namespace, which a run does not.
    looks: dict[tuple[str, str, str], str | None] = {
        **{(row.run, row.workflow_id, row.workflow_run_id): None for row in runs},
        **{(row.run, row.workflow_id, row.run_id): row.request.get("namespace") for row in requests},
    }
    # Noted before the looks: whatever becomes of them, it is the turn of others next time.
    await store.requests.checked(requests)
    await store.runs.checked(runs)
    told = failed = 0
    for (run, workflow_id, run_id), namespace in looks.items():
        try:
            if not await _is_open(backstay, workflow_id, run_id, namespace):
                told += await store.outbox.lost(await _ended(backstay, run, workflow_id, run_id), page=page)
        except Exception as error:
            # The others must not wait for a run that cannot be looked at; where none can, it is not their fault.
            failed += 1
            if failed == MOST_FAILED:
                raise
            log.warning("notices.unchecked", workflow_id=workflow_id, error=f"{type(error).__name__}: {error}")
    return told


async def _is_open(backstay: Backstay, workflow_id: str, run_id: str, namespace: str | None) -> bool:
    """Return whether a workflow is open; one of another namespace counts as open, for nobody here knows better."""
    here = backstay.client.namespace
    if namespace and namespace != here:
        return True
    try:
        return await backstay.run(workflow_id).is_open(run_id)
    except RunNotFound:
        # Temporal has forgotten it, or never knew it: not everything says of which namespace it is.
        return namespace != here


async def _ended(backstay: Backstay, run: str, workflow_id: str, run_id: str) -> Lost:
    """Return how a workflow ended that works on a run; an undo after the end works on that of another."""
    own = run == f"{workflow_id}/{run_id}"
    result = await _how_it_ended(backstay, workflow_id, run_id) if own else _failed("RunTerminated", _UNDO_ENDED)
    return Lost(run, workflow_id, run_id, result, backstay.client.namespace)


async def _how_it_ended(backstay: Backstay, workflow_id: str, run_id: str) -> dict[str, Any]:
    """Return the Result of a run that has ended, or what stands for it where it left none.

    Raises Transient, and TimeoutError for a run that goes on.
    """
    try:
        # It may have been reset since it was looked at, and then goes on.
        async with asyncio.timeout(ENDED_S):
            return (await backstay.run(workflow_id, run_id).result()).plain()
    except Transient:
        raise
    except BackstayError as error:
        return _failed(type(error).__name__, str(error))


def _failed(kind: str, message: str) -> dict[str, Any]:
    return {"outcome": "failed", "success": False, "error": {"type": kind, "message": message}}
