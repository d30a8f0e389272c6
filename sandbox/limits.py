"""How much one jail may use; the caps of the program protocol are beside those of the machine."""

from backstay.frozen import Frozen


class Limits(Frozen):
    """Bound what one jail may use. Each has its own name in the error that it leads to."""

    memory_mb: int = 512
    """Memory of each process; where `address_mb` is more, only what it can write and shares with no other."""
    address_mb: int | None = None
    """Address space of each process, of which some programs reserve far more than they use; None: as `memory_mb`.

    Only for jails that are watched: pages that are written and then made read-only count as address space alone.
    """
    cpu_s: int = 20
    """Processor time of each process, over its whole life."""
    tmp_mb: int = 16
    tmp_inodes: int = 1024
    file_mb: int = 16
    """The largest file that may be written."""
    files: int = 64
    """Open files of each process."""
    processes: int = 16
    """Processes and threads; a program gets none beyond its own whatever is here."""
    stack_mb: int = 8
    cpu_ms_per_s: int = 1000
    """Processor time per second where a cgroup can bound it: 1000 is one core."""
    time_limit_s: int = 3600
    """When nsjail itself ends the jail, paused or not: a backstop that no honest program meets."""
    wall_s: float = 30.0
    """How long a program may compute in one round."""
    rounds: int = 200
    calls_per_batch: int = 128
    frame_bytes: int = 1 << 20
    output_kept: int = 64 << 10
    """Bytes of what is printed that are kept."""
    output_bytes: int = 1 << 20
    """Bytes of what is printed after which the jail is ended."""


def shell_limits() -> Limits:
    """Return the limits of a jail in which other programs are started: they fork, and they need more of everything."""
    return Limits(
        memory_mb=2048,
        address_mb=65_536,
        cpu_s=300,
        tmp_mb=256,
        tmp_inodes=16384,
        file_mb=1024,
        files=1024,
        processes=64,
        wall_s=300.0,
    )


def review_limits() -> Limits:
    """Return the limits of a jail in which code is checked: a shell's, with room for a copy of the workspace."""
    return shell_limits().model_copy(update={"tmp_mb": 512, "tmp_inodes": 65536, "time_limit_s": 900})
