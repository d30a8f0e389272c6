"""Servers that repeat the token that they were called with: nobody reads it."""

import pytest_asyncio
from structlog.testing import CapturingLogger

from tests.connections.desk import desk_of
from tests.connections.issuer import Notes
from tests.requirements import promise
from toolbox.mcp import provider

# Nothing in them looks like a secret, so that they are found by what they are.
TOKEN, NEXT = "violet-harbour-lantern", "amber-meadow-candle"


@pytest_asyncio.fixture(params=[True, False], ids=["of the service", "of a user"])
async def desk(authority, tmp_path, request):
    async with desk_of(authority, tmp_path, app_of_notes, service=request.param) as found:
        found.issuer.token = TOKEN
        if not request.param:
            await found.sign_in()
        yield found


def app_of_notes(issuer):
    notes = Notes(issuer, echo=True)
    return notes.app


@promise("connections:not-repeated")
async def test_a_token_that_a_server_repeats_in_an_answer_is_masked_also_when_it_was_renewed_for_that_call(desk):
    answer = await desk.call("whoami")
    assert "came with [REDACTED" in answer.data["result"]
    assert TOKEN not in repr(answer)
    desk.issuer.forget()
    desk.issuer.token = NEXT
    answer = await desk.call("whoami")
    assert desk.guard.seen[-1] == NEXT
    assert "came with [REDACTED" in answer.data["result"]
    assert NEXT not in repr(answer)


@promise("connections:not-repeated")
async def test_a_token_that_a_server_repeats_in_an_error_is_masked_also_in_the_log(desk, monkeypatch):
    # Whether the product's own log is set up, and how, is a matter of the tests before.
    log = CapturingLogger()
    monkeypatch.setattr(provider, "_log", log)
    await desk.catalog()
    desk.guard.repeats = b"tools/call"
    answer = await desk.call("whoami")
    assert "introspection of [REDACTED" in answer.error
    assert TOKEN not in repr(answer)
    desk.guard.repeats = b"tools/list"
    desk.issuer.forget()
    desk.issuer.token = NEXT
    catalog = await desk.catalog(fresh=True)
    logged = repr(log.calls)
    assert "introspection of [REDACTED" in catalog.unavailable["notes"]
    assert "provider.unavailable" in logged
    for place in (logged, repr(catalog)):
        assert not [token for token in (TOKEN, NEXT) if token in place]
