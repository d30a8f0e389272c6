"""How much one process may use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Bound a process and each one it starts; its time has an end of its own, the deadline of the call.

    The number of processes is not among them: the kernel counts all that one user has, the worker's own included.
    """

    cpu_s: int = 300
    memory_mb: int = 4096
    """Address space."""
    file_mb: int = 1024
    """The largest file that may be written."""
    files: int = 1024
    """Open files."""

    def spelled(self) -> tuple[str, ...]:
        """Return the limits as the launcher reads them; no memory is ever dumped."""
        return (
            f"CPU={self.cpu_s}",
            f"AS={self.memory_mb << 20}",
            f"FSIZE={self.file_mb << 20}",
            f"NOFILE={self.files}",
            "CORE=0",
        )
