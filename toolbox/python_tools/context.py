"""What a Python tool can do in one call: read with other tools, write with one of them, ask a person."""

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from backstay.canonical import canonical
from backstay.errors import OutcomeUnknown, ToolUnavailable
from backstay.python_tools.context import Asked, CallRefused, Declined, ToolContext, ToolError
from backstay.python_tools.tool import ToolOptions
from toolbox.configuration.shape import ShapedCall
from toolbox.providers.elicitation import ElicitationRequest, InputRequired
from toolbox.providers.provider import Call, Provider

GRACE_S = 1.0
"""How much longer a tool may take than the provider behind it, whose timeout says more."""


class CallContext(ToolContext):
    """Call the tools of the provider that stands behind a Python tool, under the one deadline and effect of its call.

    The ruling on the call covers them: the policy knows which tools a Python tool may call. Others are refused.
    """

    def __init__(
        self,
        call: Call,
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
        except ToolError:
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
        asked = Asked(question, schema)
        place, self._questions = self._questions, self._questions + 1
        if place >= len(self._answers):
            raise asked
        known = self._answers[place]
        if known["question"] != question:
            raise CallRefused("it asks something else than the last time; ask the same questions in the same order")
        if known["declined"]:
            raise Declined("a person was asked and declined")
        return asked.admit(known["answer"])

    def question(self, asked: Asked) -> InputRequired:
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

    async def _ask_provider(self, tool: str, arguments: dict[str, Any], *, writing: bool) -> Any:
        if self._provider is None:
            raise CallRefused(f"the tool may not call {tool!r}: it has no provider")
        offered, shaped = self._calls[tool]
        call = Call(
            tool=offered,
            arguments=shaped.fill(arguments),
            deadline_s=max(0.1, self._ends - time.monotonic()),
            effect_id=self._call.effect_id if writing else None,
            before_send=self.begin if writing and self._call.before_send is not None else None,
            still_listed=None if self.begun else self._call.still_listed,
            caller=self._call.caller,
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


def _answers(call: Call) -> list[dict[str, Any]]:
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
