"""Tell clients how their tasks go on, for as long as they listen: `subscriptions/listen` of revision 2026-07-28."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple, cast

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.shared.exceptions import MCPError

from backstay.errors import BackstayError
from gateways.engine_mcp.limits import CallerLimits, TooMany
from gateways.engine_mcp.tasks import MOST_ID, POLL_MS, ServedTask, Tasks, UnknownTask, elicits, require_extension

MOST_TASKS = 16
"""How many tasks one stream tells of."""
LISTEN_S = 900.0
"""How long one stream lasts at most: then the client says anew who it is."""
_ASKED = "taskIds"
_REFUSED = -32000


class TaskNotification(types.Notification[dict[str, Any], Literal["notifications/tasks"]]):
    """Tell how far a task is, as `tasks/get` would."""

    method: Literal["notifications/tasks"] = "notifications/tasks"
    params: dict[str, Any]


class _Stream(NamedTuple):
    """Hold one stream: whose it is, and how it is written to."""

    caller: str
    tell: Callable[[types.ServerNotification], Awaitable[None]]
    meta: dict[str, Any]
    elicits: bool


class Subscriptions:
    """Answer those who listen; what is told is looked up for each caller as `tasks/get` looks it up."""

    def __init__(
        self,
        tasks: Tasks,
        caller: Callable[[ServerRequestContext[Any]], str],
        limits: CallerLimits,
        *,
        listen_s: float = LISTEN_S,
    ) -> None:
        """Tell nobody of a task that is not the caller's."""
        self._tasks = tasks
        self._caller = caller
        self._limits = limits
        self._listen_s = listen_s

    async def listen(
        self, context: ServerRequestContext[Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell of the tasks that are asked about until all have ended, the time is over, or the client leaves."""
        names = _named(params.notifications, context.session.client_capabilities)
        number = context.request_id
        if number is None:
            raise MCPError(types.INVALID_REQUEST, "subscriptions/listen requires a request id")
        meta = {SUBSCRIPTION_ID_META_KEY: number}

        async def tell(notification: types.ServerNotification) -> None:
            await context.session.send_notification(notification, related_request_id=number)

        stream = _Stream(self._caller(context), tell, meta, elicits(context.session.client_capabilities))
        try:
            with self._limits.listening(stream.caller), suppress(TimeoutError):
                async with asyncio.timeout(self._listen_s):
                    await self._serve(stream, names, waits=bool(params.notifications.tools_list_changed))
        except TooMany as error:
            raise MCPError(_REFUSED, str(error)) from None
        return types.SubscriptionsListenResult(_meta=meta)

    async def _serve(self, stream: _Stream, names: tuple[str, ...], *, waits: bool) -> None:
        """Acknowledge, then tell what changes; `waits` to be told of tools, of which there are always the same."""
        known = [name for name in names if await self._is_known(stream.caller, name)]
        agreed = types.SubscriptionFilter.model_validate(
            ({_ASKED: known} if known else {}) | ({"toolsListChanged": True} if waits else {})
        )
        acknowledged = types.SubscriptionsAcknowledgedNotificationParams(notifications=agreed, _meta=stream.meta)
        await stream.tell(types.SubscriptionsAcknowledgedNotification(params=acknowledged))
        told: dict[str, ServedTask | None] = dict.fromkeys(known)
        while told or waits:
            for name, before in list(told.items()):
                told[name] = await self._looked(stream, name, before)
            told = {name: task for name, task in told.items() if task is not None and not task.has_ended}
            if told or waits:
                await asyncio.sleep(POLL_MS / 1000 if told else self._listen_s)

    async def _is_known(self, caller: str, name: str) -> bool:
        try:
            await self._tasks.look(caller, name)
        except UnknownTask:
            return False
        except BackstayError:
            # It cannot be asked about just now; whether it is the caller's is looked at again before anything is told.
            return True
        return True

    async def _looked(self, stream: _Stream, name: str, before: ServedTask | None) -> ServedTask | None:
        """Return how far a task is, and tell it where that has changed; None for a task that is gone."""
        try:
            found = await self._tasks.look(stream.caller, name)
        except UnknownTask:
            return None
        except BackstayError:
            return before or ServedTask.new(name)
        if before is None or _without_times(found) != _without_times(before):
            detailed = found.detailed(elicits=stream.elicits)
            del detailed["resultType"]
            told = TaskNotification(params={**detailed, "_meta": stream.meta})
            await stream.tell(cast("types.ServerNotification", told))
        return found


def _named(asked: types.SubscriptionFilter, capabilities: types.ClientCapabilities | None) -> tuple[str, ...]:
    """Return the tasks that a client asks to be told of; raises MCPError where it may not, or names none."""
    given: Mapping[str, Any] = asked.model_extra or {}
    if given.get(_ASKED) is None:
        return ()
    require_extension(capabilities)
    names = given[_ASKED]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise MCPError(types.INVALID_PARAMS, f"notifications.{_ASKED}: must be a list of task IDs")
    if len(names) > MOST_TASKS:
        raise MCPError(
            types.INVALID_PARAMS,
            f"notifications.{_ASKED}: {len(names)} tasks, and one stream tells of {MOST_TASKS}; listen to fewer",
        )
    return tuple(dict.fromkeys(name for name in names if len(name) <= MOST_ID))


def _without_times(task: ServedTask) -> ServedTask:
    return task._replace(created_at=0, updated_at=0, progress=0)
