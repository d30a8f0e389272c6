"""The list of runs at the terminal."""

import json

from tests.cli.commands import environment_of, forked
from tests.engine import ended, pending
from tests.requirements import promise


def send(to):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}}


@promise("runs:list-outcomes")
async def test_the_newest_runs_come_first_each_with_the_outcome_that_it_had(opened, nursery, tmp_path):
    waiting = await opened.start({"plan": {"steps": [send("a@list.example")]}})
    (request,) = await pending(waiting)
    rejected = await opened.start({"plan": {"steps": [send("b@list.example")]}})
    (other,) = await pending(rejected)
    await rejected.execute_update("decide", {"request_id": other["id"], "verdict": "reject", "by": "ana"})
    assert (await ended(rejected))["outcome"] == "failed"
    rows = []
    for _ in range(20):  # what has just ended is not listed at once
        given = {"environment": environment_of(opened), "folder": tmp_path}
        done = await forked(nursery, "list", "--limit", "1", "--output", "json", **given)
        rows = json.loads(done.out)
        if rows and rows[0]["id"] == rejected.id and rows[0]["state"] != "running":
            break
    assert [(row["id"], row["state"]) for row in rows] == [(rejected.id, "failed")]
    await waiting.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(waiting)
