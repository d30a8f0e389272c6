"""One round of a program: what it was given and what it answered, as the exact bytes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Round:
    """Hold one entry of a journal; feeding the same bytes to the same image brings the program to the same place."""

    sent: bytes
    """The frame that was sent, without its length; empty in the first round, where it is the start frame."""
    came: bytes
    """The frame that came back, without its length; empty when the program died instead of answering."""
    cpu_s: float
    wall_s: float
    """How long the program computed; time spent paused does not count."""
