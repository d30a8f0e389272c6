"""The command `worker`: become the worker, without loading what other commands need."""

import os
import sys
from typing import Literal

from backstay.rooms import house
from backstay.variables import process_environment


def worker(*, role: Literal["all", "runs", "sandbox"] = "all") -> int:
    """Run a worker until SIGTERM or Ctrl-C; activities that have started finish first.

    Parameters
    ----------
    role:
        runs: workflows, model and tools; sandbox: programs, in a process without secrets; all: both
    """
    script = house() / "worker.py"
    # A safe path would hide the packages beside the script.
    variables = {name: value for name, value in process_environment().items() if name != "PYTHONSAFEPATH"}
    os.execve(sys.executable, [sys.executable, str(script), "--role", role], variables)  # noqa: S606 - to become the worker is the purpose
