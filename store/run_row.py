"""Everything the store knows of one run."""

from typing import Any, Literal

from backstay.noun import Noun


class RunRow(Noun):
    """Hold one row of the table `runs`; times are unix seconds of the worker that wrote them."""

    run: str
    workflow_id: str
    workflow_run_id: str
    """The first one of the chain."""
    user_id: str
    text: str
    state: Literal["open", "closed"]
    opened_at: float
    closed_at: float | None = None
    opened: dict[str, Any]
    """What was resolved when the run began; empty when its beginning was never recorded."""
    store: str
    result: dict[str, Any] | None = None
