"""Twenty thousand messages of strangers to a run that waits for a payment to be approved, and thousands of pauses.

SOAK_MESSAGES (10000) says how many signals and how many updates; the figures are written to build/soak-flood.json.
"""

import json
import os
import time
from pathlib import Path

import pytest

from tests.e2e.flooding import Flood, flooded
from tests.requirements import promise

pytestmark = pytest.mark.soak

MESSAGES = int(os.environ.get("SOAK_MESSAGES", "10000"))
SUMMARY = Path("build/soak-flood.json")


@promise("approvals:flood-limits")
@pytest.mark.timeout(600 + MESSAGES // 10)
@pytest.mark.parametrize("by_signal", [False, True], ids=["update", "signal"])
async def test_amid_ten_thousand_signals_and_updates_of_strangers_the_one_approval_counts_once(
    temporal, tmp_path, by_signal
):
    began = time.monotonic()
    flood = await flooded(temporal, tmp_path, Flood(signals=MESSAGES, updates=MESSAGES), by_signal=by_signal)
    figures = {"minutes": round((time.monotonic() - began) / 60, 1), **flood.figures()}
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(SUMMARY.read_text(encoding="utf-8")) if SUMMARY.exists() else {}  # noqa: ASYNC240 - it waits for nobody
    known["by signal" if by_signal else "by update"] = figures
    SUMMARY.write_text(json.dumps(known, indent=1), encoding="utf-8")  # noqa: ASYNC240 - nothing else runs any more
    assert flood.sent == 2 * MESSAGES


@promise("approvals:flood-limits")
@pytest.mark.timeout(900)
async def test_thousands_of_pauses_of_strangers_shut_out_no_approval(temporal, tmp_path):
    flood = await flooded(temporal, tmp_path, Flood(pauses=4200))
    assert set(flood.answers) <= {"NotVerified", "DecisionRefused", "RunContinuing"}
