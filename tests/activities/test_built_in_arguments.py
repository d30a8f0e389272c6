"""Arguments of the built-in functions as models write them: what they can only mean is taken, the rest is refused."""

import json

import pytest

from activities.model.parsing import CompletionParser
from backstay.task.decision import Finish, ReadResult, SearchTools
from tests.requirements import promise
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.index import ToolIndex

FINISH = {"call_id": "a", "summary": "Done."}
READ = {"call_id": "a", "ref": "r"}
SEARCH = {"call_id": "a", "query": "mail"}


async def parsed(opened, name, given):
    function = {"name": name, "arguments": json.dumps(given)}
    message = {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    async with opened() as (arguments, _, _):
        none = {"definitions": {}, "by_function": {}, "problems": [], "unavailable": {}, "index": ToolIndex([])}
        parser = CompletionParser(arguments, Catalog(version="1", **none), "w/r")
        await parser.parse(message, started=True)
    return parser


@promise("models:calls-as-meant")
@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("finish", {"success": None}, Finish(**FINISH)),
        ("finish", {"success": "true"}, Finish(**FINISH)),
        ("finish", {"success": "False"}, Finish(**FINISH, success=False)),
        ("finish", {"success": True, "outputs": '{"paid": 3}'}, Finish(**FINISH, outputs={"paid": 3})),
        ("read_result", {"offset": "20", "limit": 5.0}, ReadResult(**READ, offset=20, limit=5)),
        ("read_result", {"offset": "20.0", "limit": None}, ReadResult(**READ, offset=20, limit=20)),
        ("search_tools", {"limit": "5"}, SearchTools(**SEARCH, limit=5)),
    ],
)
async def test_arguments_of_a_built_in_function_are_taken_for_what_they_can_only_mean(opened, name, given, meant):
    needed = {"finish": {"summary": "Done."}, "read_result": {"ref": "r"}, "search_tools": {"query": "mail"}}
    assert (await parsed(opened, name, needed[name] | given)).actions == (meant,)


@promise("models:calls-as-meant")
@pytest.mark.parametrize(
    ("name", "given", "fault"),
    [
        ("finish", {"summary": "Done.", "success": 1}, "success: give true or false"),
        ("finish", {"summary": "Done.", "success": "mostly"}, "success: give true or false"),
        ("read_result", {"ref": "r", "offset": 2.5}, "offset: give a whole number"),
        ("read_result", {"ref": "r", "limit": -1}, "limit: give a whole number"),
        ("search_tools", {"query": "mail", "limit": "all"}, "limit: give a whole number"),
    ],
)
async def test_arguments_of_a_built_in_function_that_fit_nothing_are_refused(opened, name, given, fault):
    parser = await parsed(opened, name, given)
    assert parser.actions == ()
    assert fault in parser.items[-1]["text"]
