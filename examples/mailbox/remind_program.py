"""Remind everybody who is late, month by month: a program as a model would write it, run in a jail."""

import asyncio
from collections import defaultdict

from sandbox_py.client import ToolError
from sandbox_py.servers import mail

DAYS = 60


async def read_all(tool, key, **wanted):
    """Read a paged tool to its end."""
    rows = []
    while True:
        page = await tool(offset=len(rows), limit=100, **wanted)
        rows += page[key]
        if not page["has_more"]:
            return rows


def letter(customer, invoices):
    """Write the reminder for one customer."""
    numbers = ", ".join(invoice["number"] for invoice in invoices)
    lines = [
        f"- {invoice['number']}: EUR {invoice['amount']:,.2f}, due on {invoice['due_date']}"
        f" ({invoice['days_overdue']} days ago)"
        for invoice in invoices
    ]
    together = sum(round(invoice["amount"] * 100) for invoice in invoices) / 100
    return {
        "to": customer["email"],
        "subject": f"Reminder: unpaid invoice{'s' if len(invoices) > 1 else ''} {numbers}",
        "body": "\n".join(
            [
                f"Dear {customer['name']},",
                "",
                "our books show these invoices as unpaid:",
                *lines,
                "",
                f"Together EUR {together:,.2f}. Please pay them, or tell us if we are mistaken.",
                "",
                "Kind regards",
            ]
        ),
    }


async def send(mail_arguments):
    """Send one reminder; say what went wrong instead of stopping the others."""
    try:
        await mail.send_email(**mail_arguments)
    except ToolError as error:
        return f"{mail_arguments['to']}: {error}"
    return None


async def main():
    """Read, add up, send."""
    customers, invoices = await asyncio.gather(
        read_all(mail.list_customers, "customers"),
        read_all(mail.list_invoices, "invoices", status="open", overdue_days_more_than=DAYS),
    )
    due = defaultdict(list)
    months = defaultdict(int)
    for invoice in invoices:
        due[invoice["customer_id"]].append(invoice)
        months[invoice["due_date"][:7]] += round(invoice["amount"] * 100)
    for month, cents in sorted(months.items()):
        print(f"{month}: EUR {cents / 100:,.2f} overdue")

    letters = [letter(customer, due[customer["id"]]) for customer in customers if customer["id"] in due]
    faults = await asyncio.gather(*(send(letter) for letter in letters))
    return {
        "total": sum(months.values()) / 100,
        "invoices": len(invoices),
        "by_month": {month: cents / 100 for month, cents in sorted(months.items())},
        "sent": [item["to"] for item, fault in zip(letters, faults, strict=True) if fault is None],
        "not_sent": [fault for fault in faults if fault is not None],
    }
