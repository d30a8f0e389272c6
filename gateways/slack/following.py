"""Follow what no notice tells: steps of runs, votes that decide nothing yet, and requests that were asked before."""

import asyncio
import itertools
import time
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager

import structlog

from backstay.errors import BackstayError
from gateways.slack.board import RunChannel
from people.notices.delivering import NotTaken
from store.store import Store
from system.tasks import background

LOOK_S = 5.0
"""How often is looked."""
MOST_RUNS = 4
"""For how many runs at a time steps are shown: Slack takes about fifty changes a minute."""
SHOWN_BACK_S = 14 * 86_400.0
"""How old a request may be that is shown for the first time, or anew."""
VOTES_EVERY = 3
"""Runs are asked for votes at one look in this number."""
MOST_VOTED_ON = 100
"""How many open requests are asked for votes that decide nothing yet."""
KEPT_S = 90 * 86_400.0
"""How long it is remembered where things stand."""
_FORGET_EVERY_S = 3600.0
log = structlog.get_logger("backstay.slack")


def following(board: RunChannel, store: Store, *, look_s: float = LOOK_S) -> AbstractAsyncContextManager[None]:
    """Keep a channel as the runs are until the block ends."""
    return background(_follow(board, store, look_s))


async def _follow(board: RunChannel, store: Store, look_s: float) -> None:
    forgotten_at = -_FORGET_EVERY_S
    for look in itertools.count():
        wait = look_s
        try:
            await catch_up(board, store)
            if look % VOTES_EVERY == 0:
                for row in await store.requests.page(limit=MOST_VOTED_ON):
                    await _each(board.votes(row), f"{row.workflow_id}/{row.run_id}/{row.request_id}")
            if time.monotonic() - forgotten_at > _FORGET_EVERY_S:
                await store.posts.forget(time.time() - KEPT_S)
                forgotten_at = time.monotonic()
        except NotTaken as error:
            log.warning("slack.waiting", error=str(error))
            wait = max(look_s, error.retry_in_s or 0)
        except BackstayError as error:
            log.warning("slack.waiting", error=str(error))
        except Exception:
            # A message that cannot be drawn must not end what draws the others.
            log.exception("slack.failed")
        await asyncio.sleep(wait)


async def catch_up(board: RunChannel, store: Store) -> None:
    """Show once what has changed since; raises NotTaken where Slack wants to be left alone for a time."""
    receiver = board.channel.receiver
    for workflow_id, run_id, request_id in await store.posts.behind(receiver, time.time() - SHOWN_BACK_S):
        await _each(board.request(workflow_id, run_id, request_id), f"{workflow_id}/{run_id}/{request_id}")
    for head in (await store.posts.following(receiver))[:MOST_RUNS]:
        await _each(board.steps(head), head.run)


async def _each(showing: Awaitable[None], what: str) -> None:
    """Show one thing; where it cannot be shown, it must not hold back the others."""
    try:
        await showing
    except NotTaken as error:
        if error.retry_in_s is not None:
            raise
        log.warning("slack.waiting", what=what, error=str(error))
    except BackstayError as error:
        log.warning("slack.waiting", what=what, error=str(error))
    except Exception:
        log.exception("slack.failed", what=what)
