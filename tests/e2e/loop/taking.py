"""Endpoints that refuse what a rule finds wrong with a request, and else answer a run of four calls."""

import asyncio
import json

from backstay.testing import Reply
from tests.engine import assert_no_task_failure, pending

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def refused(message, code=None, status=400, **more):
    return Reply(status=status, body=json.dumps({"error": {"message": message, "code": code, **more}}).encode())


def says(content=None, *calls, finish=None, **beside):
    message = {"role": "assistant", "content": content, **beside}
    if calls:
        message["tool_calls"] = list(calls)
    choice = {"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if calls else "stop")}
    return Reply(body=json.dumps({"choices": [choice], "usage": USAGE}).encode())


def call(name, call_id, beside=None, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function, **(beside or {})}


def answers(body):
    return [message for message in body["messages"] if message["role"] == "tool"]


def steps(body, *, content=None, **beside):
    """Two calls at once, one more, and the end."""
    done = len(answers(body))
    if done == 0:
        return says(content, call("desk__look", "call_0001"), call("desk__look", "call_0002", page=2), **beside)
    if done == 2:
        return says(content, call("desk__look", "call_0003", page=3), **beside)
    return says(content, call("finish", "call_end1", summary="seen"), **beside)


def taking(fault):
    """A script that refuses what a rule finds wrong with a request."""

    def script(conversation):
        body = conversation.body
        return fault(body) or steps(body)

    return script


async def ran(opened, label):
    """Run the script of a label; a run that asks a person fails."""
    handle = await opened.start({"text": f"<{label}> look at the desk", "model": f"{label}-model"})
    ends, asks = asyncio.create_task(handle.result()), asyncio.create_task(pending(handle))
    await asyncio.wait((ends, asks), return_when=asyncio.FIRST_COMPLETED)
    asks.cancel()
    assert ends.done(), asks.result()[0]["question"]
    assert_no_task_failure(await handle.fetch_history())
    return await ends
