"""Decide how dangerous a tool is from what the operator declares and what its server says."""

from backstay.safety import Safety
from toolbox.listed import Hints


def safety_of(declared: Safety | None, hints: Hints, *, trusted: bool) -> Safety:
    """Return the safety: the operator's word counts, and a server's own word lowers it only when it is trusted.

    Without a declaration and without a trusted annotation a tool is restricted_write.
    """
    if declared is None:
        return _believed(hints) if trusted else Safety.RESTRICTED_WRITE
    if trusted:
        return declared
    return max(declared, _admitted(hints), key=lambda safety: safety.level)


def _believed(hints: Hints) -> Safety:
    if hints.read_only:
        return Safety.READ_ONLY
    return Safety.WRITE_SAFE if hints.destructive is False else Safety.RESTRICTED_WRITE


def _admitted(hints: Hints) -> Safety:
    """Return the danger a server admits of its own accord; silence admits nothing."""
    if hints.read_only:
        return Safety.READ_ONLY
    if hints.destructive:
        return Safety.RESTRICTED_WRITE
    return Safety.READ_ONLY if hints.read_only is None else Safety.WRITE_SAFE
