"""Draw a run: the message that heads its thread, its steps, and what is told of it."""

from collections.abc import Sequence
from typing import Any

from slack_sdk.models.blocks import Block, MarkdownTextObject, SectionBlock

from backstay.approvals.approval import ApprovalRequest, Links
from backstay.approvals.notice import Notice, NoticeKind
from backstay.effects.compensation import Undone
from backstay.frozen import Frozen
from backstay.shown import LINE_BREAK, for_user, minute, money, one_line
from backstay.task.event import Event
from gateways.slack.drawing.page import BlockPage
from people.runs.words import undone_line

STEPS_OF_MESSAGE = 30
"""How many events one message of a thread shows."""
NOT_SHOWN = frozenset({"model.asked", "summary.created"})
"""Events that would only drown the others."""
_LINE = 200
_PARKED_LINE = 600
"""Its end says what a person must do by hand."""
_MOST_PARKED = 5
"""How many effects that a person must undo one message names; a paragraph of Slack's holds 3,000 characters."""
_SUMMARY = 1500


class ThreadHead(Frozen):
    """Hold what the message says that heads the thread of a run."""

    workflow_id: str
    task: str = ""
    user_id: str = ""
    links: Links = Links()
    result: dict[str, Any] | None = None
    """How the run ended; None while it is open."""
    started_by: str = ""
    """The Slack user who started it here."""

    @property
    def line(self) -> str:
        """Return it in one line, for notifications."""
        return one_line(f"{self._state}: {self.task or self.workflow_id}", 300)

    @property
    def _state(self) -> str:
        return "A run" if self.result is None else f"A run that ended: {self.result.get('outcome', 'failed')}"

    def blocks(self) -> list[Block]:
        """Return the message."""
        page = BlockPage(characters=5000)
        page.head(self._state)
        page.say(self.task)
        if self.result is not None:
            said = one_line(str(self.result.get("final_summary") or ""), _SUMMARY).replace(LINE_BREAK, "\n")
            page.say(f"The model says (nobody checked this): {said}" if said else "")
            error = self.result.get("error") or {}
            page.say(f"{error.get('type')}: {one_line(str(error.get('message', '')), 500)}" if error else "")
        page.fine(" ".join(filter(None, (f"Run {self.workflow_id}", for_user(self.user_id)))), self._cost())
        page.ours("  ·  ".join(self._said()))
        return page.blocks

    def _cost(self) -> str:
        usage = (self.result or {}).get("usage") or {}
        spent = f"{money(usage.get('llm_cost_usd', 0))} USD"
        return f"{usage.get('steps', 0)} steps, {usage.get('tool_calls', 0)} calls, {spent}" if usage else ""

    def _said(self) -> list[str]:
        links = {"The run": self.links.page, "The run in Temporal": self.links.web_ui}
        said = [f"Started by <@{self.started_by}>"] if self.started_by else []
        return said + [f"<{address}|{name}>" for name, address in links.items() if address]


def step_lines(events: Sequence[Event], *, left_out: bool) -> list[str]:
    """Return events as lines; `left_out` says that those before them are not shown."""
    before = ["… steps before these are not shown here"] if left_out else []
    return before + [f"{e.at[11:19]}  step {e.step_index}  {e.name:<17} {_said(e)}" for e in events]


def _said(event: Event) -> str:
    return one_line(event.text, _PARKED_LINE if event.data.get("state") == "parked" else _LINE)


def steps_blocks(lines: Sequence[str]) -> list[Block]:
    """Return a message of steps."""
    page = BlockPage(characters=9000)
    page.code(lines)
    return page.blocks


def told(notice: Notice) -> str:
    """Return in words what a notice tells beside its request; empty when it tells nothing more."""
    match notice.event:
        case NoticeKind.EFFECT_UNKNOWN:
            effect = notice.effect or {}
            what, why = one_line(str(effect.get("what", "a call")), 200), one_line(str(effect.get("why", "")), 300)
            return f"Nobody knows whether {what} took place ({why}); a person may have to say"
        case NoticeKind.BUDGET_OVERSHOT:
            bill = notice.budget or {}
            model = one_line(str(bill.get("model", "a model")), 200)
            return f"{model} billed {bill.get('billed_usd')} USD where {bill.get('reserved_usd')} USD were reserved"
        case NoticeKind.ENDED:
            result = notice.result or {}
            return "\n".join([f"The run has ended: {result.get('outcome', 'failed')}", *_left_to_people(result)])
        case _:
            return ""


def _left_to_people(result: dict[str, Any]) -> list[str]:
    """Return a line for each effect that a person must undo, of many the first ones."""
    every = [Undone.model_validate(undone) for undone in result.get("undone") or ()]
    parked = [undone_line(undone) for undone in every if undone.by_hand]
    more = len(parked) - _MOST_PARKED
    return parked[:_MOST_PARKED] + ([f"and {more} more, which the run's Result names"] if more > 0 else [])


def reminder_blocks(request: ApprovalRequest, mentions: Sequence[str], unmentioned: Sequence[str]) -> list[Block]:
    """Return the message that reminds people of a request; `mentions` are Slack's ids of people."""
    page = BlockPage(characters=3000)
    who = " ".join(f"<@{user}>" for user in mentions)
    others = ", ".join(unmentioned)
    page.blocks.append(SectionBlock(text=MarkdownTextObject(text=f"{who} *Still waits for a decision.*".strip())))
    page.say(request.question.replace(LINE_BREAK, "\n")[:1000])
    page.fine(f"Not mentioned, but asked: {others}" if others else "")
    if request.expires_at:
        page.fine(f"Expires {minute(request.expires_at)}, then: {request.then}")
    return page.blocks
