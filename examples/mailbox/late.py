"""A customer who must be reminded."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Late:
    """Hold one customer and their overdue invoices."""

    customer: dict[str, Any]
    invoices: list[dict[str, Any]]

    @property
    def cents(self) -> int:
        """Return the sum in cents, which add up exactly."""
        return sum(round(invoice["amount"] * 100) for invoice in self.invoices)

    def mail(self) -> dict[str, Any]:
        """Return the arguments of the reminder."""
        lines = [
            f"- {invoice['number']}: EUR {invoice['amount']:,.2f}, due on {invoice['due_date']}"
            f" ({invoice['days_overdue']} days ago)"
            for invoice in self.invoices
        ]
        body = "\n".join(
            [
                f"Dear {self.customer['name']},",
                "",
                "our books show these invoices as unpaid:",
                *lines,
                "",
                f"Together EUR {self.cents / 100:,.2f}. Please pay them, or tell us if we are mistaken.",
                "",
                "Kind regards",
            ]
        )
        plural = "s" if len(self.invoices) > 1 else ""
        numbers = ", ".join(invoice["number"] for invoice in self.invoices)
        return {"to": self.customer["email"], "subject": f"Reminder: unpaid invoice{plural} {numbers}", "body": body}
