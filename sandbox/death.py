"""Tell from how a process ended what ended the program in it."""

import resource
import signal

from sandbox.limits import Limits
from sandbox.program_crashed import ProgramCrashed, memory_reached, processor_reached

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
    if number == signal.SIGXCPU or (number == signal.SIGKILL and _processor_s(used) >= limits.cpu_s * _MOST_OF_IT):
        return processor_reached(limits)
    if number == signal.SIGKILL:
        return _killed(used, limits)
    if number in _FAULTS:
        return ProgramCrashed("InterpreterCrash", f"the interpreter crashed ({signal.Signals(number).name})")
    return ProgramCrashed("InterpreterExit", f"the interpreter ended without an answer (exit status {exit_code})")


def _killed(used: resource.struct_rusage, limits: Limits) -> ProgramCrashed:
    """Tell a process that outgrew its memory from one that was killed for no reason of its own."""
    # A process begins with the peak of the one that started it: a peak below that says nothing of its own memory.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if used.ru_maxrss > inherited and used.ru_maxrss / 1024 >= limits.memory_mb * _MOST_OF_IT:
        return memory_reached(limits)
    return ProgramCrashed(
        "Killed", "the interpreter was killed (SIGKILL): the machine ran out of memory, or from outside"
    )


def _processor_s(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime
