"""What a button or a modal is about: one request of one run, as it was shown."""

import hashlib
import json
from typing import Any

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.proof import ShownRequest
from backstay.canonical import canonical
from backstay.errors import DecisionRefused
from backstay.frozen import Frozen

MOST_VALUE = 2000
"""What Slack lets a button carry."""


class Aim(Frozen):
    """Name a request; a decision that is sent with it holds for nothing else."""

    w: str
    """The workflow id."""
    f: str
    """The run id of the first execution."""
    r: str
    """The request id."""
    d: str = ""
    """The digest of the request as it was shown."""

    @classmethod
    def at(cls, workflow_id: str, request: ApprovalRequest) -> "Aim":
        """Return the aim at a request that is being shown."""
        return cls(w=workflow_id, f=request.run_id, r=request.id, d=request.digest)

    @classmethod
    def read(cls, value: str | None) -> "Aim":
        """Return the aim that a button carries; raises DecisionRefused for what this program has not written."""
        try:
            return cls.model_validate(json.loads(value or ""))
        except ValueError:
            raise DecisionRefused("this button is of another version; look for a newer message") from None

    @property
    def shown(self) -> ShownRequest:
        """Return the request as it was shown."""
        return ShownRequest(run_id=self.f, digest=self.d)

    @property
    def value(self) -> str:
        """Return what a button carries."""
        return canonical(self.plain())

    @property
    def fits(self) -> bool:
        """Return whether a button can carry it."""
        return len(self.value) <= MOST_VALUE


class Place(Frozen):
    """Hold what a modal knows of where it was opened."""

    aim: Aim
    channel: str
    call: int | None = None
    """The call whose arguments it changes."""
    seen: str = ""
    """The message from which it was opened, as it stood then."""

    @classmethod
    def read(cls, metadata: str) -> "Place":
        """Return what a modal was opened with; raises DecisionRefused for what this program has not written."""
        try:
            return cls.model_validate(json.loads(metadata))
        except ValueError:
            raise DecisionRefused("this form is of another version; open it again") from None

    @property
    def metadata(self) -> str:
        """Return what the modal carries."""
        return canonical(self.plain())


def event_of(*parts: Any) -> str:
    """Return the id of one thing that a person did in Slack, the same however often it is delivered."""
    return f"slack-{hashlib.sha256(canonical(list(parts)).encode()).hexdigest()[:40]}"
