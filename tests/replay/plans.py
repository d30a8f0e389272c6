"""Plans that a model proposes, and a plan of which a group is undone."""

from tests.engine import Engine, pending
from tests.replay.steps import FINISH, Handle, Play, Script, decided


def send(subject: str, to: str = "a@example.com", **fields: object) -> dict[str, object]:
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": subject, "body": "b"}, **fields}


READ = {"tool": "mail.list_customers", "arguments": {"offset": 0, "limit": 1}}
FIRST = {"title": "first", "steps": [send("1"), READ]}
RECALL = {"tool": "mail.recall_email", "arguments": {"message_id": "${steps.2.result.message_id}"}}
SECOND = {"title": "second", "steps": [READ, READ, send("2"), RECALL]}
SCRIPTS: dict[str, Script] = {"proposed": [[("propose_plan", {"plan": FIRST, "alternatives": [SECOND]})], [FINISH]]}


async def proposed(engine: Engine) -> Handle:
    """Change a step of the second of two alternatives, and approve the changed plan."""
    handle = await engine.start({"text": "proposed", "mode": "plan_first"}, "golden-proposed")
    requests = await pending(handle, 2)
    (second,) = [request for request in requests if request["proposal"]["plan_id"] == "p2"]
    changes = {"2": {"verdict": "modify", "arguments": {"subject": "changed"}}}
    said = {"request_id": second["id"], "verdict": "modify", "calls": changes, "by": "ana"}
    await handle.execute_update("decide", said)
    while True:
        (child, *_) = [r for r in await pending(handle, 2) if r["proposal"]["plan_id"] == "p3"] or [None]
        if child is not None:
            break
    await handle.execute_update("decide", {"request_id": child["id"], "verdict": "approve", "by": "ana"})
    return handle


async def stopped_beside(engine: Engine) -> Handle:
    """Approve one of two alternatives, and stop the run at the other in the same moment."""
    handle = await engine.start({"text": "proposed", "mode": "plan_first"}, "golden-stopped-beside")
    requests = {request["proposal"]["plan_id"]: request["id"] for request in await pending(handle, 2)}
    # What comes while the run looks at the first of them is told to it together.
    said = [
        {"request_id": "unknown", "verdict": "approve", "by": "ana"},
        {"request_id": requests["p1"], "verdict": "approve", "by": "ana"},
        {"request_id": requests["p2"], "verdict": "reject", "stop": True, "by": "bo"},
    ]
    for decision in said:
        await handle.signal("approval", decision)
    return handle


async def grouped(engine: Engine) -> Handle:
    """Read twice at once, and undo a group of which a step fails."""
    steps = [
        READ,
        READ,
        send("1", transactional="pair"),
        send("2", to="nobody", transactional="pair", continue_on_failure=True),
        send("3", continue_on_failure=True),
    ]
    handle = await engine.start({"plan": {"steps": steps}}, "golden-grouped")
    await decided(handle, "approve")
    return handle


async def rehearsed(engine: Engine) -> Handle:
    """Approve what the rehearsal of a plan foretells."""
    steps = [READ, send("1", to="${steps.0.result.customers.0.email}"), send("2", to="${steps.1.result.to}")]
    handle = await engine.start({"plan": {"steps": steps}, "rehearse": True}, "golden-rehearsed")
    await decided(handle, "approve")
    return handle


async def plan_rejected(engine: Engine) -> Handle:
    handle = await engine.start({"plan": {"steps": [READ, send("1")]}}, "golden-plan-rejected")
    await decided(handle, "reject")
    return handle


async def plan_expired(engine: Engine) -> Handle:
    """Nobody decides about a plan in time."""
    task = {"plan": {"steps": [READ, send("1")]}, "policy": {"ask": [{"tool": "mail.send_email", "timeout": "1s"}]}}
    return await engine.start(task, "golden-plan-expired")


async def plan_dry_run(engine: Engine) -> Handle:
    """Approve nothing but a dry run."""
    handle = await engine.start({"plan": {"steps": [READ, send("1")]}}, "golden-plan-dry-run")
    await decided(handle, "approve", option="dry_run_only")
    return handle


async def plan_reviewed(engine: Engine) -> Handle:
    """Have a plan undone whose review found too much."""
    task = {"plan": {"steps": [READ, send("1")]}, "profile": "reviewed"}
    handle = await engine.start(task, "golden-plan-reviewed")
    await decided(handle, "approve", "plan")
    await decided(handle, "approve", "outcome")
    return handle


SHAPES: dict[str, Play] = {
    "plan-rejected": plan_rejected,
    "plan-expired": plan_expired,
    "plan-dry-run": plan_dry_run,
    "plan-reviewed": plan_reviewed,
    "proposed": proposed,
    "stopped-beside": stopped_beside,
    "grouped": grouped,
    "rehearsed": rehearsed,
}
