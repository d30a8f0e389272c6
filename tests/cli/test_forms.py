"""A question of a tool at the terminal: a form, checked where it is typed and where the answer is accepted."""

import asyncio
import json

import pytest_asyncio

from backstay.client import Backstay
from backstay.testing import Reply
from tests.cli.commands import BACKSTAY, at_terminal, environment_of, forked
from tests.engine import Scripts, engine
from tests.requirements import promise

DESK = '''
from typing import Any

from backstay import ToolContext, tool

WHEN = ["friday", "monday", "tuesday"]
FORM = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "title": "Day", "description": "REASON", "enum": WHEN},
        "seats": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
        "mail": {"type": "string", "format": "email", "minLength": 6},
        "lunch": {"type": "boolean"},
    },
    "required": ["day", "mail"],
    "minProperties": 3,
}


@tool(safety="write_safe")
async def book(who: str, context: ToolContext) -> dict[str, Any]:
    """Book seats, after a person says when."""
    return {"who": who, **await context.ask("When?", FORM)}
'''.replace("REASON", "the day on which the guests come, " * 60)
RUN = (*BACKSTAY, "run", "--by", "ana")
FREE = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
FITS = {"day": "monday", "seats": 2, "mail": "ana@x.example"}


@pytest_asyncio.fixture(scope="module")
async def desk(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    (folder / "desk.py").write_text(DESK, encoding="utf-8")
    toolbox = folder / "toolbox.json"
    toolbox.write_text(json.dumps({"python": {"desk": {"module": "desk.py"}}}), encoding="utf-8")
    scripts = Scripts()
    async with engine(temporal, folder, scripts, policy=FREE, toolbox=toolbox, cached=100) as opened:
        yield opened, scripts


def books(scripts):
    return scripts.task(Reply(calls=[("desk__book", {"who": "Ana"})]))


async def asked(opened, scripts, name):
    run = await Backstay(opened.client, task_queue=opened.settings.task_queue).start(books(scripts), id=name)
    async with asyncio.timeout(150):
        while not (found := await run.pending()):
            await asyncio.sleep(0.1)
    return run, found[0]


def told(opened):
    return json.dumps(opened.model.requests[-1]["messages"])


@promise("approvals:form")
async def test_two_kilobytes_of_schema_are_a_form_that_is_checked_where_it_is_typed(desk, nursery):
    opened, scripts = desk
    text = books(scripts)["text"]
    async with at_terminal(*RUN, text, environment=environment_of(opened), nursery=nursery) as terminal:
        shown = await terminal.shows("[d]etach?")
        terminal.type("a")
        await terminal.shows("[1] friday, [2] monday, [3] tuesday; required):")
        terminal.type("someday")
        await terminal.shows("day: choose from")
        await terminal.shows("required):")
        terminal.type("2")
        await terminal.shows("default 2):")
        terminal.type("9")
        await terminal.shows("seats: does not fit maximum 5")
        await terminal.shows("default 2):")
        terminal.type("")
        await terminal.shows("minLength 6; required):")
        terminal.type("")
        await terminal.shows("mail: must be given")
        await terminal.shows("required):")
        terminal.type("ana@x.example")
        await terminal.shows("lunch (yes or no; optional):")
        terminal.type("")
        await terminal.shows("decided: answered by ana")
        code, _ = await terminal.ended()

    assert code == 0
    assert '"minimum"' not in shown
    assert "  │ seats (whole number; minimum 1; maximum 5; optional; default 2)" in shown.splitlines()
    assert '\\"day\\":\\"monday\\"' in told(opened).replace(" ", "")


@promise("approvals:flags")
async def test_a_form_is_filled_in_by_flags_and_what_does_not_fit_names_its_field(desk, nursery, tmp_path):
    opened, scripts = desk
    run, request = await asked(opened, scripts, "by-flags")

    async def answer(*flags):
        said = ("answer", run.id, request.id, *flags, "--by", "ana")
        return await forked(nursery, *said, environment=environment_of(opened), folder=tmp_path)

    strange = await answer("--field", "days=friday")
    wrong = await answer("--field", "day=someday", "--field", "mail=ana@x.example")
    missing = await answer("--field", "day=monday")
    unfit = await answer("--answer", json.dumps(FITS | {"seats": "two"}))
    still_open = [open_now.id for open_now in await run.pending()]
    fits = await answer("--field", "day=monday", "--field", "mail=ana@x.example")

    assert [done.code for done in (strange, wrong, missing, unfit, fits)] == [2, 2, 2, 2, 0]
    assert "its fields are day, seats, mail, lunch" in strange.err
    assert "day: choose from" in wrong.err
    assert "mail: must be given" in missing.err
    assert "answer.seats: must be integer, not string" in unfit.err
    assert still_open == [request.id]
    assert (await run.result()).success
    assert "ana@x.example" in told(opened)


@promise("approvals:stopped")
async def test_a_person_can_stop_in_the_middle_of_a_form_and_decline(desk, nursery):
    opened, scripts = desk
    text = books(scripts)["text"]
    async with at_terminal(*RUN, text, environment=environment_of(opened), nursery=nursery) as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("a")
        await terminal.shows("required):")
        terminal.type(".")
        await terminal.shows("nothing was answered")
        await terminal.shows("[d]etach?")
        terminal.type("r")
        await terminal.shows("why?")
        terminal.type("")
        await terminal.shows("decided: rejected")
        code, _ = await terminal.ended()
    assert code == 0
