"""How an action calls tools: any number of reads, and one write, which is the effect."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from backstay.errors import OutcomeUnknown, ToolUnavailable
from toolbox.configuration.shape import ShapedCall
from toolbox.providers.provider import Call, Provider

GRACE_S = 1.0
"""How much longer an action may take than the provider behind it, whose timeout says more."""


class ActionError(Exception):
    """The action refuses, or its tool did; the text is for the model."""


class Tools:
    """Call the tools of the provider that stands behind an action, under the one deadline and effect of its call."""

    def __init__(
        self,
        call: Call,
        calls: Mapping[str, tuple[str, ShapedCall]],
        provider: Provider,
        *,
        ends: float,
    ) -> None:
        self._call = call
        self._calls = calls
        self._provider = provider
        self._ends = ends
        self.begun = False
        """Whether the intent was committed."""
        self.ended = False
        """Whether the action has returned; tasks it left running may call nothing any more."""
        self._asked = False
        self._answered = asyncio.Event()
        self.written: list[Any] = []
        """What the write answered, once it has succeeded."""
        self.fault: Exception | None = None
        """Why the write has no answer; an action must not hide it."""

    async def read(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that changes nothing and return its result. Raises ActionError when the tool refuses."""
        return await self._ask(tool, arguments, writing=False)

    async def write(self, tool: str, **arguments: Any) -> Any:
        """Call the tool that changes something, once, and return its result. Raises ActionError when it refuses."""
        if self._asked:
            raise ActionError("an action writes once; make two actions of it")
        self._asked = True
        try:
            result = await self._ask(tool, arguments, writing=True)
        except ActionError:
            raise
        except asyncio.CancelledError:
            known = OutcomeUnknown("ended while it was under way", timed_out=True)
            self.fault = known if self.begun else ToolUnavailable(f"{tool}: ended before it was sent")
            raise
        except Exception as error:
            self.fault = error
            raise
        finally:
            self._answered.set()
        self.written.append(result)
        return result

    async def finish(self) -> None:
        """Wait for a write that the action did not wait for; after this it may call nothing any more."""
        if self._asked:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.1, self._ends - time.monotonic() + GRACE_S)):
                    await self._answered.wait()
            if not self._answered.is_set():
                self.fault = OutcomeUnknown("its write has no answer", timed_out=True)
        self.ended = True

    async def begin(self) -> None:
        """Commit the intent, unless that is done. Raises ToolUnavailable when the caller has stopped waiting."""
        if self.ended:
            raise ToolUnavailable("the action ended before its write was sent; await it")
        await self.commit()

    async def commit(self) -> None:
        """Commit the intent, unless that is done or nobody asks for it."""
        if not self.begun:
            self.begun = True
            if self._call.before_send is not None:
                await self._call.before_send()

    async def _ask(self, tool: str, arguments: dict[str, Any], *, writing: bool) -> Any:
        if tool not in self._calls or self.ended:
            fix = "await it before the action returns" if self.ended else "add it to `calls` of @action"
            raise ActionError(f"the action may not call {tool!r} here; {fix}")
        offered, shaped = self._calls[tool]
        call = Call(
            tool=offered,
            arguments=shaped.fill(arguments),
            deadline_s=max(0.1, self._ends - time.monotonic()),
            effect_id=self._call.effect_id if writing else None,
            before_send=self.begin if writing and self._call.before_send is not None else None,
            still_listed=None if self.begun else self._call.still_listed,
        )
        try:
            answer = shaped.read(await self._provider.call(call))
        except OutcomeUnknown as error:
            if writing:
                raise
            raise ToolUnavailable(f"{tool}: {error}") from None
        if writing:
            self.begun = True
        if not answer.success:
            raise ActionError(answer.error or "the tool refused without a reason")
        return answer.data
