"""Become a command that does not outlive its parent: python lifeline.py PARENT COMMAND ARGUMENT..."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent where the system can, then become the command."""
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != int(parent):
            sys.exit(1)  # the parent was gone before the tie held
    os.execv(command[0], command)  # noqa: S606 - to become the command is the purpose


if __name__ == "__main__":
    main()
