"""How many calls are made at once, and how often one is tried again: by activities, and by programs without a run."""

from typing import Any

TOGETHER = 32
"""How many calls of one run, or of one program, are under way at the same time at most."""
LONGEST_PAUSE_S = 10
"""The longest pause between two attempts in the retry policy of every activity."""
TRANSIENT_S = 45
"""For how long it is tried again where nobody says otherwise."""
FOLLOWED_S = 86_400.0
"""For how long the task is followed by which a server answers a call, where nobody says otherwise."""
LONGEST_WAIT_S = 86_400


def pause_after(attempt: int) -> float:
    """Return the seconds between this attempt, counted from 1, and the next one."""
    return min(2 ** min(attempt - 1, 10), LONGEST_PAUSE_S)


def retry_after(value: Any) -> float | None:
    """Return the seconds to wait, at most a day, or None when the value is no such number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        return None
    return float(min(value, LONGEST_WAIT_S))
