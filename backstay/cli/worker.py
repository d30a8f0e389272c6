"""The command `worker`: become the worker process."""

import os
import sys
from typing import Literal

from backstay.library import house
from backstay.settings import environment


def worker(*, role: Literal["all", "runs", "sandbox"] = "all") -> int:
    """Serve runs until SIGTERM or Ctrl-C; what is under way is finished first.

    Parameters
    ----------
    role:
        runs: workflows, model and tools; sandbox: programs, in a process that holds no secret; all: both
    """
    script = house() / "worker.py"
    # A safe path would hide the rooms that lie beside the script.
    variables = {name: value for name, value in environment(None).items() if name != "PYTHONSAFEPATH"}
    os.execve(sys.executable, [sys.executable, str(script), "--role", role], variables)  # noqa: S606 - to become the worker is the purpose
