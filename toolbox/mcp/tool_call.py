"""Send one call over an open connection and read its answer."""

import asyncio
import re
from dataclasses import replace
from typing import Any

from mcp import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, InputRequiredResult
from pydantic import ValidationError

from backstay.errors import OutcomeUnknown
from backstay.shown import message_line
from toolbox.mcp.connection import McpConnection
from toolbox.mcp.elicitation import VISIT, CallElicitations, elicit_results, input_required, visit_required
from toolbox.mcp.errors import is_lasting, of_fault, of_protocol_error, worded
from toolbox.mcp.http_transport import CAP, GONE, PROBE_S, HttpExchange, current
from toolbox.mcp.streams import FOLLOWS, WHOLE
from toolbox.mcp.tasks import is_task, task_of
from toolbox.mcp.wire import MALFORMED, TOO_LARGE
from toolbox.providers.answer import Answer, answer_of, refused
from toolbox.providers.elicitation import InputRequired, InputResponse
from toolbox.providers.provider import NotSent, ProviderCall

_HANDSHAKE = re.compile(
    r"\b(?:not|before|without|expect\w*|must|requires?|needs?)\b.{0,30}\binitiali[sz]"
    r"|\binitiali[sz]\w*\b.{0,30}\b(?:first|required|expected|needed)\b|\buninitiali[sz]",
    re.IGNORECASE,
)
_FORGOTTEN = re.compile(
    r"\b(?:invalid|expired|unknown|malformed|no such)[ _](?:or expired )?request[ _]?state\b"
    r"|\brequest[ _]?state\b.{0,20}\b(?:invalid|expired|unknown|not found|failed integrity verification)\b",
    re.IGNORECASE,
)
"""In what words the SDKs of servers refuse the state of a question before the tool runs."""
_ROUNDS = 10
"""How often a call is made again that its server only lets wait, as usual clients do."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 0.25
_NO_TOOL = "backstay_no_such_tool"
"""What no server has, so that calling it changes nothing."""


class SessionGone(NotSent):
    """The server no longer knows the session, and the tool never saw the call; it can be made under another one."""


class ToolCallRequest:
    """Send one call and read its answer."""

    def __init__(self, connection: McpConnection, call: ProviderCall, ends: float, *, over_http: bool) -> None:
        """Send over this connection, until the loop's clock shows `ends`."""
        self._connection = connection
        self._call = call
        self._ends = ends
        self._over_http = over_http
        self._exchange: HttpExchange | None = None

    @property
    def _reads(self) -> bool:
        """Return whether the call changes nothing, so that it may be repeated freely."""
        return self._call.before_send is None

    async def answer(self) -> Answer:
        """Return the tool's answer or its question; raises NotSent and OutcomeUnknown."""
        reply = self._call.reply
        told = reply is not None and self._is_told(reply.required)
        if reply is not None and reply.declined and not (told or reply.required.in_call):
            # Without the "no", the call could be made all the same.
            return refused("a person declined what the server asked for first, so the call was not made")
        with self._connection.elicitations.collect(reply) as asked:
            answer = await self._sent(reply if told else None)
            answer = await self._waited_for(answer)
        return _with_elicitations(answer, asked) if asked.unanswered else answer

    def _is_told(self, question: InputRequired) -> bool:
        """Return whether a call says what was answered; older revisions have no field for that, and know it."""
        return not (question.in_call or question.state == VISIT or self._connection.shook_hands)

    async def _sent(self, reply: InputResponse | None, *, anew: bool = True) -> Answer:
        # The findings about one request say nothing of the next.
        self._exchange = HttpExchange(ends=self._ends) if self._over_http else None
        token = current.set(self._exchange)
        try:
            async with asyncio.timeout_at(self._ends):
                result = await self._called(reply)
        except TimeoutError:
            raise OutcomeUnknown(f"no answer within {self._call.deadline_s:g} s", timed_out=True) from None
        except MCPError as error:
            if reply is not None and anew and self._is_forgotten(reply, error):
                return await self._asked_again(reply)
            if (question := self._visit_required(error)) is not None:
                return Answer(success=False, question=question)
            await self._refuse_without_handshake(error)
            refusal = self._refusal(error)
            return replace(refusal, may_have_acted=refusal.may_have_acted or _waits(reply))
        except Exception as error:  # whatever else is not an answer: the request is already under way
            self._refuse_gone()
            return self._unusable(of_fault(error), lasting=isinstance(error, ValidationError | RuntimeError))
        finally:
            current.reset(token)
        if isinstance(result, CallToolResult):
            return await self._read((result.meta or {}).get(WHOLE))
        question = input_required(result)
        if question is None:
            return refused("the server asks for sampling or for roots, which are not available to servers")
        return Answer(success=False, question=question)

    def _visit_required(self, error: MCPError) -> InputRequired | None:
        """Return which address is to be visited first; to a person who has declined that, the refusal is the answer."""
        reply = self._call.reply
        return None if reply is not None and reply.declined else visit_required(error)

    async def _read(self, said: Any) -> Answer:
        """Return what the result says; an answer that cannot be read may still be that of a call that took effect."""
        if not isinstance(said, dict):
            return self._unusable(OutcomeUnknown("the answer is not the result of a call"), lasting=True)
        if is_task(said):
            return self._begun(said)
        try:
            await self._connection.note_answer(self._call.tool, said)
            return answer_of(said)
        except Exception as error:  # a hostile value can make any reading fail
            return self._unusable(of_fault(error), lasting=True)

    def _begun(self, said: dict[str, Any]) -> Answer:
        """Return the task by which the server answers, where it may."""
        if not self._offers_tasks:
            reason = "the server answered by a task although the call did not offer to follow one"
            return self._unusable(OutcomeUnknown(reason), lasting=True)
        try:
            return Answer(success=False, task=task_of(said))
        except OutcomeUnknown as unknown:
            return self._unusable(unknown, lasting=True)

    @property
    def _offers_tasks(self) -> bool:
        """Return whether a task may be the answer: older revisions know none."""
        return self._call.follows and not self._connection.shook_hands

    def _is_forgotten(self, reply: InputResponse, error: MCPError) -> bool:
        """Return whether a server no longer knows its own question, and so refuses an answer before it does anything.

        Of a write, only the words that are known for that prove it: others may come after the act. A declined call is
        not begun anew: its server could make it this time without asking.
        """
        if reply.declined or error.code != INVALID_PARAMS:
            return False
        return self._reads or _FORGOTTEN.search(worded(error)) is not None

    async def _asked_again(self, reply: InputResponse) -> Answer:
        answer = await self._sent(None)
        question = answer.question
        if question is None or question.requests != reply.required.requests:
            return answer
        return await self._sent(replace(reply, required=question), anew=False)

    async def _waited_for(self, answer: Answer) -> Answer:
        """Call again with the state of a server that asks nothing and only wants that back, until it says more."""
        pause_s = _FIRST_PAUSE_S
        for again in range(_ROUNDS + 1):
            if answer.question is None or answer.question.requests:
                return answer
            if again == _ROUNDS or asyncio.get_running_loop().time() + pause_s >= self._ends:
                break
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            try:
                answer = await self._sent(InputResponse(answer.question, None), anew=False)
            except NotSent as error:
                # The round before has reached the server, which may have begun by then.
                raise error if self._reads else OutcomeUnknown(str(error)) from None
        return self._unusable(OutcomeUnknown("the server asks for nothing and does not answer"), lasting=True)

    async def _called(self, reply: InputResponse | None) -> CallToolResult | InputRequiredResult:
        call = self._call
        meta: dict[str, Any] = {"backstay/effect-id": call.effect_id} if call.effect_id else {}
        meta |= {FOLLOWS: True} if self._offers_tasks else {}
        left = max(0.1, self._ends - asyncio.get_running_loop().time())
        return await self._connection.client.session.call_tool(
            call.tool,
            call.arguments,
            read_timeout_seconds=left + 1,
            progress_callback=None if call.on_progress is None else self._progress,
            meta=meta or None,  # type: ignore[arg-type]  # keys of our own
            **replying(reply),
        )

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._call.on_progress is not None:
            of = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            self._call.on_progress(message_line(f"{of} {message or ''}", 200))

    def _refusal(self, error: MCPError) -> Answer:
        self._refuse_gone()
        exchange = self._exchange
        if error.code == TOO_LARGE or (exchange is not None and exchange.too_large):
            reason = f"the answer is larger than {CAP // 1024**2} MB, which is the most one result may have"
            return self._unusable(OutcomeUnknown(reason), lasting=True)
        try:
            return of_protocol_error(error.code, worded(error), exchange)
        except OutcomeUnknown as unknown:
            lasting = error.code == MALFORMED or (exchange is not None and is_lasting(exchange, error.code))
            return self._unusable(unknown, lasting=lasting)
        except Exception as known:  # the cause is an implementation's detail and may quote a payload
            raise known from None

    async def _refuse_without_handshake(self, error: MCPError) -> None:
        """Raise an error when the server takes no call before the handshake that it said it can do without.

        Later calls get it. Whether a write took effect before it was refused, nothing proves, nor does the refusal of
        another call: a refusal may be behind what acts.
        """
        connection, said = self._connection, _wording(error, self._call.tool)
        if connection.shook_hands or _HANDSHAKE.search(said[1]) is None or await self._said_of_no_tool() != said:
            return
        connection.wants_handshake = True
        connection.retire()
        if self._reads:
            raise SessionGone("the server takes no call before a handshake") from None
        why = message_line(worded(error), 200)
        raise OutcomeUnknown(f"the server asked for a handshake when it was called: {why}") from None

    async def _said_of_no_tool(self) -> tuple[int, str] | None:
        """Return in what words the server refuses a tool that it does not have; those of a tool are its own answer."""
        ends = min(self._ends, asyncio.get_running_loop().time() + PROBE_S)
        token = current.set(HttpExchange(ends=ends))
        try:
            async with asyncio.timeout_at(ends):
                await self._connection.client.session.call_tool(_NO_TOOL, {}, **replying(None))
        except MCPError as error:
            return _wording(error, _NO_TOOL)
        except Exception:  # no refusal in words, which tells nothing
            return None
        finally:
            current.reset(token)
        return None

    def _refuse_gone(self) -> None:
        """Raise SessionGone when the server no longer knows the session, and never saw the call."""
        exchange = self._exchange
        if exchange is None or not exchange.session or exchange.probe not in GONE:
            return
        self._connection.retire()
        # A write was not sent only if the server refuses the session itself, and says nothing about the call.
        if self._reads or (exchange.same and not exchange.own):
            raise SessionGone(f"HTTP {exchange.status}: the server no longer knows the session")

    def _unusable(self, error: Exception, *, lasting: bool = False) -> Answer:
        """Raise the error; to a read that would meet it at each try, it is the answer."""
        if lasting and self._reads:
            return refused(str(error))
        raise error from None


def _wording(error: MCPError, tool: str) -> tuple[int, str]:
    """Return what an error says, without the name of the tool that was called."""
    return error.code, error.message.replace(tool, "")


def replying(reply: InputResponse | None) -> dict[str, Any]:
    """Return how a request says that it may be answered by a question, and what answers the one of before."""
    may_ask: dict[str, Any] = {"allow_input_required": True}
    if reply is None:
        return may_ask
    return may_ask | {"input_responses": elicit_results(reply) or None, "request_state": reply.required.state}


def _waits(asked: InputResponse | None) -> bool:
    """Return whether a call is made again only because its server wants its state back, and so may have begun."""
    return asked is not None and not asked.required.requests


def as_result(said: Any) -> CallToolResult:
    """Return what a server says to another request than a call as the result of a call, to be read as one."""
    return CallToolResult(content=[], _meta={WHOLE: said})


def _with_elicitations(answer: Answer, asked: CallElicitations) -> Answer:
    """Return the answer with what the server asked meanwhile, and what it said when nobody answered."""
    said = answer.error if not answer.success else str(answer.data)
    how: Any = {"said": message_line(said or "nothing"), "failed": not answer.success, "flat": True}
    question = InputRequired(requests=tuple(asked.unanswered), **how)
    return replace(answer, question=question)
