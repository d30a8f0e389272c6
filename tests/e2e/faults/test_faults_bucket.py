"""A bucket of payloads that fails while a run works: the run waits for it, and nothing is sent twice."""

import uuid

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.scripted_server import ScriptedServer, toolbox_of_servers, writes
from tests.engine import assert_no_task_failure, ended
from tests.requirements import promise
from tests.s3_server import ACCESS

ALLOWING = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
SEND = Reply(calls=[("desk__send", {"body": "one"})])
LARGE = "l" * 200_000
REFUSED = 7
"""More requests than one attempt makes."""


@promise("store:s3-faults")
async def test_a_run_waits_for_a_bucket_that_refuses_and_what_it_sent_is_sent_once(
    temporal, open_engine, s3_server, tmp_path, monkeypatch
):
    bucket = s3_server.bucket(f"b-{uuid.uuid4().hex}")
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    desk = ScriptedServer(tmp_path / "desk.json", [writes("send")], {"send": {"data": {"text": LARGE}}})
    s3_server.fault, refused = "503", []

    def count(method, path):
        refused.append((method, path))
        if len(refused) == REFUSED:
            s3_server.fault = ""

    s3_server.before = count
    options = {"payloads": f"s3://{bucket}/p", "s3_endpoint": s3_server.endpoint, "transient_seconds": 60}
    options |= {"toolbox": toolbox_of_servers(tmp_path, desk=desk), "policy": ALLOWING}
    try:
        async with open_engine(Labelled(bucket=[SEND, DONE]), **options) as run:
            handle = await run.start("<bucket>")
            assert (await ended(handle))["outcome"] == "completed"
            assert_no_task_failure(await handle.fetch_history())
    finally:
        s3_server.fault, s3_server.before = "", lambda *_: None
    assert len(desk.calls("send")) == 1
    assert len(refused) >= REFUSED
    assert any(LARGE.encode() in data for data in s3_server.objects(bucket).values())
