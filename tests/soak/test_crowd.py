"""Five hundred open requests, three approvers with double clicks, two page processes, one of them killed amid it.

SOAK_REQUESTS (500) says how many are open, beside 10,000 that were decided; figures go to build/soak-crowd.json.
"""

import json
import os
import time
from pathlib import Path

import pytest

from tests.requirements import promise
from tests.web.crowd import assert_none_lost_and_none_twice, crowded

pytestmark = pytest.mark.soak

REQUESTS = int(os.environ.get("SOAK_REQUESTS", "500"))
SUMMARY = Path("build/soak-crowd.json")


@promise("page:crowd-long")
@pytest.mark.timeout(600 + 6 * REQUESTS)
async def test_of_five_hundred_requests_none_is_lost_and_none_decided_twice(open_engine, tmp_path):
    began = time.monotonic()
    crowd, results, sent = await crowded(open_engine, tmp_path, REQUESTS, decided=10_000)
    assert_none_lost_and_none_twice(crowd, results, sent)
    figures = {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "requests": len(results),
        "clicks": crowd.clicks,
        "answers": {str(status): count for status, count in sorted(crowd.answers.items())},
        "sent again after the kill": crowd.lost,
        "mails sent": len(sent),
    }
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text(json.dumps(figures, indent=1), encoding="utf-8")  # noqa: ASYNC240 - nothing else runs any more
