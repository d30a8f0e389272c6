import json

from backstay.testing import Reply
from tests.engine import pending

MOST_BYTES = 128 * 1024
QUERIES = ("status", "pending", "timeline", "budget", "plan", "undo_preview", "result")


async def test_every_query_answer_and_the_result_stay_under_128_kib_however_much_is_asked(open_engine):
    mails = [
        ("mail__send_email", {"to": f"{n}@example.com", "subject": "s" * 200, "body": "\u00e9" * 1500})
        for n in range(30)
    ]

    async with open_engine(lambda talk: Reply(text="x" * 3000, calls=mails)) as engine:
        handle = await engine.start({"text": "write to all", "budget": {"max_tool_calls": 100}})
        (request,) = await pending(handle)
        sizes = {name: len(json.dumps(await handle.query(name), ensure_ascii=False).encode()) for name in QUERIES}
        digest = request["args_digest"]
        verdict = {"request_id": request["id"], "verdict": "reject", "stop": True, "by": "ana", "args_digest": digest}
        await handle.execute_update("decide", verdict)
        result = await handle.result()

    assert len(request["calls"]) == 30
    assert max(sizes.values()) < MOST_BYTES, sizes
    assert sum(call["clipped"] for call in request["calls"]) > 0
    assert len(json.dumps(result, ensure_ascii=False).encode()) < MOST_BYTES
    assert result["outcome"] == "rejected"
