"""Serve a script until a signal comes: python -m backstay.testing --script package.module:Name [--port 0]."""

import argparse
import asyncio
import importlib
import signal
import sys

from backstay.testing.scripted_model import Rules, ScriptedModel


def rules(script: str) -> Rules:
    """Load rules from `module:Name`; a class is called first.

    Raises ValueError naming what is wrong.
    """
    module_name, _, name = script.partition(":")
    if not module_name or not name:
        raise ValueError(f"--script: {script!r} is not of the form package.module:Name")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--script: {script!r} cannot be loaded: {error}") from None
    return found() if isinstance(found, type) else found


async def serve(script: Rules, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with ScriptedModel(script, port) as model:
        sys.stdout.write(f"scripted model ready: {model.base_url}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m backstay.testing", description="A model that follows a script.")
    parser.add_argument("--script", required=True, metavar="MODULE:NAME", help="rules, a list of replies, or a class")
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 takes a free one")
    arguments = parser.parse_args()
    try:
        script = rules(arguments.script)
    except ValueError as error:
        parser.error(str(error))
    asyncio.run(serve(script, arguments.port))


if __name__ == "__main__":
    main()
