"""What Bot Framework sends: who did what, in which conversation, and what they filled in of a card."""

from pydantic import AliasPath, Field

from backstay.bounds import AnswerOfPerson, Id, Name
from backstay.frozen import Frozen

MOST_BYTES = 256 * 1024
"""Of the body of a request; each field has a bound of its own."""
_MOST_INPUTS = 300


class Activity(Frozen):
    """Hold one thing that somebody did; of other kinds than a sent card nothing is read but who sends them."""

    type: Name = ""
    id: Name = ""
    channel_id: Name = Field(default="", alias="channelId")
    service_url: Name = Field(default="", alias="serviceUrl")
    sender: Name = Field(default="", validation_alias=AliasPath("from", "id"))
    """Who did it; only the connector says who that is."""
    object_id: Name = Field(default="", validation_alias=AliasPath("from", "aadObjectId"))
    conversation: Id = Field(default="", validation_alias=AliasPath("conversation", "id"))
    tenant: Name = Field(default="", validation_alias=AliasPath("conversation", "tenantId"))
    reply_to: Name = Field(default="", alias="replyToId")
    value: dict[Name, AnswerOfPerson] | None = Field(default=None, max_length=_MOST_INPUTS)

    def text(self, name: str) -> str:
        """Return what a card carries under a name, or what was typed there; empty for nothing."""
        found = (self.value or {}).get(name)
        return found if isinstance(found, str) else ""

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return which were chosen of several that are numbered."""
        parts = self.text(name).split(",")[:_MOST_INPUTS]
        return tuple(int(part) for part in parts if part.isdecimal() and len(part) < 10)
