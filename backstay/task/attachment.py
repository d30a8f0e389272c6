"""A picture or PDF that a task is about; its bytes are in the store, or are given with it."""

import base64
import binascii
from typing import Annotated, Self

from pydantic import Field, model_validator

from backstay.bounds import Name
from backstay.frozen import PublicInput

MOST_ATTACHED = 10
"""Of one task."""
ATTACHED = "attached"
"""Beneath this name of a workflow id the store keeps what is attached before the run begins."""


def attached_to(workflow_id: str) -> str:
    """Return the name under which the store keeps what is attached to the next run of a workflow id."""
    return f"{workflow_id}/{ATTACHED}"


class Attachment(PublicInput):
    """Name a picture or PDF, and where its bytes are: in the store under a `ref`, or here as `data`."""

    name: Annotated[Name, Field(max_length=200)] = ""
    media_type: str = Field(default="", max_length=100)
    ref: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    """Under which the client has stored the bytes for the run of this id; `start` and `backstay run` fill it in."""
    data: str | None = Field(default=None, min_length=1)
    """The bytes in base64, for a client that has no store; they are in history, and count for the size of a task."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.ref is None) == (self.data is None):
            raise ValueError("give either `data`, the bytes in base64, or the `ref` that the client made")
        if self.data is not None:
            self.decoded()
        return self

    def decoded(self) -> bytes:
        """Return the bytes that are given here; raises ValueError for what is not base64."""
        try:
            return base64.b64decode("".join((self.data or "").split()), validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("data: is not base64; encode the bytes") from None
