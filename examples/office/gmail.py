"""Gmail as an MCP server over stdio, with the tools and answers that Composio gives it.

python examples/office/gmail.py

GMAIL_FILE is where the mailbox is kept (default .backstay/office/gmail.json); it is made and filled when it is missing.
"""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

# A script finds modules beside itself only; the checkout has to be added.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from examples.office.book import Book, Refused, answered, page
from examples.office.inbox import ME, inbox
from examples.office.serving import DELETES, READS, WRITES, file_of, offer

Most = Annotated[int, Field(ge=1, le=500)]
PageToken = Annotated[str | None, Field(description="nextPageToken of the page before")]
Words = Annotated[str, Field(description="Gmail's own search, such as: is:unread from:ana@example.com invoice")]
_IN = {"inbox": "INBOX", "sent": "SENT", "trash": "TRASH"}


class Gmail:
    """Keep one mailbox as Gmail does: messages with labels, and drafts that are gone once they are sent."""

    def __init__(self, book: Book) -> None:
        self._book = book
        book.begin({"messages": inbox(), "drafts": [], "made": 0})

    async def fetch_emails(
        self, query: Words = "", max_results: Most = 10, page_token: PageToken = None
    ) -> dict[str, Any]:
        """Search mails, the newest first, a page at a time."""
        found = [mail for mail in reversed(self._book.read()["messages"]) if _fits(mail, query)]
        rows, following = page(found, max_results, page_token, "mail")
        return answered(messages=rows, nextPageToken=following, resultSizeEstimate=len(found))

    async def fetch_message_by_message_id(self, message_id: str) -> dict[str, Any]:
        """Read one mail."""
        return answered(**_message(self._book.read(), message_id))

    async def create_email_draft(
        self, recipient_email: str, subject: str, body: str, thread_id: str | None = None
    ) -> dict[str, Any]:
        """Write a draft; nobody gets it before it is sent."""
        data = self._book.read()
        message = _new(data, recipient_email, subject, body, thread_id) | {"labelIds": ["DRAFT"]}
        draft = {"id": f"r-{data['made']:06}", "message": message}
        self._book.write(data | {"drafts": [*data["drafts"], draft]})
        return answered(id=draft["id"], message={name: message[name] for name in ("messageId", "threadId", "labelIds")})

    async def list_drafts(self, max_results: Most = 100, page_token: PageToken = None) -> dict[str, Any]:
        """List the drafts that were not sent."""
        rows, following = page(self._book.read()["drafts"], max_results, page_token, "draft")
        return answered(drafts=rows, nextPageToken=following)

    async def send_draft(self, draft_id: str) -> dict[str, Any]:
        """Send a draft."""
        data = self._book.read()
        draft = _draft(data, draft_id)
        return self._sent(data | {"drafts": [other for other in data["drafts"] if other != draft]}, draft["message"])

    async def delete_draft(self, draft_id: str) -> dict[str, Any]:
        """Delete a draft for good."""
        data = self._book.read()
        draft = _draft(data, draft_id)
        self._book.write(data | {"drafts": [other for other in data["drafts"] if other != draft]})
        return answered(message="Draft deleted")

    async def send_email(self, recipient_email: str, subject: str, body: str) -> dict[str, Any]:
        """Send a mail at once."""
        data = self._book.read()
        return self._sent(data, _new(data, recipient_email, subject, body, None))

    async def add_label_to_email(
        self, message_id: str, add_label_ids: list[str] | None = None, remove_label_ids: list[str] | None = None
    ) -> dict[str, Any]:
        """Put labels on a mail and take others off, such as UNREAD or STARRED."""
        data = self._book.read()
        mail = _message(data, message_id)
        stay = [label for label in mail["labelIds"] if label not in (remove_label_ids or ())]
        mail["labelIds"] = list(dict.fromkeys([*stay, *(add_label_ids or ())]))
        self._book.write(data)
        return answered(id=message_id, threadId=mail["threadId"], labelIds=mail["labelIds"])

    def _sent(self, data: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
        if "@" not in message["to"]:
            raise Refused(f"Invalid To header: {message['to']!r} is not an address")
        self._book.write(data | {"messages": [*data["messages"], message | {"labelIds": ["SENT"]}]})
        return answered(id=message["messageId"], threadId=message["threadId"], labelIds=["SENT"])


def _new(data: dict[str, Any], to: str, subject: str, body: str, thread: str | None) -> dict[str, Any]:
    data["made"] += 1
    name = f"made-{data['made']:06}"
    told = {"messageId": name, "threadId": thread or name, "sender": ME, "to": to, "subject": subject}
    return told | {"messageText": body, "messageTimestamp": "2026-11-20T12:00:00Z"}


def _message(data: dict[str, Any], message_id: str) -> dict[str, Any]:
    for mail in data["messages"]:
        if mail["messageId"] == message_id:
            return mail
    raise Refused("Requested entity was not found.")


def _draft(data: dict[str, Any], draft_id: str) -> dict[str, Any]:
    for draft in data["drafts"]:
        if draft["id"] == draft_id:
            return draft
    raise Refused("Requested entity was not found.")


def _fits(mail: dict[str, Any], query: str) -> bool:
    return all(_has(mail, *word.partition(":")) for word in shlex.split(query.lower()))


def _has(mail: dict[str, Any], key: str, colon: str, value: str) -> bool:
    fields = {"from": "sender", "to": "to", "subject": "subject"}
    match key:
        case "is" if colon:
            return value.upper() in mail["labelIds"]
        case "in" | "label" if colon:
            return _IN.get(value, value.upper()) in mail["labelIds"]
        case _ if colon and key in fields:
            return value in mail[fields[key]].lower()
        case _:
            return f"{key}{colon}{value}" in f"{mail['subject']} {mail['messageText']} {mail['sender']}".lower()


def server(book: Book) -> MCPServer:
    """Build the server over one mailbox."""
    built, gmail = MCPServer("gmail", log_level="WARNING"), Gmail(book)
    offer(
        built,
        READS,
        GMAIL_FETCH_EMAILS=gmail.fetch_emails,
        GMAIL_FETCH_MESSAGE_BY_MESSAGE_ID=gmail.fetch_message_by_message_id,
        GMAIL_LIST_DRAFTS=gmail.list_drafts,
    )
    offer(
        built,
        WRITES,
        GMAIL_CREATE_EMAIL_DRAFT=gmail.create_email_draft,
        GMAIL_SEND_DRAFT=gmail.send_draft,
        GMAIL_SEND_EMAIL=gmail.send_email,
        GMAIL_ADD_LABEL_TO_EMAIL=gmail.add_label_to_email,
    )
    offer(built, DELETES, GMAIL_DELETE_DRAFT=gmail.delete_draft)
    return built


if __name__ == "__main__":
    asyncio.run(server(Book(file_of("GMAIL_FILE", "gmail.json"))).run_stdio_async())
