"""What people tell a run while it works: the model reads it at its next step."""

from typing import Any

from temporalio import workflow

from backstay import errors
from backstay.approvals.admission import DecisionInvalid
from backstay.authority import Authority
from backstay.bounds import MESSAGE, MESSAGES, size_of
from backstay.shown import one_line
from backstay.task.context import ContextItem
from workflows.asking.said import RunCommand
from workflows.handlers import Handlers

BESIDE = 500
"""Bytes that a message takes in the state of the run besides its text."""
UNREAD = "finish was put off, because a person sent a message meanwhile or had effects undone; read it, decide again"
_NEWS = frozenset({"message", "fact"})
"""What a person says, and facts: these tell of effects that were undone."""


class Messages(Handlers):
    """Take messages, and let no run finish before its model has read them."""

    heard_out = False
    """Whether the model is asked nothing more."""

    @workflow.update(description='Tell the model something: {"text": "leave out France", "by": "you"}')
    async def message(self, ask: Any = None) -> dict[str, Any]:
        """Take a message, which the model reads at its next step; it decides nothing."""
        with self.context.activities.taking_news():
            return await self._answered(lambda: self._said("message", ask, self._heard))

    @message.validator
    def validate_message(self, ask: Any = None) -> None:
        """Refuse at once what is malformed, and what no model would read."""
        self._refuse("message", ask)

    def _authority(self, update: str, said: RunCommand) -> Authority:
        # It decides nothing: each call that follows is ruled on.
        return Authority() if update == "message" else super()._authority(update, said)

    def _refusal(self, update: str, said: RunCommand, more: dict[str, Any]) -> errors.BackstayError | None:
        if update != "message":
            return super()._refusal(update, said, more)
        return self._deaf() or _fault(more, MESSAGES - self.context.state.work.message_bytes)

    def _deaf(self) -> errors.BackstayError | None:
        if self.context.state.task.plan is not None:
            return errors.DecisionRefused("message: the run carries out a plan and asks no model; nobody would read it")
        if self.heard_out or self.context.ending or self.context.state.work.ended is not None:
            return errors.DecisionRefused("message: the run is ending or has ended; follow it up with a new run")
        return None

    async def _heard(self, said: RunCommand, more: dict[str, Any]) -> dict[str, Any]:
        state = self.context.state
        if not state.opened.store:
            # Before it is open, nobody knows what the policy needs to know of people.
            await workflow.wait_condition(lambda: bool(state.opened.store) or self._deaf() is not None)
        if (refused := self._refusal("message", said, more)) is not None:
            raise refused
        text, verified = str(more["text"]), said.proof is not None
        item = ContextItem(kind="message", text=text)
        if not verified and state.doubts_names:
            item = item.model_copy(update={"unverified": True})
        state.append.append(item)
        state.work.message_bytes += _size(text)
        who = one_line(said.by, 100) or "somebody"
        self.context.record(
            "message.received",
            f"{who} says {len(text):,} characters; the model reads them at its next step",
            by=said.by,
            verified=verified,
        )
        return {"state": "received", "verified": verified}

    async def _has_news(self) -> bool:
        """Wait while a person has effects undone, and return whether that, or something else, puts the end off."""
        if self.context.held_up == "undo":
            await workflow.wait_condition(lambda: self.context.held_up != "undo")
        return self._puts_off()

    def _puts_off(self) -> bool:
        """Return whether the model must be asked once more before the run finishes: it has not read some news."""
        if not any(item.kind in _NEWS for item in self.context.state.append):
            return False
        left = self.context.state.ledger.left()
        short = left is not None and left < self.context.state.worst_micro
        limit = self.context.step_refused() or ("too little money is left for another step" if short else None)
        if limit is not None:
            unread = "a message, or what was undone"
            self.context.record("message.unread", f"the run ends before the model has read {unread}: {limit}")
        return limit is None


def _fault(more: dict[str, Any], left: int) -> errors.BackstayError | None:
    """Return what is wrong with a message, or None."""
    unknown = next((name for name in more if name != "text"), None)
    if unknown is not None:
        return DecisionInvalid(f"message: unknown field {one_line(unknown, 80)}; remove it")
    text = more.get("text")
    if not isinstance(text, str) or not text.strip():
        return DecisionInvalid('message.text: required; say what the model is to read, such as {"text": "be brief"}')
    if (size := size_of(text)) > MESSAGE:
        return DecisionInvalid(
            f"message.text: {size:,} bytes of JSON are more than the {MESSAGE:,} allowed; say it in fewer"
        )
    if _size(text) > left:
        return errors.DecisionRefused(
            f"message: all messages of a run may have {MESSAGES:,} bytes together, each with {BESIDE} besides its "
            f"text, and {max(0, left):,} are left; follow it up with a new run when it has ended"
        )
    return None


def _size(text: str) -> int:
    return size_of(text) + BESIDE
