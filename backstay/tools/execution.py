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


class HostTraffic(Frozen):
    """Tell what went to one host and came from it; no path, and nothing of the content."""

    host: str
    port: int
    connections: int = Field(ge=0)
    sent: int = Field(ge=0)
    """In bytes, by the command."""
    received: int = Field(ge=0)

    @property
    def words(self) -> str:
        """Return this in words: `example.org:443 (sent 1,204 bytes, received 88,100)`."""
        return f"{self.host}:{self.port} (sent {self.sent:,} bytes, received {self.received:,})"


class JailUse(Frozen):
    """Tell what one jail used, from its start to its end."""

    cpu_s: float = Field(ge=0)
    """Processor time of all its processes."""
    memory_mb: float | None = Field(default=None, ge=0)
    """The most memory that was seen; None where it ended before anybody looked."""
    output_bytes: int = Field(ge=0)
    """What it printed, whether it was kept or not."""
    reached: tuple[HostTraffic, ...] = Field(default=(), exclude_if=lambda reached: not reached)
    """The hosts that it reached through the proxy."""
    refused: int = Field(default=0, ge=0, exclude_if=lambda refused: not refused)
    """How often the proxy refused what it asked for."""
    image: str = Field(default="", exclude_if=lambda image: not image)
    """The operator's own root file system that it ran in, if any, by name and digest."""


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
