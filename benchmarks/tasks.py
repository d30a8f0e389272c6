"""A scripted model that does three tasks, by a program where one is offered and by single calls elsewhere."""

from collections import defaultdict
from typing import Any

from backstay.testing import Conversation, Reply, payload_of
from examples.mailbox.listing import Listing
from examples.mailbox.reminders import Reminders

REMIND = "Remind every customer with an invoice overdue by more than 60 days, and tell me the total."
MONTHS = "How much of what is still unpaid is due in each month?"
CLEAN = "Delete every received message that says the office is closed until Monday."
TASKS = {"remind who is late": REMIND, "add up by month": MONTHS, "delete what is found": CLEAN}

_MONTHS = """
months, offset, more = {}, 0, True
while more:
    page = await mail.list_invoices(status="open", offset=offset, limit=100)
    for invoice in page["invoices"]:
        month = invoice["due_date"][:7]
        months[month] = months.get(month, 0) + round(invoice["amount"] * 100)
    offset, more = offset + len(page["invoices"]), page["has_more"]
return dict(sorted(months.items()))
"""
_CLEAN = """
import asyncio
found = (await mail.search_messages(query="closed until Monday"))["messages"]
await asyncio.gather(*(mail.delete_message(message_id=one["message_id"]) for one in found))
return len(found)
"""


class Tasks:
    """Choose the script by the text of the task."""

    def __call__(self, conversation: Conversation) -> Reply:
        if conversation.task == REMIND:
            return Reminders()(conversation)
        if "mail__list_invoices" not in conversation.tools:
            return Reply(calls=[("search_tools", {"query": "list invoices, search and delete messages", "limit": 20})])
        by_program = "run_program" in conversation.tools
        if conversation.task == MONTHS:
            return _program(conversation, _MONTHS) if by_program else _months(conversation)
        return _program(conversation, _CLEAN) if by_program else _clean(conversation)


def _program(conversation: Conversation, source: str) -> Reply:
    runs = conversation.calls("run_program")
    if not runs:
        return Reply(calls=[("run_program", {"code": source, "reason": "one program does it"})])
    return _finish(payload_of(runs[0].answer))


def _months(conversation: Conversation) -> Reply:
    invoices = Listing(conversation, "mail__list_invoices", "invoices", {"status": "open"})
    if calls := invoices.next_calls():
        return Reply(calls=calls)
    months: dict[str, int] = defaultdict(int)
    for invoice in invoices.rows:
        months[invoice["due_date"][:7]] += round(invoice["amount"] * 100)
    return _finish({"result": dict(sorted(months.items()))})


def _clean(conversation: Conversation) -> Reply:
    searches = conversation.calls("mail__search_messages")
    if not searches:
        return Reply(calls=[("mail__search_messages", {"query": "closed until Monday"})])
    deleted = conversation.calls("mail__delete_message")
    if not deleted:
        found = payload_of(searches[0].answer)["messages"]
        return Reply(calls=[("mail__delete_message", {"message_id": match["message_id"]}) for match in found])
    return _finish({"result": len(deleted)})


def _finish(answer: Any) -> Reply:
    done = isinstance(answer, dict) and "result" in answer
    return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": answer}, "success": done})])
