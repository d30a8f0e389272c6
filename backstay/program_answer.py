"""What became of one call of a program."""

from backstay.noun import Noun


class ProgramAnswer(Noun):
    """Tell a program how one of its calls ended; the result itself stays in the store."""

    i: int
    """Number of the call, from 0 in program order."""
    ref: str | None = None
    """The stored result record."""
    error: str | None = None
    error_type: str | None = None
