"""Play every claimed scenario and name the others with their reasons; then try public servers."""

import logging
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.conformance.public_servers import servers, tried
from tests.conformance.scenarios import (
    CLAIMED,
    OTHERS,
    SERVER_CLAIMED,
    SERVER_OTHERS,
    SIGN_IN_CLAIMED,
    TASKS_CLAIMED,
    offered,
    play,
    play_server,
    plugins_served,
    reason_for,
    tasks_served,
)
from tests.plugins.client import lay_out

Playing = Callable[[str], tuple[bool, str]]


def scenarios() -> int:
    """Play the scenarios for clients and those for servers; return how many failed."""
    claimed = (*CLAIMED, *SIGN_IN_CLAIMED)
    failed = sum(_told(scenario, claimed, OTHERS, play) for scenario in offered())
    with tempfile.TemporaryDirectory() as folder, plugins_served(lay_out(Path(folder), "demo", "other")) as address:
        playing = partial(play_server, address=address, results=Path(folder))
        others = [name for name in offered("server") if name not in TASKS_CLAIMED or name in SERVER_CLAIMED]
        failed += sum(_told(name, SERVER_CLAIMED, SERVER_OTHERS, playing) for name in others)
    with tempfile.TemporaryDirectory() as folder, tasks_served() as address:
        playing = partial(play_server, address=address, results=Path(folder))
        return failed + sum(_told(name, TASKS_CLAIMED, SERVER_OTHERS, playing) for name in TASKS_CLAIMED)


def _told(scenario: str, claimed: Sequence[str], others: dict[str, str], playing: Playing) -> bool:
    """Play a scenario that is claimed, and print what came of it; return whether it failed."""
    if scenario not in claimed:
        print(f"not claimed  {scenario}: {reason_for(scenario, others)}")
        return False
    passed, told = playing(scenario)
    print(f"{'passed' if passed else 'FAILED':<11}  {scenario}")
    if not passed:
        print(told)
    return not passed


def public_servers() -> int:
    """Try the public servers; return how many differ."""
    # The SDK tells each line on stdout that is no message.
    logging.disable()
    failed = 0
    for server in servers():
        try:
            faults = tried(server)
        except Exception as error:  # the other servers are still tried
            faults = [f"{type(error).__name__}: {error}"]
        failed += bool(faults)
        print(f"{'FAILED' if faults else 'passed':<11}  {server.package} {server.version}")
        for fault in faults:
            print(f"    {fault}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if scenarios() + public_servers() else 0)
