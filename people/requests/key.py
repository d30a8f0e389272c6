"""Name one request as it was shown: what a button, a card or a form carries, so that it decides nothing else."""

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.proof import ShownRequest
from backstay.canonical import canonical
from backstay.errors import DecisionRefused
from backstay.frozen import Frozen

_MOST = 16_000
"""Characters; the names of runs and requests are shorter by far."""


class RequestKey(Frozen):
    """Name a request; a decision that is sent with it holds for nothing else."""

    workflow_id: str
    run_id: str
    """The run id of the first execution."""
    request_id: str
    digest: str
    """The digest of the request as it was shown."""

    @classmethod
    def of(cls, workflow_id: str, request: ApprovalRequest) -> "RequestKey":
        """Return the key of a request that is being shown."""
        return cls(workflow_id=workflow_id, run_id=request.run_id, request_id=request.id, digest=request.digest)

    @classmethod
    def read(cls, value: str | None) -> "RequestKey":
        """Return the key that a button carries; raises DecisionRefused for what no door of this version has written."""
        try:
            return cls.model_validate_json((value or "")[:_MOST])
        except ValueError:
            raise DecisionRefused("this button is of another version; look for a newer message") from None

    @property
    def shown(self) -> ShownRequest:
        """Return the request as it was shown."""
        return ShownRequest(run_id=self.run_id, digest=self.digest)

    @property
    def value(self) -> str:
        """Return what a button carries."""
        return canonical(self.plain())
