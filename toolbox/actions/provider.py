"""Actions as a provider: each call runs one function, which calls the tools of the provider behind it."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from backstay.canonical import digest_of
from backstay.errors import ArgumentsInvalid, BackstayError, OutcomeUnknown, ToolChanged
from backstay.tools.tool import Safety
from toolbox.actions.tools import GRACE_S, ActionError, Tools
from toolbox.actions.wrapper import Wrapper
from toolbox.configuration.shape import Shape, ShapedCall
from toolbox.providers.answer import Answer, refused
from toolbox.providers.json_safe import json_safe
from toolbox.providers.listing import ListedTool, Listing, ToolAnnotations
from toolbox.providers.provider import Call, Provider


@dataclass(frozen=True, slots=True)
class _Offered:
    wrapper: Wrapper
    calls: dict[str, tuple[str, ShapedCall]]
    """By the name under which the action calls it: the name of the tool that is there, and its shape."""
    listed: ListedTool


class ActionProvider:
    """Offer those functions whose tools the provider behind them offers."""

    kind = "action"

    def __init__(self, name: str, wrappers: Mapping[str, Wrapper], shape: Shape, behind: Provider | None) -> None:
        self.name = name
        self._wrappers = wrappers
        self._shape = shape
        self._behind = behind
        self._seen: int | None = None
        self._offered: dict[str, _Offered] = {}
        self._listing = Listing()

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return what can be called now; the provider behind it is asked for its tools."""
        return self._listing_over(Listing() if self._behind is None else await self._behind.list(fresh=fresh))

    async def call(self, call: Call) -> Answer:
        """Run one function; ToolUnavailable before, NotSent or OutcomeUnknown after `before_send`."""
        listing = await self.list()
        offered = self._offered.get(call.tool)
        if offered is None:
            raise ToolChanged(
                f"{self.name}.{call.tool} is no longer offered: the provider behind it lacks a tool that it calls"
            )
        still_listed = call.still_listed
        if still_listed is not None:
            still_listed(listing)
            call = replace(call, still_listed=lambda found: still_listed(self._listing_over(found)))
        tools = Tools(call, offered.calls, self._behind or self, ends=time.monotonic() + call.deadline_s)
        answer = await self._outcome(offered.wrapper, tools, call)
        await tools.commit()  # an effect that sent nothing ends like any other
        return answer

    async def close(self) -> None:
        """Do nothing: the provider behind it is closed on its own."""

    async def _outcome(self, wrapper: Wrapper, tools: Tools, call: Call) -> Answer:
        """Return the answer, or raise what is known of the write, whatever the action makes of it."""
        try:
            arguments = wrapper.admit(call.arguments)
        except ArgumentsInvalid as error:
            return refused(f"arguments: {error}")
        if wrapper.tools is None:
            await tools.commit()
        lost = timed_out = False
        try:
            async with asyncio.timeout(call.deadline_s + GRACE_S):
                answer = Answer(success=True, data=json_safe(await wrapper.run(tools, arguments)))
        except ActionError as error:
            answer = refused(str(error))
        except TimeoutError:
            answer, lost, timed_out = refused(f"not done within {call.deadline_s:g} s"), True, True
        except Exception as error:  # the code of an action may fail in any way
            if isinstance(error, BackstayError) and not tools.begun:
                raise
            answer, lost = refused(f"the action failed: {type(error).__name__}"), True
        await tools.finish()
        if tools.fault is not None:
            raise tools.fault
        if tools.written and not answer.success:
            return Answer(success=True, data=json_safe(tools.written[0]))
        if lost and wrapper.tools is None and call.before_send is not None:
            raise OutcomeUnknown(answer.error, timed_out=timed_out)
        return answer

    def _listing_over(self, behind: Listing) -> Listing:
        if self._seen != behind.generation:
            found = {tool.name: tool for tool in behind.tools}
            offers = (self._offer(wrapper, found) for wrapper in self._wrappers.values())
            self._offered = {offered.wrapper.name: offered for offered in offers if offered is not None}
            self._seen = behind.generation
        reason = behind.reason
        if reason is None and not self._offered:
            needed = sorted({name for shaped in self._shape.values() for name in shaped.tool})
            reason = f"{getattr(self._behind, 'name', self.name)} offers none of {', '.join(needed[:10])}"
        tools = tuple(offered.listed for offered in self._offered.values())
        self._listing = Listing(tools=tools, reason=reason, starting=behind.starting, generation=behind.generation)
        return self._listing

    def _offer(self, wrapper: Wrapper, found: Mapping[str, ListedTool]) -> _Offered | None:
        calls: dict[str, tuple[str, ShapedCall]] = {}
        for name in wrapper.calls:
            shaped = self._shape.get(name) or ShapedCall(tool=(name,))
            tool = next((tool for tool in shaped.tool if tool in found), None)
            if tool is None:
                return None
            calls[name] = (tool, shaped)
        behind = [found[tool] for tool, _ in calls.values()]
        origin = [[name, shaped.model_dump(mode="json"), asdict(found[tool])] for name, (tool, shaped) in calls.items()]
        listed = ListedTool(
            name=wrapper.name,
            description=wrapper.description,
            input_schema=json_safe(wrapper.schema),
            annotations=_annotations(wrapper.safety, behind),
            behind=next(iter(calls.values()))[0] if len(calls) == 1 else "",
            origin=digest_of(origin)[:16] if calls else "",
        )
        return _Offered(wrapper, calls, listed)


def _annotations(safety: Safety, behind: list[ListedTool]) -> ToolAnnotations:
    """Return the safety that the action declares, raised when a tool behind it is destructive."""
    destructive = safety is Safety.RESTRICTED_WRITE or any(tool.annotations.destructive for tool in behind)
    return ToolAnnotations(read_only=safety is Safety.READ_ONLY and not destructive, destructive=destructive)
