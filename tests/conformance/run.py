"""Play every claimed scenario and name the others with their reasons."""

import sys

from tests.conformance.scenarios import CLAIMED, offered, play, reason_for

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
sys.exit(1 if failed else 0)
