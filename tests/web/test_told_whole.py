"""The page tells a plan's own words from the engine's, by whom a call is known, and all of what was decided."""

import html
import re

import pytest_asyncio

from people.requests.posted import call_options
from tests.engine import Scripts, ended, engine, pending, update
from tests.requirements import promise
from tests.web.pages import ANA, behind_a_proxy, listed, served_page

POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}"
SUMMARY = "only reads; allowed by the policy"


def send(to, **more):
    arguments = {"to": to, "subject": "s", "body": "Dear all"}
    return {"tool": "mail.send_email", "arguments": arguments, **more}


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    async with (
        engine(temporal, folder, Scripts(), policy=POLICY, **behind_a_proxy(approver_key=None)) as running,
        served_page(running) as page,
        page.person(ANA) as ana,
    ):
        plan = {"title": "two mails", "steps": [send("a@told.example", summary=SUMMARY), send("b@told.example")]}
        handle = await running.start({"plan": plan})
        (request,) = await pending(handle)
        await listed(ana, handle.id)
        yield ana, handle, request


def words(answer):
    """Return what people read on a page, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


@promise("page:told-whole")
async def test_a_step_is_told_with_its_authors_words_marked_and_known_by_whom_it_goes_to_and_so_is_its_decision(opened):
    ana, handle, request = opened
    path = f"/requests/{handle.id}/r1"
    shown = words(await ana.get(path))
    assert f"the plan says: {SUMMARY}" in shown
    # A plan's arguments come in the order of the alphabet.
    assert "include 1 mail.send_email" in shown
    offered = call_options([type("Call", (), call) for call in ({**each} for each in request["calls"])])
    assert [text.partition(", ")[0] for _, text in offered] == [
        "[0] mail.send_email a@told.example",
        "[1] mail.send_email b@told.example",
    ]
    out = {"1": {"verdict": "reject"}}
    await update(handle, "decide", {"request_id": "r1", "verdict": "approve", "by": ANA, "calls": out})
    await ended(handle)
    for place in ("/decided", f"/runs/{handle.id}", path):
        told = words(await listed(ana, "without step 1", place))
        assert "approved by ana@example.com" in told or "approved r1" in told, place
