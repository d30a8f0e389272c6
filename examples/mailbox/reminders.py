"""The script of the demo's model. It decides from the tool answers in the conversation and knows nothing else.

Task: "Remind every customer with an invoice overdue by more than 60 days, and tell me the total."
"""

import re
from typing import Any

from backstay.testing import Conversation, Reply
from examples.mailbox.late import Late
from examples.mailbox.listing import TRIES, Listing, reason
from examples.mailbox.programmed import by_program

CUSTOMERS, INVOICES, SEND = "mail__list_customers", "mail__list_invoices", "mail__send_email"


class Reminders:
    """Read customers and invoices, send one reminder to each late customer, report the total."""

    def __call__(self, conversation: Conversation) -> Reply:
        """Return the next reply of this conversation."""
        if "finish" not in conversation.tools:
            return Reply(text=_closing(conversation))
        missing = [name for name in (CUSTOMERS, INVOICES, SEND) if name not in conversation.tools]
        if missing:
            return _search(conversation, missing)
        days = _days(conversation.task)
        if "run_program" in conversation.tools:
            return by_program(conversation, days)
        wanted = {"status": "open", "overdue_days_more_than": days}
        customers = Listing(conversation, CUSTOMERS, "customers", {})
        invoices = Listing(conversation, INVOICES, "invoices", wanted)
        for listing in (customers, invoices):
            if listing.fault is not None:
                return _finish(f"I could not read the {listing.key}: {listing.fault}", {}, success=False)
        calls = [*customers.next_calls(), *invoices.next_calls()]
        if calls:
            return Reply(text=f"I read the customers and what is overdue by more than {days} days.", calls=calls)
        return _remind(conversation, _late(customers.rows, invoices.rows, days), days)


def _late(customers: list[dict[str, Any]], invoices: list[dict[str, Any]], days: int) -> list[Late]:
    due: dict[int, list[dict[str, Any]]] = {}
    for invoice in invoices:
        if not invoice["paid"] and invoice["days_overdue"] > days:
            due.setdefault(invoice["customer_id"], []).append(invoice)
    return [Late(customer, due[customer["id"]]) for customer in customers if customer["id"] in due]


def _remind(conversation: Conversation, late: list[Late], days: int) -> Reply:
    sends = conversation.calls(SEND)
    if late and not sends:
        calls = [(SEND, each.mail()) for each in late]
        return Reply(text=f"{_count(len(late))} to be reminded; I write one e-mail to each.", calls=calls)
    total = sum(each.cents for each in late) / 100
    sent = [str(call.arguments.get("to")) for call in sends if _done(call.answer)]
    unsent = [call for call in sends if not _done(call.answer)]
    invoices = sum(len(each.invoices) for each in late)
    summary = f"EUR {total:,.2f} is overdue by more than {days} days, on {invoices} invoices of {_count(len(late))}."
    summary += f" Reminders sent: {len(sent)}."
    if unsent:
        reasons = "; ".join(f"{call.arguments.get('to')}: {reason(call.answer)}" for call in unsent)
        summary += f" Not sent: {len(unsent)} ({reasons})."
    outputs: dict[str, Any] = {"total": total, "recipients": sent}
    if unsent:
        outputs["not_reminded"] = [str(call.arguments.get("to")) for call in unsent]
    return _finish(summary, outputs, success=True)


def _search(conversation: Conversation, missing: list[str]) -> Reply:
    searches = len(conversation.calls("search_tools"))
    if searches >= TRIES:
        return _finish(f"I found no tool named {', '.join(missing)}.", {}, success=False)
    query = "list customers, list overdue invoices, send e-mail" if not searches else missing[0].replace("__", " ")
    return Reply(text="I look for tools.", calls=[("search_tools", {"query": query, "limit": 20})])


def _finish(summary: str, outputs: dict[str, Any], *, success: bool) -> Reply:
    return Reply(calls=[("finish", {"summary": summary, "outputs": outputs, "success": success})])


def _closing(conversation: Conversation) -> str:
    sent = [call.arguments.get("to") for call in conversation.calls(SEND) if _done(call.answer)]
    return f"I had to stop before the end. Reminders sent: {len(sent)}."


def _done(answer: Any) -> bool:
    return (
        isinstance(answer, dict) and not answer.get("error") and not answer.keys().isdisjoint(("data", "storage_ref"))
    )


def _days(task: str) -> int:
    found = re.search(r"more than (\d{1,5}) days", task)
    return int(found[1]) if found else 60


def _count(customers: int) -> str:
    return f"{customers} customer{'' if customers == 1 else 's'}"
