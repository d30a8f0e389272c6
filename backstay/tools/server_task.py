"""The task by which a server answers a call that takes long: what a run knows of it, and when it asks again."""

from backstay.frozen import Frozen

WORKING = "Working"
"""The type of a result whose server works on the call as a task."""
SHARE = 20
"""A task that has taken long already is asked about when it has taken this part of that time more."""
LAST_S = 2.0
SELDOM_S = 60.0
"""However long it has taken, it is asked about that often, unless its server wants to be asked less often."""


class ServerTask(Frozen):
    """Tell what a server says of a task; its id stays in the store."""

    sealed: str = ""
    """Ref of the sealed id, for a call that only reads; that of an effect is in the record of the effect."""
    poll_s: float = 2.0
    """After how long the server wants to be asked again."""
    ttl_s: float | None = None
    """For how long after it began the server keeps it; None where it sets no end."""
    said: str = ""
    """How far it is, in its server's words: on one line, without secrets."""
    unreachable: str = ""
    """Why nothing could be found out of it this time."""
    refused: str = ""
    """Why it cannot go on here."""
    answered: tuple[str, ...] = ()
    """What stands for the questions of its server that were answered."""


class TaskProgress(Frozen):
    """Hold how far a run has followed a task."""

    since: float
    """When it began, in unix seconds of the workflow's clock."""
    sealed: str = ""
    answered: tuple[str, ...] = ()
    said: str = ""
    """What was last told of it."""
    told: int = 0
    """How many events tell of it."""
    questions: int = 0
    """How often people were asked what its server wants to know."""
    asked: str = ""
    """Ref of the last of these questions."""

    def pause_s(self, now: float, task: ServerTask, ends: float) -> float:
        """Return how long to wait before the server is asked again; shortly before the end, and at it, it is asked."""
        usual = max(task.poll_s, min((now - self.since) / SHARE, SELDOM_S))
        left = max(0.0, ends - now)
        if usual < left:
            return usual
        return left - 1 if left > LAST_S else left
