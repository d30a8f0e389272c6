"""One thing that is asked for in a workspace."""

from typing import Any

from pydantic import Field

from backstay.noun import Noun


class WorkspaceCall(Noun):
    """Say what is to be done, where, for which run, and within which bounds."""

    workspace: str
    run: str
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    writable: bool = False
    effect: str | None = None
    """The id under which what it does is recorded; every call that may write has one."""
    seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """How long a command may take."""
    artifacts_mb: int = Field(default=200, gt=0)
    """How much may be written at once."""
