"""Tasks by which a server answers at which people sign in: they are followed with the tokens of who called."""

import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.routing import Route

from backstay.errors import ToolUnavailable
from tests.connections.desk import ANA, desk_of, intent
from tests.requirements import promise
from tests.task_server import TaskServer
from toolbox.providers.provider import Caller
from toolbox.providers.server_tasks import TaskRequest

TOKEN = "violet-harbour-lantern"


@pytest_asyncio.fixture(params=[True, False], ids=["of the service", "of a user"])
async def desk(authority, tmp_path, request):
    server = TaskServer()
    app = Starlette(routes=[Route("/mcp", server.answer, methods=["POST"])])
    async with desk_of(authority, tmp_path, lambda _: app, service=request.param) as found:
        found.issuer.token, found.server = TOKEN, server
        if not request.param:
            await found.sign_in()
        yield found


async def begun(desk, lasts_s):
    # The server repeats the mark of a task in its words.
    arguments = {"mark": TOKEN, "lasts_s": lasts_s}
    answer = await desk.call("send", intent, follows=True, arguments=arguments)
    assert TOKEN not in repr(answer)
    return answer.task


async def ask(desk, task, **more):
    request = TaskRequest(id=task.id, deadline_s=5, **{"action": "get", **more})
    return await desk.toolbox.follow("notes", request, desk.caller)


@promise("connections:followed")
async def test_a_task_is_followed_to_its_end_and_its_words_hold_no_token(desk):
    task = await begun(desk, lasts_s=60)
    working = (await ask(desk, task)).task
    assert "% of [REDACTED" in working.said
    assert TOKEN not in repr(working)
    await ask(desk, task, action="cancel")
    ended = await ask(desk, task)
    assert "told to end" in ended.error
    done = await ask(desk, await begun(desk, lasts_s=0))
    assert (done.success, done.data["done"]) == (True, True)
    assert TOKEN not in repr(done)


@promise("connections:followed")
@pytest.mark.parametrize("desk", [False], indirect=True)
async def test_a_task_waits_while_nobody_is_signed_in_and_is_nobody_elses(desk):
    task = await begun(desk, lasts_s=60)
    await desk.connections.disconnect(ANA, "notes")
    asked = len(desk.server.asked)
    with pytest.raises(ToolUnavailable, match=r"ana@example\.com is not signed in"):
        await ask(desk, task)
    for nobody in (Caller(), Caller(user_id=ANA)):
        with pytest.raises(ToolUnavailable, match="nobody is not signed in"):
            await desk.toolbox.follow("notes", TaskRequest(action="get", id=task.id, deadline_s=5), nobody)
    assert len(desk.server.asked) == asked
    await desk.sign_in()
    assert (await ask(desk, task)).task.id == task.id
