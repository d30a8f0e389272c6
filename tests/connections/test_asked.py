"""What a server refuses for want of a sign-in, or of more rights: the person is asked, and nothing else is told."""

import pytest_asyncio

from tests.connections.desk import desk_of, intent
from tests.connections.issuer import Notes
from tests.requirements import promise


@pytest_asyncio.fixture
async def desk(authority, tmp_path):
    made = []

    def app_for(issuer):
        made.append(Notes(issuer))
        return made[0].app

    async with desk_of(authority, tmp_path, app_for) as found:
        found.notes = made[0]
        await found.sign_in()
        yield found


def asks(answer):
    return answer.question is not None and answer.question.requests[0].key == "signed_in"


@promise("connections:refused-by-nobody")
async def test_a_write_whose_token_is_refused_in_words_that_name_no_request_asks_for_a_sign_in(desk):
    await desk.catalog()
    desk.guard.says = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Unauthorized"}}
    desk.issuer.forget(refresh=True)
    assert asks(await desk.call("write", intent, arguments={"text": "lost"}))
    await desk.sign_in()
    assert (await desk.call("write", intent, arguments={"text": "kept"})).success
    assert desk.notes.written == [("ana-at-notes", "kept")]


@promise("connections:more-rights")
async def test_a_run_that_asks_for_a_sign_in_after_a_tool_wanted_more_rights_has_the_person_asked(desk):
    desk.guard.wanted = "admin"
    assert (await desk.call("sign_in")).success
    assert asks(await desk.call("write", intent, arguments={"text": "as admin"}))
    assert asks(await desk.call("sign_in"))
    await desk.sign_in()
    assert set(desk.issuer.asked[-1]["scope"].split()) == {"notes", "admin"}
    assert "is signed in" in (await desk.call("sign_in")).data
    assert (await desk.call("write", intent, arguments={"text": "as admin"})).success
