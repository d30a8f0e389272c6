"""examples/service: a service over HTTP, as its users meet it."""

import asyncio
import json
import os
import signal
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest

from backstay.testing import Reply
from tests.docs.blocks import HOUSE
from tests.ports import own_port
from tests.requirements import promise

SERVICE = HOUSE / "examples/service/service.py"
APPROVER_KEY = "the key of workers and gateways"
POLICY = 'ask: [{tool: "mail.send_email", approvers: ["ana@example.com"], no_self_approval: true}]'
ANA, BO = "token-of-ana", "token-of-bo"
SCRIPT = [
    Reply(calls=[("mail__send_email", {"to": "a@x.example", "subject": "hello", "body": "how are you?"})]),
    Reply(calls=[("finish", {"summary": "told a"})]),
]


@asynccontextmanager
async def service(engine, nursery):
    """Start the service as a fork of what has imported its parts; yields clients of two people, and of nobody."""
    port = own_port()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{HOUSE}:{SERVICE.parent}",
        "SERVICE_PEOPLE": json.dumps({ANA: "ana@example.com", BO: "bo@example.com"}),
        "BACKSTAY_TASK_QUEUE": engine.settings.task_queue,
        "BACKSTAY_APPROVER_KEY": APPROVER_KEY,
        "TEMPORAL_ADDRESS": engine.client.service_client.config.target_host,
    }
    command = (
        "uvicorn",
        "service:app",
        "--app-dir",
        str(SERVICE.parent),
        "--port",
        str(port),
        "--log-level",
        "warning",
    )
    log = engine.settings.home / "service.log"
    process = await nursery.raised(*command, environment=environment, log=log)
    try:
        async with asyncio.timeout(150):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                assert not process.died.done(), process.said()
                await asyncio.sleep(0.1)

        def client(**headers):
            return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=40, trust_env=False)

        async with client(Authorization=ANA) as ana, client(Authorization=BO) as bo, client() as nobody:
            yield ana, bo, nobody
    finally:
        process.kill(signal.SIGTERM)
        await asyncio.wait_for(asyncio.shield(process.died), 150)


@promise("clients:service-of-ones-own")
def test_the_service_has_at_most_60_lines():
    assert len(SERVICE.read_text(encoding="utf-8").splitlines()) <= 60


@promise("clients:service-runs")
@pytest.mark.timeout(400)
async def test_people_start_decide_and_read_a_run_over_http(open_engine, nursery):
    async with (
        open_engine(SCRIPT, policy=POLICY, approver_key=APPROVER_KEY) as engine,
        service(engine, nursery) as users,
    ):
        ana, bo, nobody = users
        assert (await nobody.post("/runs", json={"text": "write to a"})).status_code == 401
        started = await bo.post("/runs", json={"text": "write to a", "by": "ana@example.com"})
        assert started.status_code == 201
        run = f"/runs/{started.json()['id']}"
        async with asyncio.timeout(150):
            while not (waiting := (await ana.get(f"{run}/pending")).json()):
                await asyncio.sleep(0.1)
        assert (await ana.get(run)).json()["state"] == "waiting"
        assert (await ana.get(f"{run}/result")).json() is None

        yes = {"request_id": waiting[0]["id"], "verdict": "approve", "args_digest": waiting[0]["args_digest"]}
        refused = await bo.post(f"{run}/decide", json={**yes, "by": "ana@example.com"})
        assert (refused.status_code, "bo@example.com is not an approver" in refused.json()["detail"]) == (409, True)
        decided = await ana.post(f"{run}/decide", json=yes)
        assert (decided.status_code, decided.json()["by"]) == (200, "ana@example.com")
        async with asyncio.timeout(150):
            while (result := (await bo.get(f"{run}/result")).json()) is None:
                await asyncio.sleep(0.1)

    assert (result["outcome"], result["final_summary"]) == ("completed", "told a")
    (event,) = [event for event in result["events"] if event["name"] == "approval.decided"]
    assert (event["data"]["by"], event["data"]["verified"]) == ("ana@example.com", True)


@promise("clients:service-wrong")
@pytest.mark.timeout(400)
async def test_what_is_wrong_is_said_with_the_field_and_the_fix(open_engine, nursery):
    async with open_engine([], approver_key=APPROVER_KEY) as engine, service(engine, nursery) as (ana, _, _):
        for task, said in {
            '{"text": ""}': "text: ",
            '{"text": "x", "budget": {"max_steps": 0}}': "budget.max_steps: ",
            '{"text": "x", "bugdet": {}}': "bugdet: unknown field",
        }.items():
            answer = await ana.post("/runs", content=task, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()["detail"][: len(said)]) == (422, said)
        unknown = await ana.get("/runs/no-such-run")
        assert (unknown.status_code, "no-such-run" in unknown.json()["detail"]) == (404, True)
        wrong = await ana.post("/runs/no-such-run/decide", json={"request_id": "r1", "verdict": "perhaps"})
        assert (wrong.status_code, wrong.json()["detail"].startswith("verdict: ")) == (422, True)
