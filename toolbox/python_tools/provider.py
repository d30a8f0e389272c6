"""Functions in Python as a provider: a call runs one function, which works through the provider behind it."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from backstay.canonical import canonical, digest_of
from backstay.errors import ArgumentsInvalid, BackstayError, Denied, OutcomeUnknown, ToolChanged, ToolUnavailable
from backstay.python_tools.context import AnswerNeeded, CallRefused, Declined, ToolContext, ToolError
from backstay.python_tools.function import FunctionOutcome
from backstay.python_tools.safety import Deny
from backstay.python_tools.tool import ToolOptions
from backstay.tools.tool import Safety
from toolbox.configuration.configuration import Shape, ShapedCall
from toolbox.providers.answer import Answer, refused
from toolbox.providers.elicitation import ElicitationRequest, InputRequired
from toolbox.providers.json_safe import json_safe
from toolbox.providers.listing import ListedTool, Listing, ToolAnnotations, in_order
from toolbox.providers.provider import PerUser, Provider, ProviderCall
from toolbox.python_tools.load import LoadedTool
from toolbox.python_tools.threads import Threads
from toolbox.schema import without_key

_MOST_KEPT = 256
_MOST_USERS = 200
_PAUSE_S = 0.2
"""Before the first repeat of a function that failed; doubled for each further one."""
GRACE_S = 1.0
"""How much longer a tool may take than the provider behind it, whose timeout says more."""


class CallContext(ToolContext):
    """Call the tools of the provider that is behind a Python tool, under the one deadline and effect of its call.

    The ruling on the call covers them: the policy knows which tools a Python tool may call. Others are refused.
    """

    def __init__(
        self,
        call: ProviderCall,
        options: ToolOptions,
        calls: Mapping[str, tuple[str, ShapedCall]],
        provider: Provider | None,
        *,
        secrets: Mapping[str, str],
        ends: float,
    ) -> None:
        super().__init__(
            user_id=call.caller.user_id,
            session_id=call.caller.session_id,
            effect_id=call.effect_id or "",
            secrets=secrets,
        )
        self._call = call
        self._options = options
        self._calls = calls
        self._provider = provider
        self._ends = ends
        self._answers = _answers(call)
        self._questions = 0
        self.begun = False
        """Whether the intent was committed."""
        self.ended = False
        """Whether the function has returned; tasks it left running may call nothing any more."""
        self._wrote = False
        self._answered = asyncio.Event()
        self.written: list[Any] = []
        """What the write answered, once it has succeeded."""
        self.fault: Exception | None = None
        """Why the write has no answer; a tool must not hide it."""

    async def read(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool that `reads` names and return its result. Raises ToolError when it fails."""
        self._require(tool, self._options.reads, "reads")
        return await self._ask_provider(tool, arguments, writing=False)

    async def write(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool that `writes` names, once, and return its result. Raises ToolError when it fails."""
        self._require(tool, self._options.writes, "writes")
        if self._wrote:
            raise CallRefused("a tool writes once; make two tools of it")
        self._wrote = True
        try:
            result = await self._ask_provider(tool, arguments, writing=True)
        except (ToolError, AnswerNeeded):
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

    async def ask(self, question: str, schema: Any = None) -> Any:
        """Return what a person answers; until there is an answer, the run of the function ends here."""
        if self._wrote or self.ended:
            raise CallRefused("ask before anything is written, and await the answer")
        return self._answered_by_person(question, schema)

    def _answered_by_person(self, question: str, schema: Any) -> Any:
        asked = AnswerNeeded(question, schema)
        place, self._questions = self._questions, self._questions + 1
        if place >= len(self._answers):
            raise asked
        known = self._answers[place]
        if known["question"] != question:
            raise CallRefused("it asks something else than the last time; ask the same questions in the same order")
        if known["declined"]:
            raise Declined("a person was asked and declined")
        return asked.admit(known["answer"])

    def question(self, asked: AnswerNeeded) -> InputRequired:
        """Return what is asked as the engine keeps it, with the earlier answers."""
        request = ElicitationRequest(key="answer", message=str(asked), form=asked.schema)
        return InputRequired(requests=(request,), state=canonical(self._answers))

    async def finish(self) -> None:
        """Wait for a write that the function did not wait for; after this it may call nothing any more."""
        if self._wrote:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.1, self._ends - time.monotonic() + GRACE_S)):
                    await self._answered.wait()
            if not self._answered.is_set():
                self.fault = OutcomeUnknown("its write has no answer", timed_out=True)
        self.ended = True

    async def begin(self) -> None:
        """Commit the intent, unless that is done. Raises ToolUnavailable when the caller has stopped waiting."""
        if self.ended:
            raise ToolUnavailable("the tool ended before its write was sent; await it")
        await self.commit()

    async def commit(self) -> None:
        """Commit the intent, unless that is done or nobody asks for it."""
        if not self.begun:
            self.begun = True
            if self._call.before_send is not None:
                await self._call.before_send()

    def _require(self, tool: str, named: tuple[str, ...], field: str) -> None:
        if self.ended:
            raise CallRefused(f"{tool!r} is called after the tool has returned; await it")
        if tool not in named or self._provider is None:
            raise CallRefused(f"the tool may not call {tool!r} here; add it to `{field}` of @tool")

    async def _judged(self, tool: str, offered: str, arguments: dict[str, Any]) -> None:
        """Have the operator's own checks look at a call before it is sent. Raises Denied, also where a person says no.

        A check that asks has the whole tool asked about, as if the function had asked.
        """
        judge, provider = self._call.judge, self._provider
        said = None if judge is None or provider is None else await judge(provider.name, offered, arguments)
        if said is None:
            return
        if isinstance(said, Deny):
            raise Denied(f"{tool}: denied by a safety policy: {said.why}")
        if self.begun:
            raise Denied(f"{tool}: a safety policy asks first, and the tool has written before: {said.why}")
        try:
            allowed = self._answered_by_person(f"a safety policy: {said.why}", {"type": "boolean"})
        except Declined:
            allowed = False
        if allowed is not True:
            raise Denied(f"{tool}: a person did not allow what a safety policy asked about")

    async def _ask_provider(self, tool: str, arguments: dict[str, Any], *, writing: bool) -> Any:
        if self._provider is None:
            raise CallRefused(f"the tool may not call {tool!r}: it has no provider")
        offered, shaped = self._calls[tool]
        filled = shaped.fill(arguments)
        await self._judged(tool, offered, filled)
        call = ProviderCall(
            tool=offered,
            arguments=filled,
            deadline_s=max(0.1, self._ends - time.monotonic()),
            effect_id=self._call.effect_id if writing else None,
            before_send=self.begin if writing and self._call.before_send is not None else None,
            still_listed=None if self.begun else self._call.still_listed,
            # What has begun is not made again later: it waits where it is.
            caller=replace(self._call.caller, patience_s=None) if self.begun else self._call.caller,
        )
        try:
            answer = shaped.read(await self._provider.call(call))
        except OutcomeUnknown as error:
            if writing:
                raise
            raise ToolUnavailable(f"{tool}: {error}") from None
        if writing:
            self.begun = True
        if answer.question is not None and not answer.question.in_call:
            raise ToolError("its server asks a question first, which cannot be passed on; call that tool directly")
        if writing and (answer.question is not None or (answer.may_have_acted and not answer.success)):
            raise OutcomeUnknown(answer.error or "its server asked a question amid the call")
        if not answer.success:
            raise ToolError(answer.error or "the tool refused without a reason")
        return answer.data


def _answers(call: ProviderCall) -> list[dict[str, Any]]:
    """Return what people have answered so far, in the order of the questions."""
    if call.reply is None:
        return []
    required = call.reply.required
    last = {
        "question": required.requests[0].message,
        "answer": call.reply.content,
        "declined": call.reply.declined,
    }
    return [*json.loads(required.state or "[]"), last]


@dataclass(frozen=True, slots=True)
class _OfferedFunction:
    tool: LoadedTool
    calls: dict[str, tuple[str, ShapedCall]]
    """By the name under which the function calls it: the name of the tool that is there, and its shape."""
    listed: ListedTool


class PythonProvider:
    """Offer those functions whose tools the provider behind them offers."""

    kind = "python"

    def __init__(
        self,
        name: str,
        tools: Mapping[str, LoadedTool],
        shape: Shape,
        behind: Provider | None,
        secrets: Mapping[str, str],
    ) -> None:
        self.name = name
        self._tools = tools
        self._shape = shape
        self._behind = behind
        self._secrets = secrets
        self._seen: int | None = None
        self._offered: dict[str, _OfferedFunction] = {}
        self._listing = Listing()
        self._threads = Threads(name)
        self._kept: dict[tuple[str, ...], tuple[float, Answer]] = {}
        self._of_users: dict[str, PythonProvider] = {}

    @property
    def needs_owner(self) -> bool:
        """Return whether the provider behind the functions does."""
        return isinstance(self._behind, PerUser) and self._behind.needs_owner

    def of(self, owner: str) -> Provider:
        """Return the same functions over what the provider behind them offers to this owner."""
        if not isinstance(self._behind, PerUser):
            return self
        known = self._of_users.pop(owner, None)
        if known is None:
            behind = self._behind.of(owner)
            known = PythonProvider(self.name, self._tools, self._shape, behind, self._secrets)
        self._of_users[owner] = known  # the most recently used goes last
        while len(self._of_users) > _MOST_USERS:
            self._of_users.pop(next(iter(self._of_users)))
        return known

    @property
    def named(self) -> frozenset[str]:
        """Return the names of all functions, also of those that cannot be called now."""
        return frozenset(tool.function.name for tool in self._tools.values())

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return what can be called now; the provider behind it is asked for its tools."""
        return self._listing_over(Listing() if self._behind is None else await self._behind.list(fresh=fresh))

    async def call(self, call: ProviderCall) -> Answer:
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
        function = offered.tool.function
        if not function.is_async:
            self._threads.check()
        key = (call.caller.user_id, call.tool, offered.listed.origin, digest_of(call.arguments))
        if function.options.cache is not None and (kept := self._kept.get(key)) and kept[0] > time.monotonic():
            return replace(kept[1], cached=True)
        ends = time.monotonic() + call.deadline_s
        context = CallContext(call, function.options, offered.calls, self._behind, secrets=self._secrets, ends=ends)
        answer = await self._outcome(offered, context, call)
        if answer.question is None:
            await context.commit()  # an effect that sent nothing ends like any other
        if function.options.cache is not None and answer.success and call.reply is None:
            self._keep(key, answer, function.options.cache)
        return answer

    async def close(self) -> None:
        """Do nothing: the provider behind it is closed on its own, and threads are not waited for."""

    def _keep(self, key: tuple[str, ...], answer: Answer, seconds: float) -> None:
        self._kept.pop(key, None)
        while len(self._kept) >= _MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = (time.monotonic() + seconds, answer)

    async def _outcome(self, offered: _OfferedFunction, context: CallContext, call: ProviderCall) -> Answer:
        """Return the answer, or raise what is known of the write, whatever the function makes of it."""
        function = offered.tool.function
        try:
            arguments = function.admit(call.arguments)
        except ArgumentsInvalid as error:
            return refused(f"arguments: {error}")
        acts_itself = call.before_send is not None and not function.options.writes
        if acts_itself:
            await context.commit()
        timed_out = False
        try:
            async with asyncio.timeout(call.deadline_s + GRACE_S):
                ended = await self._run(offered, arguments, context)
        except TimeoutError:
            ended, timed_out = FunctionOutcome("raised", error=f"not done within {call.deadline_s:g} s"), True
        await context.finish()
        if context.fault is not None:
            raise context.fault
        if context.written and ended.how != "returned":
            return Answer(success=True, data=json_safe(context.written[0]))
        match ended.how:
            case "returned":
                return Answer(success=True, data=json_safe(ended.data))
            case "asked" if ended.asked is not None:
                return Answer(success=False, question=context.question(ended.asked))
            case "raised" if acts_itself:
                raise OutcomeUnknown(ended.error, timed_out=timed_out)
            case "raised" if isinstance(ended.exception, BackstayError) and not context.begun:
                raise ended.exception
            case _:
                return refused(ended.error or "")

    async def _run(self, offered: _OfferedFunction, arguments: dict[str, Any], context: CallContext) -> FunctionOutcome:
        function = offered.tool.function
        ended = await function.run(arguments, context, self._threads.run)
        for repeat in range(function.options.retries):
            if ended.how != "raised":
                break
            await asyncio.sleep(_PAUSE_S * 2**repeat)
            ended = await function.run(arguments, context, self._threads.run)
        return ended

    def _listing_over(self, behind: Listing) -> Listing:
        if self._seen != behind.generation:
            found = {tool.name: tool for tool in behind.tools}
            offers = (self._offer(tool, found) for tool in self._tools.values())
            self._offered = {offered.listed.name: offered for offered in offers if offered is not None}
            self._seen = behind.generation
        reason = behind.reason
        if reason is None and not self._offered:
            needed = sorted({name for shaped in self._shape.values() for name in shaped.tool})
            reason = f"{getattr(self._behind, 'name', self.name)} offers none of {', '.join(needed[:10])}"
        tools = tuple(offered.listed for offered in self._offered.values())
        told: Any = {"reason": reason, "starting": behind.starting, "connection": behind.connection}
        self._listing = Listing(tools=tools, generation=behind.generation, **told)
        return self._listing

    def _offer(self, tool: LoadedTool, found: Mapping[str, ListedTool]) -> _OfferedFunction | None:
        function, calls = tool.function, dict[str, tuple[str, ShapedCall]]()
        for name in function.options.calls:
            shaped = self._shape.get(name) or ShapedCall(tool=(name,))
            there = next((other for other in shaped.tool if other in found), None)
            if there is None:
                return None
            calls[name] = (there, shaped)
        destructive = any(found[there].annotations.destructive for there, _ in calls.values())
        safety = Safety.RESTRICTED_WRITE if destructive and not tool.hidden else tool.declared.safety
        behind = getattr(self._behind, "name", "")
        listed = ListedTool(
            name=function.name,
            description=function.description,
            input_schema=json_safe(without_key(function.schema, "title")),
            output_schema=json_safe(without_key(function.output_schema, "title")),
            annotations=ToolAnnotations(read_only=safety is Safety.READ_ONLY),
            declared=tool.declared.model_copy(update={"safety": safety}),
            hidden=tool.hidden,
            behind=next(iter(calls.values()))[0] if len(calls) == 1 else "",
            origin=_origin(calls, found, _facts_in_order),
            earlier_origin=_origin(calls, found, _facts),
            calls=tuple(sorted({f"{behind}.{there}" for there, _ in calls.values()})),
        )
        return _OfferedFunction(tool, calls, listed)


def _origin(
    calls: Mapping[str, tuple[str, ShapedCall]],
    found: Mapping[str, ListedTool],
    facts: Callable[[ListedTool], dict[str, Any]],
) -> str:
    """Return a hash of how tools are called and listed; empty without tools."""
    called = [[name, shaped.model_dump(mode="json"), facts(found[there])] for name, (there, shaped) in calls.items()]
    return digest_of(called)[:16] if called else ""


def _facts(listed: ListedTool) -> dict[str, Any]:
    """Return what is compared of a tool that a function calls."""
    return {name: fact for name, fact in asdict(listed).items() if name != "earlier_origin"}


def _facts_in_order(listed: ListedTool) -> dict[str, Any]:
    schemas = {"input_schema": in_order(listed.input_schema), "output_schema": in_order(listed.output_schema)}
    return _facts(listed) | schemas
