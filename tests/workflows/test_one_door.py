"""Every call takes one way: one function orders it, and one table says which stages it passes."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from backstay.calls import CallTool
from backstay.tools.stages import READS, TABLE, Purpose, Stage
from tests.requirements import promise

HOUSE = Path(__file__).resolve().parents[2]
ROOMS = ("backstay", "workflows", "activities", "toolbox", "sandbox", "store", "system", "people", "gateways")
PRODUCT = (*ROOMS, "opening.py", "worker.py", "starter.py")
REQUEST = ("workflows/calls/tool_calls.py", "ToolCalls._request_for")
"""What makes the request for a call."""
DOOR = ("workflows/calls/tool_calls.py", "ToolCalls._order")
TOGETHER = ("workflows/calls/tool_calls.py", "ToolCalls._act_and_ask")
"""What hands the calls of one decision over together, with the question to the model that follows."""
READING = ("workflows/calls/tool_calls.py", "ToolCalls._call_together")
"""What hands reads over that travel together."""

LOOKED_FOR = re.compile(
    r"CallTool|ActAndAsk|CallTogether|call_tool|act_and_ask|call_together|(execute|start)_activity|execute_standalone"
    r"|from backstay.calls import"
)
"""What the tests below look for; a module that holds none of it need not be parsed."""

ASKING = "activities/programs/fetched_blobs.py"
"""What asks the runs role for payloads, beside all workflows."""


@cache
def modules():
    """Every module of the product that holds one of the names, by its own."""
    paths = [path for root in PRODUCT for path in sorted((HOUSE / root).rglob("*.py")) or [HOUSE / root]]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return {
        path.relative_to(HOUSE).as_posix(): ast.parse(text) for path, text in texts.items() if LOOKED_FOR.search(text)
    }


@cache
def located():
    """Every node that may name something, with the module and the function in which it stands; walked only once."""
    found = []

    def walk(node, name, owner):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                walk(decorator, name, (*owner, f"@{node.name}"))
            owner = (*owner, node.name)
        elif isinstance(node, ast.Call | ast.Attribute | ast.Name | ast.ImportFrom):
            found.append((node, name, ".".join(owner)))
        for child in ast.iter_child_nodes(node):
            if child not in getattr(node, "decorator_list", ()):
                walk(child, name, owner)

    for name, module in modules().items():
        walk(module, name, ())
    return found


def places(wanted):
    """Every module and function in which a node is what is wanted."""
    return {(name, owner) for node, name, owner in located() if wanted(node)}


def passes_on(node):
    """Whether a node is how an interceptor passes on what others ordered."""
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "super()"


def named(node, name):
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


@promise("runs:one-door")
def test_one_function_makes_the_request_for_a_call():
    assert places(lambda node: isinstance(node, ast.Call) and named(node.func, "CallTool")) == {REQUEST}
    assert places(lambda node: isinstance(node, ast.Call) and named(node.func, "ActAndAsk")) == {TOGETHER}
    assert places(lambda node: isinstance(node, ast.Call) and named(node.func, "CallTogether")) == {READING}


def is_menu_entry(node, entry="call_tool"):
    """Whether a node is an activity as others than the menu itself name it."""
    match node:
        case ast.Attribute(value=ast.Name(id="calls"), attr=name):
            return name == entry
        case ast.ImportFrom(module="backstay.calls", names=names):
            return any(name.name in {entry, "*"} for name in names)
        case _:
            return False


@promise("runs:one-door")
def test_one_function_orders_the_activity_that_calls_a_tool():
    # The body that implements the activity names it too, and orders nothing.
    assert places(is_menu_entry) == {DOOR, ("activities/tools/tools.py", "Tools.@call_tool")}
    assert places(lambda node: is_menu_entry(node, "act_and_ask")) == {
        ("workflows/calls/model_calls.py", "ModelCalls.ask_after"),
        ("activities/steps.py", "Steps.@act_and_ask"),
    }
    assert places(lambda node: is_menu_entry(node, "call_together")) == {
        READING,
        ("activities/batches.py", "Batches.@call_together"),
    }
    orders = {"execute_activity", "start_activity"}
    assert places(lambda node: any(named(node, name) for name in orders) and not passes_on(node)) == {
        ("workflows/dispatch/activity_calls.py", "ActivityCalls.execute_once"),
        ("backstay/client/standalone.py", "execute_standalone"),
    }
    # Without a workflow only payloads are asked for, and nothing of the menu.
    assert places(lambda node: named(node, "execute_standalone")) == {(ASKING, "RunsRole.ask")}
    sources = [node.module for node in ast.walk(modules()[ASKING]) if isinstance(node, ast.ImportFrom)]
    assert "activities.programs.payload_calls" in sources
    assert not [source for source in sources if source in {"backstay", "backstay.calls"}]


@promise("runs:one-door")
def test_nothing_else_than_perform_leads_to_that_function():
    door, own = modules()[DOOR[0]], {}
    (tool_calls,) = [node for node in door.body if isinstance(node, ast.ClassDef) and node.name == "ToolCalls"]
    for method in tool_calls.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            own[method.name] = {node.attr for node in ast.walk(method) if isinstance(node, ast.Attribute)}
    leading = {"_request_for"}
    while (more := leading | {name for name, used in own.items() if used & leading}) != leading:
        leading = more

    assert {name for name in leading if not name.startswith("_")} == {"perform"}
    # What is private to the class is used nowhere else.
    private = leading - {"perform"}
    used = places(lambda node: isinstance(node, ast.Attribute) and node.attr in private)
    assert {name for name, _ in used if name.startswith("workflows/")} == {DOOR[0]}


@promise("runs:stages")
def test_the_table_speaks_of_every_purpose_and_every_stage_and_gives_a_reason_for_each_that_is_left_out():
    assert set(TABLE) == set(Purpose)
    for purpose, row in TABLE.items():
        assert set(row) == set(Stage), purpose
        assert all(why is None or len(why.split()) >= 3 for why in row.values()), purpose
    assert all(len(why.split()) >= 3 for why in READS.values())


@promise("runs:stages")
@pytest.mark.parametrize("purpose", Purpose)
def test_what_is_ruled_on_may_be_asked_about_and_everything_is_called(purpose):
    row = TABLE[purpose]

    assert (row[Stage.RULE] is None) == (row[Stage.ASK] is None)
    assert row[Stage.CALL] is None
    # What no limit counts is told apart on the wire; everything else is a `call` there.
    assert (purpose.value in get_args(CallTool.model_fields["purpose"].annotation)) == (
        purpose is Purpose.CALL or row[Stage.RESERVE] is not None
    )
