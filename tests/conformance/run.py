"""Play every claimed scenario and name the others with their reasons; then try public servers."""

import logging
import sys

from tests.conformance.public_servers import servers, tried
from tests.conformance.scenarios import CLAIMED, offered, play, reason_for


def scenarios() -> int:
    """Play the scenarios; return how many failed."""
    failed = 0
    for scenario in offered():
        if scenario not in CLAIMED:
            print(f"not claimed  {scenario}: {reason_for(scenario)}")
            continue
        passed, told = play(scenario)
        failed += not passed
        print(f"{'passed' if passed else 'FAILED':<11}  {scenario}")
        if not passed:
            print(told)
    return failed


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
