"""How a command ended, wherever it ran."""

from pydantic import Field

from backstay.frozen import Frozen


class Artifact(Frozen):
    """Name one written file, so that it can be found and recognised."""

    path: str
    """Relative to the workspace."""
    sha256: str
    size: int
    """In bytes."""


class JailUse(Frozen):
    """Tell what one jail used, from its start to its end."""

    cpu_s: float = Field(ge=0)
    """Processor time of all its processes."""
    memory_mb: float | None = Field(default=None, ge=0)
    """The most memory that was seen; None where it ended before anybody looked."""
    output_bytes: int = Field(ge=0)
    """What it printed, whether it was kept or not."""


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
