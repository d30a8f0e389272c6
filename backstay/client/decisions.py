"""Decide the requests of a run, as they were shown."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from backstay.approvals.approval import Approval, ApprovalRequest, CallVerdict, Verdict
from backstay.approvals.whole import WholeCall, hidden_calls, shown_calls
from backstay.errors import DecisionRefused, Unreachable
from backstay.shown import one_line
from backstay.stored_texts import REF, is_stored_text
from backstay.tools.tool import Safety


class Decisions(ABC):
    """Decide requests; a decision holds for what this handle was given, or has shown."""

    def __init__(self) -> None:
        """Start with nothing shown."""
        self._looked_at: dict[str, str] = {}
        """The digests of the arguments of requests."""

    @abstractmethod
    async def decide(self, approval: Approval | dict[str, Any], *, key: bytes | None = None) -> dict[str, Any]:
        """Decide a request."""

    @abstractmethod
    async def pending(self) -> list[ApprovalRequest]:
        """Return the requests that wait for a person."""

    @abstractmethod
    async def read(self, ref: str, path: str = "") -> Any:
        """Return what the run has stored."""

    @abstractmethod
    async def _query(self, name: str, *given: Any) -> Any:
        """Ask the run."""

    def looked_at(self, requests: Sequence[ApprovalRequest]) -> None:
        """Remember which arguments were shown."""
        self._looked_at |= {request.id: request.args_digest for request in requests}

    async def arguments(self, request_id: str, index: int = 0) -> dict[str, Any]:
        """Return the arguments of a call that an open request is about, whole, also what the request clips.

        Raises DecisionRefused when no such call waits.
        """
        return (await self._whole_call(request_id, index))[0].arguments

    async def whole(self, request: ApprovalRequest) -> dict[int, WholeCall]:
        """Return the calls of an open request of which it does not show everything, whole, by their index.

        Of a plan these are also steps that nobody is asked about. Raises DecisionRefused when it waits no more.
        """
        wanted, shown = hidden_calls(request), shown_calls(request)
        known: dict[int, WholeCall] = {}
        if request.proposal is not None and request.proposal.more:
            first, indexes = await self._whole_call(request.id, min(shown))
            known, wanted = {first.index: first}, wanted | (frozenset(indexes) - shown)
        for index in sorted(wanted - known.keys()):
            known[index], _ = await self._whole_call(request.id, index)
        return known

    async def _whole_call(self, request_id: str, index: int) -> tuple[WholeCall, list[int]]:
        """Return a call, and the indexes of all calls that can be read so."""
        text, offset = "", 0
        facts: dict[str, Any] = {}
        indexes: list[int] = []
        while offset is not None:
            part = await self._query("request", {"id": request_id, "index": index, "offset": offset})
            if part is None:
                raise DecisionRefused(f"request_id: no call {index} of a request {one_line(request_id, 80)} waits")
            text, offset = text + part["text"], part["next"]
            facts, indexes = part.get("call", facts), part.get("indexes", indexes)
        arguments = await self._with_kept(json.loads(text))
        undo = facts.get("undo")
        call = WholeCall(index=index, tool=str(facts.get("tool", "")), arguments=arguments, undo_how=undo)
        known = {
            "undoable": facts.get("undoable", undo is not None),
            "safety": Safety(facts.get("safety", Safety.RESTRICTED_WRITE)),
        }
        return call.model_copy(update=known), indexes

    async def _with_kept(self, value: Any) -> Any:
        """Return arguments with the long texts that are kept apart put back."""
        match value:
            case dict() if is_stored_text(value):
                return await self.read(value[REF])
            case dict():
                return {key: await self._with_kept(item) for key, item in value.items()}
            case list():
                return [await self._with_kept(item) for item in value]
            case _:
                return value

    async def approve(
        self, request: str | ApprovalRequest, *, by: str, key: bytes | None = None, **more: Any
    ) -> dict[str, Any]:
        """Approve a request, of arguments of any length.

        `calls`, `comment`, `remember`, and of a plan `option`, `toggles` and `plan_id`, are fields of an Approval.

        It holds for the arguments of the request that is given, or that was last looked at under this id. Raises
        DecisionRefused when the request is about others.
        """
        return await self._say(request, Verdict.APPROVE, by, key, more)

    async def _say(
        self, request: str | ApprovalRequest, verdict: str, by: str, key: bytes | None, more: dict[str, Any]
    ) -> dict[str, Any]:
        """Decide a request as it was shown."""
        if isinstance(request, ApprovalRequest):
            request_id, digest = request.id, request.args_digest
        else:
            if request not in self._looked_at and more.get("args_digest") is None:
                with suppress(Unreachable):  # where arguments are clipped, the run refuses what names no digest
                    await self.pending()
            request_id, digest = request, self._looked_at.get(request, "")
        said = {"request_id": request_id, "verdict": verdict, "by": by, **more}
        if digest and said.get("args_digest") is None:
            said["args_digest"] = digest
        return await self.decide(said, key=key)

    async def reject(
        self, request_id: str, *, by: str, stop: bool = False, key: bytes | None = None, **more: Any
    ) -> dict[str, Any]:
        """Reject a request; with `stop` the run ends."""
        decision = {"request_id": request_id, "verdict": Verdict.REJECT, "by": by, "stop": stop, **more}
        return await self.decide(decision, key=key)

    async def modify(
        self,
        request: str | ApprovalRequest,
        arguments: dict[int, dict[str, Any]],
        *,
        by: str,
        without: Mapping[int, Sequence[str]] | None = None,
        key: bytes | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Change the arguments of calls, by index of the call; arguments that are not named stay.

        `without` names arguments that a call is to be made without. Where every call is changed, this approves the
        request; otherwise all calls are asked about again with the change, in a request of its own, and so they are
        with `ask_again`.
        """
        left_out = {index: tuple(names) for index, names in (without or {}).items() if names}
        calls = {
            index: CallVerdict(verdict="modify", arguments=arguments.get(index, {}), without=left_out.get(index, ()))
            for index in sorted({*arguments, *left_out})
        }
        return await self._say(request, Verdict.MODIFY, by, key, {"calls": calls, **more})

    async def answer(
        self, request: str | ApprovalRequest, answer: Any, *, by: str, key: bytes | None = None, **more: Any
    ) -> dict[str, Any]:
        """Answer a question with any JSON; raises DecisionInvalid for what does not fit the request's schema."""
        return await self._say(request, Verdict.ANSWER, by, key, {"answer": answer, **more})

    async def settle(
        self,
        request: str | ApprovalRequest,
        verdict: Literal["happened", "did_not_happen", "retry"],
        *,
        by: str,
        key: bytes | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Report the outcome of a call whose answer was lost, or have a failed call tried again."""
        return await self._say(request, verdict, by, key, more)
