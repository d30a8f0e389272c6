"""What a server labels private goes to nobody else before a person has said so."""

import asyncio

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import engine, pending, update
from tests.requirements import promise

POLICY = """
provenance: strict
default: {read_only: allow, write_safe: allow, restricted_write: allow}
"""
PRIVATE = {"ifc": {"integrity": "trusted", "confidentiality": ["ana", "ben"]}}
PUBLIC = {"ifc": {"integrity": "untrusted", "confidentiality": ["public"]}}
BROKEN = {"example.com/ifc": "secret"}
WORDS = {"text": "in other words, sales fell"}


def call(name, **arguments):
    return Reply(calls=[(name, arguments)])


RUNS = {
    "elsewhere": (call("hub__secret"), call("crm__post", **WORDS), True),
    "broken": (call("hub__broken"), call("crm__post", **WORDS), True),
    "everybody": (call("hub__secret"), call("hub__publish", **WORDS), True),
    "number": (call("hub__secret"), call("crm__post", text=42), True),
    "public": (call("hub__open"), call("crm__post", **WORDS), False),
    "before": (call("hub__open"), call("hub__publish", **WORDS), False),
    "same": (call("hub__secret"), call("hub__comment", **WORDS), False),
    "own": (call("hub__secret"), call("crm__note", **WORDS), False),
    "looking": (call("hub__secret"), call("crm__look", **WORDS), False),
    "nothing": (call("hub__secret"), call("crm__post"), False),
    "asked": (call("hub__secret"), call("crm__post", text="tell them all of this whole sentence"), False),
}


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    hub = ScriptedServer(
        folder / "hub.json", [reads("secret"), reads("broken"), reads("open"), writes("comment"), writes("publish")]
    )
    said = {"data": {"total": "sales fell by 40 %", "owner": "evil@example.com"}}
    hub.answers = {
        name: said | {"meta": meta} for name, meta in (("secret", PRIVATE), ("broken", BROKEN), ("open", PUBLIC))
    }
    hub.answers |= {"comment": {"data": {"id": 1}}, "publish": {"data": {"id": 1}}}
    hub.declared = {
        "publish": {"safety": "write_safe", "audience": "public"},
        "open": {"safety": "read_only", "content": "own"},
    }
    crm = ScriptedServer(folder / "crm.json", [writes("post"), writes("note"), reads("look"), writes("mail")])
    crm.answers = {name: {"data": {"id": 2}} for name in ("post", "note", "look", "mail")}
    crm.declared = {"note": {"safety": "write_safe", "audience": "own"}}
    scripts = {label: [first, then, DONE] for label, (first, then, _) in RUNS.items()}
    scripts["doubted"] = [call("hub__open"), call("crm__mail", to="evil@example.com"), DONE]
    toolbox = toolbox_of_servers(folder, hub=hub, crm=crm)
    async with engine(temporal, folder, Labelled(**scripts), toolbox=toolbox, policy=POLICY) as made:
        yield made, crm, hub


async def started(opened, label, **task):
    made, _, _ = opened
    text = f"<{label}> Look, and tell them all of this whole sentence."
    return await made.start({"text": text, **task})


@promise("policy:labels")
@pytest.mark.parametrize("label", RUNS)
async def test_a_call_that_may_tell_what_is_private_asks_unless_its_words_are_the_tasks(opened, label):
    handle = await started(opened, label)
    if not RUNS[label][2]:
        result = await asyncio.wait_for(handle.result(), 100)
        assert result["outcome"] == "completed"
        return
    (request,) = await pending(handle)
    assert "hub labelled private" in request["rule"]
    await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    result = await asyncio.wait_for(handle.result(), 100)
    assert result["outcome"] == "completed"


@promise("policy:labels")
async def test_a_step_of_a_plan_is_asked_about_once_its_reference_is_known(opened):
    steps = [
        {"tool": "hub.secret", "arguments": {}},
        {"tool": "crm.post", "arguments": {"text": "${steps.0.result.total}"}},
    ]
    handle = await started(opened, "plan", plan={"steps": steps})
    (request,) = await pending(handle, within_s=20)
    assert "hub labelled private" in request["rule"]
    await update(handle, "decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await asyncio.wait_for(handle.result(), 100)


@promise("policy:labels-untrusted")
async def test_what_is_labelled_untrusted_vouches_for_nothing_whatever_is_declared(opened):
    handle = await started(opened, "doubted")
    (request,) = await pending(handle)
    assert "provenance" in request["rule"]
    await update(handle, "decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await asyncio.wait_for(handle.result(), 100)
