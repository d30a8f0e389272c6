"""The tools of the mailbox."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from examples.mailbox.answers import (
    Customers,
    Deleted,
    InboxMessages,
    Invoices,
    Recalled,
    Sent,
    SentMessages,
)
from examples.mailbox.database import Database, now
from examples.mailbox.faults import Faults

Offset = Annotated[int, Field(ge=0, description="How many to skip.")]
Limit = Annotated[int, Field(ge=1, le=100, description="How many to return at most.")]
MessageId = Annotated[str, Field(min_length=1, max_length=100)]

_EFFECT_ID = "backstay/effect-id"


class MailboxTools:
    """Answer each tool from the database, after recording that the request arrived."""

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults

    async def list_customers(self, context: Context, offset: Offset = 0, limit: Limit = 20) -> Customers:
        """List customers with their e-mail addresses, a page at a time."""
        await self._receive(context, "list_customers", offset=offset, limit=limit)
        rows = await self._database.rows("list_customers", {"offset": offset, "limit": limit})
        total = (await self._database.rows("count_customers"))[0]["total"]
        page = [{"id": row["id"], "name": row["name"], "email": row["email"]} for row in rows]
        return Customers.model_validate(
            {"customers": page, "total": total, "offset": offset, "has_more": offset + len(page) < total}
        )

    async def list_invoices(
        self,
        context: Context,
        status: Literal["open", "paid"] | None = None,
        overdue_days_more_than: Annotated[int, Field(ge=0)] | None = None,
        offset: Offset = 0,
        limit: Limit = 20,
    ) -> Invoices:
        """List invoices with amount, due date and days overdue, a page at a time."""
        asked = {"status": status, "overdue_days_more_than": overdue_days_more_than, "offset": offset, "limit": limit}
        await self._receive(context, "list_invoices", **asked)
        paid = {"open": 0, "paid": 1}.get(status or "")
        values = {"today": self._faults.today().isoformat(), "paid": paid, "days": overdue_days_more_than}
        rows = [dict(row) for row in await self._database.rows("list_invoices", values)]
        page = [{**row, "amount": row["amount_cents"] / 100} for row in rows[offset : offset + limit]]
        return Invoices.model_validate(
            {"invoices": page, "total": len(rows), "offset": offset, "has_more": offset + len(page) < len(rows)}
        )

    async def search_messages(
        self, context: Context, query: Annotated[str, Field(min_length=1, max_length=200)]
    ) -> InboxMessages:
        """Search received messages by words in sender, subject or body."""
        await self._receive(context, "search_messages", query=query)
        rows = await self._database.rows("search_messages", {"query": query})
        found = [{**dict(row), "message_id": f"inbox-{row['id']}"} for row in rows]
        return InboxMessages.model_validate({"messages": found})

    async def send_email(
        self,
        context: Context,
        to: Annotated[str, Field(min_length=3, max_length=320)],
        subject: Annotated[str, Field(max_length=500)],
        body: Annotated[str, Field(max_length=100_000)],
        client_token: Annotated[str, Field(max_length=500)] | None = None,
    ) -> Sent:
        """Send one e-mail; the same request twice sends two."""
        mail = {"to": to, "subject": subject, "body": body, "client_token": client_token}
        arrived = await self._receive(context, "send_email", **mail)
        if "@" not in to:
            raise ToolError(f"to: {to!r} is not an e-mail address; give one like name@example.com")
        self._faults.before_send(arrived)
        at = now()
        sent, _ = await self._database.write("send", {**mail, "effect_id": _effect_id(context), "at": at})
        await self._faults.after_send(sent)
        return Sent(message_id=f"mail-{sent}", to=to, sent_at=at)

    async def recall_email(self, context: Context, message_id: MessageId) -> Recalled:
        """Recall a sent e-mail."""
        await self._receive(context, "recall_email", message_id=message_id)
        number = _number(message_id, "mail")
        _, recalled = await self._database.write("recall", {"id": number, "at": now()})
        if recalled:
            return Recalled(message_id=message_id, recalled=True)
        known = await self._database.rows("find_sent", {"id": number})
        fault = "was already recalled" if known else "is unknown; list_sent names those that were sent"
        raise ToolError(f"message_id: {message_id!r} {fault}")

    async def list_sent(self, context: Context, token: str | None = None, to: str | None = None) -> SentMessages:
        """List sent e-mails, the newest first; token finds by the client_token given when sending."""
        await self._receive(context, "list_sent", token=token, to=to)
        rows = await self._database.rows("list_sent", {"token": token, "to": to})
        messages = [
            {
                **dict(row),
                "message_id": f"mail-{row['id']}",
                "to": row["recipient"],
                "recalled": row["recalled_at"] is not None,
            }
            for row in rows
        ]
        return SentMessages.model_validate({"messages": messages, "total": rows[0]["total"] if rows else 0})

    async def delete_message(self, context: Context, message_id: MessageId) -> Deleted:
        """Delete a received message for good."""
        await self._receive(context, "delete_message", message_id=message_id)
        _, deleted = await self._database.write("delete_message", {"id": _number(message_id, "inbox")})
        if not deleted:
            raise ToolError(f"message_id: {message_id!r} is unknown; search_messages names those that exist")
        return Deleted(message_id=message_id, deleted=True)

    async def _receive(self, context: Context, tool: str, **arguments: Any) -> int:
        arrived = await self._database.record(tool, arguments, _effect_id(context))
        await self._faults.on_request()
        return arrived


def _effect_id(context: Context) -> str | None:
    found = (context.request_context.meta or {}).get(_EFFECT_ID)
    return found if isinstance(found, str) else None


def _number(message_id: str, kind: str) -> int:
    prefix, _, digits = message_id.partition("-")
    if prefix != kind or not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        raise ToolError(f"message_id: {message_id!r} is unknown; ids of this kind look like {kind}-17")
    return int(digits)
