"""How a command ended, wherever it ran."""

from backstay.artifact import Artifact
from backstay.noun import Noun


class ExecutionResult(Noun):
    """Tell what a command answered and left behind; one that was not allowed never ran."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0
    artifacts: tuple[Artifact, ...] = ()
    """The files that it wrote."""
    allowed: bool = True
    """Whether the operator's lists let it run."""
