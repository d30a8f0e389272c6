"""Where in Slack a person did something: in which channel, from which message, about which request."""

import hashlib
from typing import Any

from backstay.canonical import canonical
from backstay.errors import DecisionRefused
from backstay.frozen import Frozen
from people.requests.key import RequestKey

MOST_VALUE = 2000
"""What Slack lets a button carry."""


class ModalContext(Frozen):
    """Hold what a modal knows of where it was opened."""

    key: RequestKey
    channel: str
    call: int | None = None
    """The call whose arguments it changes."""
    seen: str = ""
    """The message from which it was opened, as it stood then."""

    @classmethod
    def read(cls, metadata: str) -> "ModalContext":
        """Return what a modal was opened with; raises DecisionRefused for what this program has not written."""
        try:
            return cls.model_validate_json(metadata)
        except ValueError:
            raise DecisionRefused("this form is of another version; open it again") from None

    @property
    def metadata(self) -> str:
        """Return what the modal carries."""
        return canonical(self.plain())


def event_of(*parts: Any) -> str:
    """Return the id of one thing that a person did in Slack, the same however often it is delivered."""
    return f"slack-{hashlib.sha256(canonical(list(parts)).encode()).hexdigest()[:40]}"
