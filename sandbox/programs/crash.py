"""The error for everything that ends a program's jail."""

import resource
import signal

from sandbox.limits import Limits


class ProgramCrashed(Exception):
    """The program cannot continue; the type names the cause and the message is one line for the model."""

    def __init__(self, kind: str, message: str, *, lost: bool = False) -> None:
        """Set what ended it; `lost` means that the program did not cause it."""
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.lost = lost

    def plain(self) -> dict[str, str]:
        """Return type and message, as a halt holds them."""
        return {"type": self.kind, "message": self.message}


def wall_reached(seconds: float) -> ProgramCrashed:
    """Return the error of a program that computed too long."""
    return ProgramCrashed(
        "WallLimit", f"wall: the program computed for more than {seconds:g} s without a call; at most that"
    )


def frame_reached(size: int, limits: Limits) -> ProgramCrashed:
    """Return the error of a program that passed or returned too much at once."""
    message = (
        f"frame size: the calls or the result have {size} bytes of JSON, at most {limits.frame_bytes}; pass on less"
    )
    return ProgramCrashed("FrameLimit", message)


def depth_reached(most: int) -> ProgramCrashed:
    """Return the error of a program that passed or returned a value that is nested too deeply."""
    message = f"depth: it passed or returned values nested more than {most} levels deep; flatten them"
    return ProgramCrashed("DepthLimit", message)


def rounds_reached(limits: Limits) -> ProgramCrashed:
    """Return the error of a program that paused too often."""
    most = f"more than {limits.rounds} times; gather calls that can run together"
    return ProgramCrashed("RoundLimit", f"rounds: the program paused for calls {most}")


def memory_reached(limits: Limits) -> ProgramCrashed:
    """Return the error of a program that used up its memory."""
    return ProgramCrashed("MemoryLimit", f"memory: the program needs more than {limits.memory_mb} MB")


def protocol_broken(why: str) -> ProgramCrashed:
    """Return the error of a jail that broke the protocol."""
    return ProgramCrashed("ProtocolBroken", f"the program wrote to its control pipe: {why}")


_NEARLY = 0.95
# The kernel enforces the limit by counting ticks, which may run ahead of the time it reports in the end.
_MOST_OF_IT = 0.6
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP}


def cause_of_death(exit_code: int, used: resource.struct_rusage, *, age_s: float, limits: Limits) -> ProgramCrashed:
    """Return what ended the jail. `exit_code` is nsjail's: 128 and the signal when a signal ended what it confines."""
    if exit_code < 0:
        return ProgramCrashed("JailLost", f"the jail itself was ended from outside (signal {-exit_code})", lost=True)
    if age_s >= limits.time_limit_s * _NEARLY:
        return ProgramCrashed("JailLost", f"the jail reached its age of {limits.time_limit_s} s", lost=True)
    number = exit_code - 128
    if number == signal.SIGSYS:
        return ProgramCrashed(
            "ForbiddenSystemCall", "the kernel ended the program for a forbidden system call (SIGSYS)"
        )
    if number == signal.SIGXCPU or (
        number == signal.SIGKILL and used.ru_utime + used.ru_stime >= limits.cpu_s * _MOST_OF_IT
    ):
        return ProgramCrashed("CpuLimit", f"CPU: the program used more than {limits.cpu_s} s of processor time")
    if number == signal.SIGKILL:
        return _killed(used, limits)
    if number in _FAULTS:
        return ProgramCrashed("InterpreterCrash", f"the interpreter crashed ({signal.Signals(number).name})")
    return ProgramCrashed("InterpreterExit", f"the interpreter ended without an answer (exit status {exit_code})")


def peak_mb(used: resource.struct_rusage) -> float:
    """Return the most memory that processes took which have ended; 0 where that is not known."""
    # A process begins with the peak of the one that started it: a peak below that says nothing of its own memory.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(used.ru_maxrss / 1024, 1) if used.ru_maxrss > inherited else 0.0


def _killed(used: resource.struct_rusage, limits: Limits) -> ProgramCrashed:
    """Distinguish a process that ran out of memory from one that was killed from outside."""
    if peak_mb(used) >= limits.memory_mb * _MOST_OF_IT:
        return memory_reached(limits)
    return ProgramCrashed(
        "Killed", "the interpreter was killed (SIGKILL): the machine ran out of memory, or from outside"
    )
