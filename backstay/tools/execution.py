"""How a command ended, wherever it ran."""

from backstay.frozen import Frozen


class Artifact(Frozen):
    """Name one written file, so that it can be found and recognised."""

    path: str
    """Relative to the workspace."""
    sha256: str
    size: int
    """In bytes."""


class ExecutionResult(Frozen):
    """Hold the output of a command and the files that it wrote; a command that was not allowed never ran."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0
    artifacts: tuple[Artifact, ...] = ()
    """The files that it wrote."""
    allowed: bool = True
    """Whether the operator's lists let it run."""
