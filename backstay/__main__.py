"""The command line as a program: the command backstay, and python -m backstay."""

import gc
import sys
from typing import NoReturn

from backstay.errors import SettingsInvalid
from backstay.rooms import ROOMS, open_house


def main() -> NoReturn:
    """Run one command and exit with its code."""
    # What is imported stays until the end: a collection would only walk through it, and each later one once more.
    gc.disable()
    try:
        open_house(*ROOMS)
    except SettingsInvalid as error:
        sys.stderr.write(f"backstay: {error}\n")
        sys.exit(2)
    from gateways.terminal.app import main as run_and_exit  # noqa: PLC0415 - only now is its package found

    run_and_exit()


if __name__ == "__main__":
    main()
