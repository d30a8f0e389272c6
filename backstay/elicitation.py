"""What a tool's server asks a person before it answers a call."""

from typing import Any

from pydantic import Field

from backstay.noun import Noun


class Elicitation(Noun):
    """Show a server's question; its words are a stranger's, redacted and cut."""

    message: str
    url: str | None = None
    """An address that the person is asked to visit."""
    form: dict[str, Any] | None = Field(default=None)
    """JSON Schema of the answer; None when nothing but consent is asked."""
    sealed: str
    """Ref of the whole question, which is handed back with the answer."""
    said: str | None = None
    """What the server did without an answer, in its own words; None when it waits for one."""
