"""The command line: start runs, follow them, decide requests, and start the processes that serve them.

May import: backstay.approvals, backstay.authority, backstay.budgets, backstay.canonical, backstay.cli.asking,
backstay.cli.local, backstay.client, backstay.data_files, backstay.effects, backstay.errors, backstay.frozen,
backstay.logs, backstay.policies, backstay.redaction, backstay.rooms, backstay.settings, backstay.shown, backstay.task,
backstay.tools, backstay.trust, backstay.variables, backstay.version, backstay.yaml_text.
"""

import gc
from typing import NoReturn


def main() -> NoReturn:
    """Run one command and exit with its code."""
    # What is imported stays until the end: a collection would only walk through it, and each later one once more.
    gc.disable()
    from backstay.cli.app import main as run_and_exit  # noqa: PLC0415 - a worker needs a module of this package, and no command

    run_and_exit()


__all__ = ["main"]
