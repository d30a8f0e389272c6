"""One plan from the first word to the last undo, while the worker is killed in every state that it comes to."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest

from backstay.testing import Conversation, Reply, payload_of
from tests import signing
from tests.cli.commands import forked
from tests.crash.case import open_case
from tests.engine import assert_no_task_failure, pending, share_images, update
from tests.requirements import promise

KEY = "the key that workers and gateways share"
ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"
POLICY = f"""
ask:
  - {{tool: "fs.write_file", when: {{path: {{equals: shop.py}}}}, approvers: ["{ANA}", "{CY}"]}}
  - {{tool: "fs.write_file", when: {{path: {{equals: notes.md}}}}, approvers: ["{BO}", "{CY}"]}}
"""
PROFILES = "checked: {review: {checks: [{name: types, critical: true}]}}\n"
BAD = 'def total(prices: list[int]) -> int:\n    return "many"\n'
GOOD = "def total(prices: list[int]) -> int:\n    return sum(prices)\n"


def file(path, content):
    return {"tool": "fs.write_file", "arguments": {"path": path, "content": content}}


def plan(title, code):
    return {"title": title, "steps": [file("shop.py", code), file("notes.md", f"{title}\n")]}


def rules(talk: Conversation) -> Reply:
    """Look, propose two alternatives, correct what the review finds, and finish."""
    said = sum(message.get("role") == "assistant" for message in talk.messages)
    other = plan("second", BAD)
    replies = [
        Reply(calls=[("fs__list_directory", {"path": "."})]),
        Reply(calls=[("propose_plan", {"plan": plan("first", BAD), "alternatives": [other]})]),
        Reply(calls=[("update_plan", {"plan_id": "p3", "plan": plan("third", GOOD)})]),
    ]
    return replies[said] if said < len(replies) else Reply(calls=[("finish", {"summary": "done", "success": True})])


async def proposed(handle, plan_id):
    """Wait for the request of a plan."""
    async with asyncio.timeout(150):
        while True:
            for request in await pending(handle, within_s=150):
                if request["proposal"] and request["proposal"]["plan_id"] == plan_id:
                    return request
            await asyncio.sleep(0.2)


async def decide(handle, request, by, **more):
    given = {"request_id": request["id"], "verdict": "approve", "by": by, **more}
    return await update(handle, "decide", await signing.signed(handle, given, key=KEY))


async def approved_by_both(handle, plan_id):
    request = await proposed(handle, plan_id)
    assert [part["approvers"] for part in request["proposal"]["parts"]] == [[ANA, CY], [BO, CY]]
    assert (await decide(handle, request, ANA))["state"] == "recorded"
    assert (await decide(handle, request, BO))["state"] == "decided"


async def dies(worker):
    async with asyncio.timeout(150):
        assert await asyncio.shield(worker.died) == -9, worker.said()


async def killed(worker):
    worker.kill()
    await dies(worker)


@promise("plans:survives")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_a_plan_survives_the_death_of_the_worker_in_each_of_its_states(temporal, nursery, tmp_path):
    for name, text in (("policy.yaml", POLICY), ("profiles.yaml", PROFILES), ("toolbox.json", "{}")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="backstay-") as rooms:
        await asyncio.to_thread(Path(rooms).chmod, 0o755)
        room = Path(rooms) / "rooms" / "shop"
        room.mkdir(parents=True)
        (room / "README").write_text("a shop\n", encoding="utf-8")
        settings = {
            "BACKSTAY_TOOLBOX": str(tmp_path / "toolbox.json"),
            "BACKSTAY_POLICY": str(tmp_path / "policy.yaml"),
            "BACKSTAY_PROFILES": str(tmp_path / "profiles.yaml"),
            "BACKSTAY_WORKSPACES": f"{rooms}/rooms",
            "BACKSTAY_APPROVER_KEY": KEY,
            # A workspace is restored in a process of its own, for which a busy machine needs more than a moment.
            "BACKSTAY_REQUEST_DEADLINE_SECONDS": "8",
        }
        async with open_case(temporal, nursery, tmp_path / "case", rules=rules, **settings) as case:
            share_images(Path(case.environment["BACKSTAY_HOME"]))
            draft = await case.worker("before:keep_plan:1")
            task = {"mode": "plan_first", "workspace": "shop", "filesystem": True, "profile": "checked"}
            run = await case.start(**task)
            await dies(draft)

            is_proposed = await case.worker()
            await proposed(run, "p1")
            await proposed(run, "p2")
            await killed(is_proposed)

            changing = await case.worker("after:keep_plan:1")
            second = await proposed(run, "p2")
            edited = {"1": {"verdict": "modify", "arguments": {"content": "a person's words\n"}}}
            await decide(run, second, BO, verdict="modify", calls=edited)
            await dies(changing)

            is_approved = await case.worker("before:call_tool.send:1")
            await approved_by_both(run, "p3")
            await dies(is_approved)
            await dies(await case.worker("after:call_tool.send:1"))
            await dies(await case.worker("before:review:1"))
            reviewing = await case.worker()
            await proposed(run, "p4")
            await killed(reviewing)

            correcting = await case.worker("after:review:1")
            await approved_by_both(run, "p4")
            await dies(correcting)
            last = await case.worker()
            async with asyncio.timeout(150):
                result = await run.result()
            assert (result["outcome"], result["final_summary"]) == ("completed", "done")
            shown = {plan_id: await run.query("plan", {"plan_id": plan_id}) for plan_id in ("p1", "p2", "p3", "p4")}
            assert {plan_id: (plan["state"], plan["reason"]) for plan_id, plan in shown.items()} == {
                "p1": ("FAILED", "not_chosen"),
                "p2": ("FAILED", "superseded"),
                "p3": ("COMPLETED", ""),
                "p4": ("COMPLETED", ""),
            }
            assert [shown[plan_id]["review"]["confidence"] for plan_id in ("p3", "p4")] == [0, 1]
            (listed,) = Conversation(case.model.requests[-1]).answers("fs__list_directory")
            assert [entry["path"] for entry in payload_of(listed)["entries"]] == ["README"]
            assert ((room / "shop.py").read_text(), (room / "notes.md").read_text()) == (GOOD, "third\n")
            assert [(effect["tool"], effect["state"]) for effect in result["effects"]] == [
                ("fs.write_file", "applied")
            ] * 4
            bound = await signing.binding(run, "UndoRun")
            await killed(last)

            undoing = await case.worker("before:call_tool.undo:2")
            # Whoever undoes all of it must be somebody who may decide about each part.
            ask = {"workflow_id": run.id, "by": CY}
            ask["proof"] = signing.proof_of(ask, bound, key=KEY)
            undo = await case.start_undo(run.id, by=CY, proof=ask["proof"])
            await dies(undoing)
            await case.worker()
            async with asyncio.timeout(150):
                undone = await undo.result()
            assert undone["outcome"] == "rolled_back", json.dumps(undone["undone"])
            assert [path.name for path in room.iterdir()] == ["README"]
            for handle in (run, undo):
                assert_no_task_failure(await handle.fetch_history())
            exported = await forked(nursery, "plan", "export", run.id, environment=case.environment, folder=tmp_path)
            assert exported.code == 0, exported.err
            check_story(json.loads(exported.out))


def check_story(story):
    """Compare what the export tells with what was done."""
    plans = {told["plan_id"]: told for told in story["plans"]}
    assert {name: (told["state"], told["reason"], told["parent"]) for name, told in plans.items()} == {
        "p1": ("FAILED", "not_chosen", None),
        "p2": ("FAILED", "superseded", None),
        "p3": ("ROLLBACK_COMPLETED", "", "p2"),
        "p4": ("ROLLBACK_COMPLETED", "", "p3"),
    }
    said = {name: sorted((each["by"], each["verdict"]) for each in told["approvals"]) for name, told in plans.items()}
    both = [(ANA, "approve"), (BO, "approve")]
    assert said == {"p1": [], "p2": [(BO, "modify")], "p3": both, "p4": both}
    assert all(each["verified"] for told in plans.values() for each in told["approvals"])
    steps = [(step["action"], step["status"]) for name in ("p3", "p4") for step in plans[name]["steps"]]
    assert steps == [("fs.write_file", "rolled_back")] * 4
    assert [plans[name]["review"]["confidence"] for name in ("p3", "p4")] == [0, 1]
    assert {each["state"] for each in story["undone"]} == {"compensated"}
