"""Mail: found and sent as people think of it, over whatever server does it."""

import re
from email.utils import getaddresses
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from backstay.python_tools.context import ToolContext
from backstay.python_tools.tool import tool

_ADDRESS = re.compile(r"[^\s@,;<>]+@[^\s@,;<>]+")


def _addresses(given: str | list[str]) -> list[str]:
    """Return each address once, in order, without names, however they were written."""
    texts = [given] if isinstance(given, str) else given
    if any("\n" in text or "\r" in text for text in texts):
        raise ValueError("an address is one line")
    found = [address for _, address in getaddresses([text.replace(";", ",") for text in texts if text.strip()])]
    if any(not _ADDRESS.fullmatch(address) for address in found):
        raise ValueError("an address looks like name@example.com")
    return list(dict.fromkeys(found))


def _some(given: list[str]) -> list[str]:
    if not given:
        raise ValueError("at least one address is needed")
    return given


Addresses = Annotated[str | list[str], AfterValidator(_addresses)]
"""One address, several in one text, or a list."""


@tool(safety="read_only", reads=("search",))
async def search(
    context: ToolContext,
    query: Annotated[
        str, Field(description="as the mail program's own search takes it, such as from:ana newer_than:7d")
    ],
    limit: Annotated[int, Field(ge=1, le=100)] = 10,
) -> Any:
    """Search the mailbox and return the messages that were found."""
    return await context.read("search", query=" ".join(query.split()), limit=limit)


@tool(writes=("send_email",))
async def send_email(  # noqa: PLR0917 - they are given by name
    context: ToolContext,
    to: Annotated[Addresses, AfterValidator(_some)],
    subject: str,
    body: str,
    cc: Addresses = "",
    bcc: Addresses = "",
    html: Annotated[bool, Field(description="whether the body is HTML")] = False,  # noqa: FBT002 - the model names it
) -> Any:
    """Send an email. It cannot be undone."""
    copies = {"cc": _addresses(cc), "bcc": _addresses(bcc)}
    return await context.write("send_email", to=to, subject=" ".join(subject.split()), body=body, html=html, **copies)
