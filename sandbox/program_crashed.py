"""Why a program cannot go on: the one thing that everything which ends a jail is told as."""

from sandbox.limits import Limits


class ProgramCrashed(Exception):
    """The program cannot go on; the type names the cause and the message is one line for the model."""

    def __init__(self, kind: str, message: str, *, lost: bool = False) -> None:
        """Say what ended it; `lost` means that the jail was taken away and the program did nothing to cause it."""
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.lost = lost

    def plain(self) -> dict[str, str]:
        """Return type and message, as a halt holds them."""
        return {"type": self.kind, "message": self.message}


def wall_reached(seconds: float) -> ProgramCrashed:
    """Say that the program computed too long."""
    return ProgramCrashed(
        "WallLimit", f"wall: the program computed for more than {seconds:g} s without a call; at most that"
    )


def output_reached(limits: Limits) -> ProgramCrashed:
    """Say that the program printed too much."""
    return ProgramCrashed(
        "OutputLimit", f"output: the program printed more than {limits.output_bytes} bytes; print less"
    )


def frame_reached(size: int, limits: Limits) -> ProgramCrashed:
    """Say that what the program passed or returned at once is too large."""
    message = (
        f"frame size: the calls or the result have {size} bytes of JSON, at most {limits.frame_bytes}; pass on less"
    )
    return ProgramCrashed("FrameLimit", message)


def calls_reached(calls: int, limits: Limits) -> ProgramCrashed:
    """Say that the program made too many calls at once."""
    message = f"calls per batch: {calls} calls at once, at most {limits.calls_per_batch}; gather fewer at a time"
    return ProgramCrashed("CallLimit", message)


def number_reached(digits: int, most: int) -> ProgramCrashed:
    """Say that the program passed or returned a number that other readers could not take."""
    message = f"number: it passed or returned a whole number of {digits} digits, at most {most}; pass it as text"
    return ProgramCrashed("NumberLimit", message)


def depth_reached(most: int) -> ProgramCrashed:
    """Say that the program passed or returned something nested so deeply that other readers could not take it."""
    message = f"depth: it passed or returned values nested more than {most} levels deep; flatten them"
    return ProgramCrashed("DepthLimit", message)


def rounds_reached(limits: Limits) -> ProgramCrashed:
    """Say that the program paused too often."""
    message = (
        f"rounds: the program paused for calls more than {limits.rounds} times; gather calls that can run together"
    )
    return ProgramCrashed("RoundLimit", message)


def processor_reached(limits: Limits) -> ProgramCrashed:
    """Say that the program used up its processor time."""
    return ProgramCrashed("CpuLimit", f"CPU: the program used more than {limits.cpu_s} s of processor time")


def memory_reached(limits: Limits) -> ProgramCrashed:
    """Say that the program used up its memory."""
    return ProgramCrashed("MemoryLimit", f"memory: the program needs more than {limits.memory_mb} MB")


def protocol_broken(why: str) -> ProgramCrashed:
    """Say that the jail spoke as no honest program does."""
    return ProgramCrashed("ProtocolBroken", f"the program wrote to its control pipe: {why}")
