"""The run shapes whose histories are kept: each must replay on every later version."""

import asyncio

from backstay.testing import Conversation, Reply
from tests import signing
from tests.engine import Engine, pending
from tests.replay import (
    continued,
    delegated,
    lanes,
    lost_answers,
    meaning,
    models,
    plans,
    programs,
    repeated_steps,
    server_tasks,
    starts,
    steered,
    told,
)
from tests.replay.steps import FINISH, KEY, READ, SEND, Handle, Play, Script, decided, find

OTHER = ("mail__send_email", {"to": "b@example.com", "subject": "s", "body": "b"})


def rules(talk: Conversation) -> Reply:
    """Play the shape that the task names; the step is the number of answers so far."""
    scripts: dict[str, Script] = {
        "read": [[READ], [READ, READ], [FINISH]],
        "approve": [[SEND, OTHER], [FINISH]],
        "stop": [[SEND], [OTHER]],
        "budget": [[READ], [READ], [READ]],
        "catalog": [[find("grow")], [("desk__grow", {})], [find("grown")], [("desk__grown", {})], [FINISH]],
        "elicitation": [[find("give a room away")], [("office__give_away", {"room": "cellar"})], [FINISH]],
        "recalled": [[READ], [("recall", {"query": "customers"}), READ], [FINISH]],
        "undo": [[SEND], [("ask_person", {"question": "go on?"})], [FINISH]],
        **lost_answers.SCRIPTS,
        **meaning.SCRIPTS,
        **steered.SCRIPTS,
        **told.SCRIPTS,
        **plans.SCRIPTS,
        **programs.SCRIPTS,
        **repeated_steps.SCRIPTS,
        **continued.SCRIPTS,
        **delegated.SCRIPTS,
    }
    name = talk.task.partition("\n")[0]
    if not talk.tools:
        return Reply(text="closing words")
    said = sum(1 for message in talk.messages if message["role"] == "assistant")
    return Reply(calls=scripts[name][said])


async def read(engine: Engine) -> Handle:
    return await engine.start({"text": "read"}, "golden-read")


async def approve(engine: Engine) -> Handle:
    handle = await engine.start({"text": "approve"}, "golden-approve")
    await decided(handle, "approve")
    return handle


async def stop(engine: Engine) -> Handle:
    handle = await engine.start({"text": "stop"}, "golden-stop")
    await decided(handle, "approve")
    await decided(handle, "reject", stop=True)
    return handle


async def budget(engine: Engine) -> Handle:
    return await engine.start({"text": "budget", "budget": {"max_steps": 2}}, "golden-budget")


async def plan(engine: Engine) -> Handle:
    steps = [
        {"tool": "mail.list_customers", "arguments": {"offset": 0, "limit": 1}},
        {"tool": "mail.send_email", "arguments": {"to": "${input.to}", "subject": "s", "body": "b"}},
        {"tool": "mail.recall_email", "arguments": {"message_id": "${steps.1.result.message_id}"}},
    ]
    task = {"input": {"to": "a@example.com"}, "plan": {"steps": steps}}
    handle = await engine.start(task, "golden-plan")
    await decided(handle, "approve")
    return handle


async def undo(engine: Engine) -> Handle:
    handle = await engine.start({"text": "undo"}, "golden-undo")
    await decided(handle, "approve")
    await pending(handle)
    async with asyncio.timeout(150):
        while (await handle.query("pending"))[0]["kind"] != "question":
            await asyncio.sleep(0.1)
    await handle.execute_update("undo", {"to_step": None, "by": "ana"})
    await decided(handle, "answer", answer="yes")
    return handle


async def recalled(engine: Engine) -> Handle:
    """Play a run that reads and fills the memory of the user who has proven to have started it."""
    task = {"text": "recalled", "by": "ana@example.com", "profile": "remembering"}
    return await engine.start(signing.signed_start(engine.client, "golden-recalled", task, key=KEY), "golden-recalled")


async def catalog(engine: Engine) -> Handle:
    return await engine.start({"text": "catalog"}, "golden-catalog")


async def elicitation(engine: Engine) -> Handle:
    handle = await engine.start({"text": "elicitation"}, "golden-elicitation")
    await decided(handle, "approve")
    await decided(handle, "answer", "elicitation", answer={"sure": True})
    return handle


SHAPES: dict[str, Play] = {
    "read": read,
    "approve": approve,
    "stop": stop,
    "budget": budget,
    "plan": plan,
    "undo": undo,
    "catalog": catalog,
    "recalled": recalled,
    "elicitation": elicitation,
    **lost_answers.SHAPES,
    **meaning.SHAPES,
    **steered.SHAPES,
    **told.SHAPES,
    **plans.SHAPES,
    **programs.SHAPES,
    **repeated_steps.SHAPES,
    **models.SHAPES,
    **continued.SHAPES,
    **lanes.SHAPES,
    **server_tasks.SHAPES,
    **starts.SHAPES,
    **delegated.SHAPES,
}
