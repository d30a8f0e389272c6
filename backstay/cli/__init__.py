"""The command line: start runs, follow them, decide, look, and run the parts."""

from backstay.cli.app import main

__all__ = ["main"]
