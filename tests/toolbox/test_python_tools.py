import asyncio
import json
import sys
import threading

import pytest
from jsonschema import Draft202012Validator

from backstay.canonical import digest_of
from backstay.errors import OutcomeUnknown, ToolboxInvalid, ToolChanged, ToolUnavailable
from backstay.tools.tool import Safety
from tests.requirements import promise
from toolbox import ToolboxBuilder, list_methods
from toolbox.configuration.template import holds, render
from toolbox.manifest.docs import tool_docs
from toolbox.providers.elicitation import InputResponse
from toolbox.providers.provider import Caller

MAIL = {"to": "Ana <ana@example.com>; bo@example.com", "subject": "Hi\tyou", "body": "b"}


@pytest.fixture
def acting(opened, tmp_path, servers):
    """Open a toolbox with a server for mail and chat in one shape, and tools in Python over it."""

    def open_with(shape, **configuration):
        server = {"command": "python", "args": [str(servers / "people.py"), shape]}
        names = {"gmail": {"provider": "people", "shape": shape}, "slack": {"provider": "people", "shape": shape}}
        return opened(tmp_path, {"mcpServers": {"people": server}, "python": names, **configuration})

    return open_with


@pytest.fixture
def own(opened, tmp_path, servers):
    """Open a toolbox with tools in Python from a file, over a plain server."""

    def open_with(source, **entry):
        (tmp_path / "own.py").write_text(
            "import asyncio\nfrom typing import Any\nfrom backstay import Retry, ToolContext, ToolError, tool\n"
            + source
        )
        server = {"command": "python", "args": [str(servers / "people.py"), "plain"]}
        entry = {"module": "own.py", "provider": "people", **entry}
        return opened(tmp_path, {"mcpServers": {"people": server}, "python": {"own": entry}})

    return open_with


class Intent:
    """Count how often an intent was committed."""

    def __init__(self):
        self.committed = 0

    async def __call__(self):
        self.committed += 1


async def call(toolbox, name, arguments, *, intent=None, deadline_s=60, **more):
    definition = (await toolbox.catalog("anyone")).definitions[name]
    assert definition.validate(arguments) is None
    return await toolbox.call(definition, arguments, deadline_s=deadline_s, before_send=intent, **more)


@promise("python:shapes")
@pytest.mark.parametrize("shape", ["plain", "composio"])
async def test_one_function_fits_servers_that_name_things_differently(acting, shape):
    intent = Intent()
    async with acting(shape) as toolbox:
        sent = await call(toolbox, "gmail.send_email", MAIL, intent=intent, effect_id="run/1")
        found = await call(toolbox, "gmail.search", {"query": " from:ana \n late", "limit": 5})
        posted = await call(toolbox, "slack.post_message", {"channel": "#general", "text": "t"}, intent=intent)
    to = ["ana@example.com", "bo@example.com"]
    assert {name: sent.data[name] for name in ("to", "subject", "effect")} == {
        "to": to,
        "subject": "Hi you",
        "effect": "run/1",
    }
    assert (found.data["query"], found.data["limit"], found.data["effect"]) == ("from:ana late", 5, None)
    assert (posted.data["channel"], posted.data["ts"]) == ("general", "1.5")
    assert intent.committed == 2


@promise("python:safety")
async def test_functions_say_their_own_danger_and_how_they_are_undone(acting, tmp_path):
    async with acting("composio") as toolbox:
        catalog = await toolbox.catalog("anyone")
        safety = {
            name: definition.tool.safety
            for name, definition in catalog.definitions.items()
            if definition.provider != "people" and not definition.hidden
        }
        assert safety == {
            "gmail.search": Safety.READ_ONLY,
            "gmail.send_email": Safety.RESTRICTED_WRITE,
            "slack.delete_message": Safety.RESTRICTED_WRITE,
            "slack.post_message": Safety.RESTRICTED_WRITE,
            "slack.search_messages": Safety.READ_ONLY,
        }
        # What only the engine calls is offered and documented nowhere.
        assert await list_methods("slack", toolbox=toolbox) == ["delete_message", "post_message", "search_messages"]
        manifest = await ToolboxBuilder(toolbox, tmp_path).manifest("anyone")
        headings = [line for page in tool_docs(manifest).values() for line in page.splitlines() if line[:3] == "## "]
        assert headings
        assert not [line for line in headings if "undo" in line]
        post = catalog.definitions["slack.post_message"]
        undo = catalog.undo_of(post)
        posted = await call(toolbox, "slack.post_message", {"channel": "general", "text": "t"}, intent=Intent())
        given = {"result": posted.data, "arguments": {"channel": "general"}, "effect": {}}
        arguments = render(post.declaration.undo.arguments, given)
        undone = await call(toolbox, undo.name, arguments, intent=Intent())
    assert undone.data["deleted"] == ["general", "1.5"]


@promise("python:missing")
async def test_a_function_is_offered_only_where_the_tools_that_it_calls_are(acting):
    async with acting("plain") as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert [name for name in sorted(catalog.definitions) if name.startswith("slack.")] == ["slack.post_message"]
        assert catalog.definitions["slack.post_message"].tool.undo is None or (
            catalog.undo_of(catalog.definitions["slack.post_message"]) is None
        )
    async with acting("plain", python={"gmail": {"provider": "people", "shape": "composio"}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert catalog.unavailable == {"gmail": "people offers none of GMAIL_FETCH_EMAILS, GMAIL_SEND_EMAIL"}


@promise("python:behind")
async def test_a_hit_names_the_tool_behind_a_function(acting):
    async with acting("composio") as toolbox:
        catalog = await toolbox.catalog("anyone")
        names = {hit.tool: hit.mcp_tool_name for hit in catalog.search("gmail.", limit=40)}
    assert names["gmail.send_email"] == "GMAIL_SEND_EMAIL"
    assert names["people.GMAIL_SEND_EMAIL"] == "GMAIL_SEND_EMAIL"


@promise("python:normalised")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"to": "nobody"}, "an address looks like"),
        ({"to": []}, "at least one address"),
        ({"to": "a@b.c\nBcc: d@e.f"}, "an address is one line"),
    ],
)
async def test_arguments_that_mean_nothing_are_refused_before_the_server_sees_them(acting, changed, said):
    intent = Intent()
    async with acting("plain") as toolbox:
        answer = await call(toolbox, "gmail.send_email", MAIL | changed, intent=intent)
    assert not answer.success
    assert said in answer.error
    assert "nobody" not in answer.error
    assert intent.committed == 1  # it is recorded as an effect that failed


@promise("python:refused")
@pytest.mark.parametrize("shape", ["plain", "composio"])
async def test_what_the_server_refuses_the_function_refuses(acting, shape):
    async with acting(shape) as toolbox:
        answer = await call(toolbox, "gmail.send_email", MAIL | {"subject": "refuse"}, intent=Intent())
    assert not answer.success
    assert answer.error.endswith("the mailbox is full")


@promise("python:unknown")
async def test_a_write_without_an_answer_is_unknown_whatever_the_function_makes_of_it(acting, own):
    async with acting("plain") as toolbox:
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, "gmail.send_email", MAIL | {"subject": "die"}, intent=Intent())
    hiding = (
        "@tool(writes=['send_email'])\n"
        "async def send_email(context: ToolContext) -> str:\n"
        "    try:\n"
        "        await context.write('send_email', to=['a@b.c'], subject='die', body='')\n"
        "    except Exception:\n"
        "        return 'all is well'\n"
    )
    async with own(hiding) as toolbox:
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, "own.send_email", {}, intent=Intent())


@promise("python:once")
async def test_a_function_writes_once_and_what_was_written_stands_when_it_fails_after_it(own):
    source = (
        "SEND = {'to': ['a@b.c'], 'subject': 's', 'body': ''}\n"
        "@tool(writes=['send_email'])\n"
        "async def twice(context: ToolContext) -> Any:\n"
        "    await context.write('send_email', **SEND)\n"
        "    await context.write('send_email', **SEND)\n"
        "@tool(reads=['search_emails'], writes=['send_email'])\n"
        "async def stumble(context: ToolContext) -> Any:\n"
        "    await context.read('search_emails', query='q', limit=1)\n"
        "    await context.write('send_email', **SEND)\n"
        "    return 1 / 0\n"
        "@tool(writes=['send_email'])\n"
        "async def together(context: ToolContext) -> Any:\n"
        "    await asyncio.gather(*(context.write('send_email', **SEND) for _ in range(3)))\n"
        "@tool(writes=['send_email'])\n"
        "async def leave(context: ToolContext) -> Any:\n"
        "    globals()['left'] = asyncio.create_task(context.write('send_email', **SEND))\n"
        "    await asyncio.sleep(0)\n"
        "@tool(writes=['send_email'])\n"
        "async def count(context: ToolContext) -> Any:\n"
        "    return await context.read('search_emails', query='q', limit=1)\n"
    )
    intent = Intent()
    async with own(source) as toolbox:
        for name in ("twice", "stumble"):
            answer = await call(toolbox, f"own.{name}", {}, intent=intent)
            assert (answer.success, answer.data["message_id"]) == (True, "m1")
        undeclared = await call(toolbox, "own.count", {}, intent=intent)
        together = await call(toolbox, "own.together", {}, intent=intent)
        left = await call(toolbox, "own.leave", {}, intent=intent)
    assert "add it to `reads`" in undeclared.error
    assert (together.success, together.data["message_id"]) == (True, "m1")
    assert left.success
    assert intent.committed == 5


@promise("python:own")
async def test_a_function_is_a_tool_with_the_schema_of_its_signature(own):
    source = (
        "from pydantic import BaseModel\n"
        "class Line(BaseModel):\n    item: str\n    count: int = 1\n"
        "@tool(safety='read_only')\n"
        "async def total(lines: list[Line], tax: float | None = None) -> dict[str, Any]:\n"
        "    '''Add up an order.'''\n"
        "    if tax == 3:\n        raise ToolError('no such tax')\n"
        "    if tax == 4:\n        await asyncio.sleep(600)\n"
        "    return {'count': sum(line.count for line in lines)} if tax is None else {'tax': 1 / tax}\n"
    )
    async with own(source, provider=None) as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["own.total"]
        assert definition.description == "Add up an order."
        assert definition.parameters["required"] == ["lines"]
        assert "title" not in json.dumps(definition.parameters)
        assert definition.validate({"lines": [{"count": 2}]}).endswith("'item' is required; add it")
        answer = await call(toolbox, "own.total", {"lines": [{"item": "a", "count": 2}, {"item": "b"}]})
        assert (answer.success, answer.data) == (True, {"count": 3})
        refused = await call(toolbox, "own.total", {"lines": [], "tax": 3})
        failed = await call(toolbox, "own.total", {"lines": [], "tax": 0})
        slow = await call(toolbox, "own.total", {"lines": [], "tax": 4}, deadline_s=0.2)
        assert [answer.error for answer in (refused, failed, slow)] == [
            "no such tax",
            "the tool failed: ZeroDivisionError",
            "not done within 0.2 s",
        ]


@promise("python:lost-empty")
async def test_only_false_from_a_check_says_that_a_write_did_not_take_place(own):
    source = "def sure(result, arguments, context: ToolContext) -> Any: ...\n@tool(verify=sure)\ndef go() -> Any: ...\n"
    async with own(source, provider=None) as toolbox:
        check = (await toolbox.catalog("anyone")).definitions["own.go"].declaration.verify
    answers = ([], {}, 0, "", True, {"id": 1}, False)
    assert [holds(check.applied_if, {"result": answer}) for answer in answers] == [True] * 6 + [False]


@promise("python:known-checks")
async def test_a_tool_with_a_check_counts_as_the_same_as_before_an_upgrade(own):
    source = "def sure(result, arguments, context: ToolContext) -> Any: ...\n@tool(verify=sure)\ndef go() -> Any: ...\n"
    async with own(source, provider=None) as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["own.go"]
    written = {"applied_if": "{{ not not result }}", "result": "{{ none if result is true else result }}"}
    check = definition.said["declaration"]["verify"]
    assert {name: check[name] for name in written} == written
    assert definition.digest == digest_of(definition.said)


@promise("python:declared")
async def test_what_a_function_returns_has_the_names_that_its_tool_declares(own):
    source = (
        "from pydantic import BaseModel, ConfigDict, Field\n"
        "class Line(BaseModel):\n    count: int = Field(alias='n')\n"
        "class Order(BaseModel):\n"
        "    model_config = ConfigDict(serialize_by_alias=True)\n    lines: list[Line] = Field(alias='rows')\n"
        "from pydantic.dataclasses import dataclass\n"
        "@dataclass(config=ConfigDict(serialize_by_alias=True))\nclass Item:\n    count: int = Field(alias='n')\n"
        "@dataclass\nclass Part:\n    count: int = Field(alias='n')\n"
        "class Kit(BaseModel):\n"
        "    model_config = ConfigDict(serialize_by_alias=True)\n    parts: list[Part] = Field(alias='rows')\n"
        "@tool(safety='read_only')\nasync def item() -> Item:\n    return Item(n=1)\n"
        "@tool(safety='read_only')\nasync def kit() -> Kit:\n    return Kit(rows=[Part(n=1)])\n"
        "@tool(safety='read_only')\nasync def line() -> Line:\n    return Line(n=1)\n"
        "@tool(safety='read_only')\nasync def order() -> Order:\n    return Order(rows=[Line(n=1)])\n"
    )
    async with own(source, provider=None) as toolbox:
        declared = (await toolbox.catalog("anyone")).definitions
        rows, each = {"rows": [{"count": 1}]}, {"own.line": {"count": 1}, "own.item": {"n": 1}}
        for name, answer in (each | {"own.order": rows, "own.kit": rows}).items():
            assert (await call(toolbox, name, {})).data == answer
            schema = declared[name].output_schema | {"additionalProperties": False}
            inner = {key: part | {"additionalProperties": False} for key, part in schema.get("$defs", {}).items()}
            schema |= {"$defs": inner}
            assert list(Draft202012Validator(schema).iter_errors(answer)) == []


@promise("python:unknown")
async def test_an_effect_of_a_function_alone_is_unknown_when_the_function_breaks(own):
    source = "@tool()\nasync def pay(amount: int) -> float:\n    return 1 / amount\n"
    intent = Intent()
    async with own(source, provider=None) as toolbox:
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, "own.pay", {"amount": 0}, intent=intent)
        assert (await call(toolbox, "own.pay", {"amount": 2}, intent=intent)).data == 0.5
    assert intent.committed == 2


@promise("python:held")
async def test_what_the_intent_raises_comes_out_as_it_is(acting, own):
    class HeldError(Exception):
        pass

    async def hold():
        raise HeldError

    async with acting("plain") as toolbox:
        with pytest.raises(HeldError):
            await call(toolbox, "gmail.send_email", MAIL, intent=hold)
    async with own("@tool()\nasync def pay() -> int:\n    return 1\n", provider=None) as toolbox:
        with pytest.raises(HeldError):
            await call(toolbox, "own.pay", {}, intent=hold)


@promise("python:changed")
async def test_a_tool_that_changes_behind_a_function_changes_the_function(opened, tmp_path, raw):
    def tool(description):
        return {"name": "send_email", "description": description, "inputSchema": {"type": "object"}}

    entry = raw(tools=[tool("one")], answers={})
    python = {"gmail": {"provider": "raw", "shape": "plain"}}
    async with opened(tmp_path, {"mcpServers": {"raw": entry}, "python": python}) as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["gmail.send_email"]
        raw(tools=[tool("two")], answers={})
        await toolbox._providers["raw"]._connection.close()
        with pytest.raises(ToolChanged):
            await toolbox.call(definition, MAIL, deadline_s=60, before_send=Intent())
        changed = (await toolbox.catalog("anyone")).definitions["gmail.send_email"]
        assert changed.tool.definition != definition.tool.definition


@promise("python:changed")
async def test_the_order_of_what_a_tool_behind_a_function_requires_changes_nothing(opened, tmp_path, raw):
    def tool(turn):
        return {"name": "send_email", "inputSchema": {"type": "object", "required": ["to", "body"][::turn]}}

    entry = raw(tools=[tool(1)], answers={})
    python = {"gmail": {"provider": "raw", "shape": "plain"}}
    found = []
    async with opened(tmp_path, {"mcpServers": {"raw": entry}, "python": python}) as toolbox:
        for turn in (1, -1):
            raw(tools=[tool(turn)], answers={})
            found.append((await toolbox.catalog("anyone", fresh=True)).definitions["gmail.send_email"])
    assert found[0].digest == found[1].digest
    assert found[0].earlier_digest != found[1].earlier_digest


@promise("python:gone")
async def test_a_function_over_a_server_that_is_gone_is_unavailable_for_its_reason(opened, tmp_path):
    configuration = {
        "mcpServers": {"people": {"command": "no-such-command"}, "off": {"command": "x", "disabled": True}},
        "python": {"gmail": {"provider": "people"}, "slack": {"provider": "off"}},
    }
    async with opened(tmp_path, configuration) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert "'no-such-command' was not found" in catalog.unavailable["gmail"]
    assert "slack" not in catalog.unavailable


@promise("python:configuration")
@pytest.mark.parametrize(
    ("python", "said"),
    [
        ({"gmail": {}}, "python.gmail.provider: search calls tools; name the server"),
        ({"gmail": {"provider": "x"}}, "python.gmail.provider: unknown provider 'x' (known: people)"),
        ({"people": {"provider": "people", "module": "gmail"}}, "python.people: this name belongs to another"),
        ({"fax": {"provider": "people"}}, "has tools of this name (known: gmail, slack); give `module`"),
        (
            {"gmail": {"provider": "people", "shape": "odd"}},
            "python.gmail.shape: unknown 'odd' (known: plain, composio)",
        ),
        (
            {"gmail": {"provider": "people", "shape": {"sned": {"tool": "x"}}}},
            "python.gmail.shape.sned: no tool calls",
        ),
        (
            {"gmail": {"provider": "people", "shape": {"search": {"tool": "x", "arguments": {"q": "{{ qery }}"}}}}},
            "python.gmail.shape.search.arguments: 'qery' is not known",
        ),
        ({"own": {"module": "gone.py"}}, "python.own.module: 'gone.py' cannot be loaded: FileNotFoundError"),
        ({"own": {"module": "empty.py"}}, "defines no function with @tool"),
        ({"own": {"module": "bad.py"}}, "python.own.module: 'bad.py': tool plain: transactional: there is no undo"),
        ({"own": {"module": "leaves.py"}}, "python.own.module: 'leaves.py' cannot be loaded: SystemExit: 3"),
        ({"own": {"module": "again.py"}}, "python.own.module: tool odd: retries: a write is made again only if"),
        ({"own": {"module": "twins.py"}}, "tool even: two functions have this name"),
        ({"own": {"module": "alone.py"}}, "tool odd: it calls tools; give it a parameter of the type ToolContext"),
        ({"own": {"module": "verifies.py"}}, "tool odd: verify: it has `writes`, but it may only read"),
        ({"own": {"module": "untyped.py"}}, "tool odd: its signature cannot be turned into a schema: n has no type"),
    ],
)
async def test_what_is_wrong_with_python_is_named_with_field_and_fix(opened, tmp_path, python, said):
    head = "from backstay import tool\n"
    (tmp_path / "empty.py").touch()
    odd, verify = "def odd() -> int:\n    return 1\n", "@tool(writes=['x'])\nasync def sure(r, a, c): ...\n"
    files = {
        "bad": "@tool(transactional=True)\ndef plain() -> int:\n    return 1\n",
        "leaves": "raise SystemExit(3)\n",
        "again": f"@tool(retries=2)\n{odd}",
        "twins": f"@tool('even')\n{odd}@tool\n{odd.replace('odd', 'even')}",
        "alone": f"@tool(reads=['x'], safety='read_only')\n{odd}",
        "verifies": f"{verify}@tool(verify=sure)\n{odd}",
        "untyped": "@tool\nasync def odd(n) -> int:\n    return 1\n",
    }
    for name, source in files.items():
        (tmp_path / f"{name}.py").write_text(head + source)
    with pytest.raises(ToolboxInvalid) as caught:
        async with opened(tmp_path, {"mcpServers": {"people": {"command": "x"}}, "python": python}):
            pass
    assert said in str(caught.value)


@promise("python:threads")
async def test_a_function_that_blocks_holds_up_nobody_and_is_unknown_when_it_takes_too_long(own):
    source = (
        "import threading\n"
        "going = threading.Event()\n"
        "@tool\n"
        "def wait() -> str:\n    going.wait(60)\n    return threading.current_thread().name\n"
        "@tool\n"
        "async def let_go() -> None:\n    going.set()\n"
    )
    async with own(source, provider=None) as toolbox:
        with pytest.raises(OutcomeUnknown) as caught:
            await call(toolbox, "own.wait", {}, intent=Intent(), deadline_s=0.1)
        waiting = asyncio.create_task(call(toolbox, "own.wait", {}, intent=Intent()))
        await call(toolbox, "own.let_go", {}, intent=Intent())
        ended = await waiting
    assert (str(caught.value), caught.value.facts["timed_out"]) == ("not done within 0.1 s", True)
    assert ended.data == "tool own" != threading.current_thread().name


@promise("python:threads")
async def test_too_many_calls_that_never_come_back_are_refused_before_the_intent(own, monkeypatch):
    monkeypatch.setattr("toolbox.python_tools.threads.MOST_THREADS", 1)
    source = (
        "import threading\n"
        "going = threading.Event()\n"
        "@tool\n"
        "def hang() -> None:\n    going.wait(60)\n"
        "@tool\n"
        "async def let_go() -> None:\n    going.set()\n"
    )
    intent = Intent()
    async with own(source, provider=None) as toolbox:
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, "own.hang", {}, intent=intent, deadline_s=0.1)
        with pytest.raises(ToolUnavailable, match="1 calls have not come back"):
            await call(toolbox, "own.hang", {}, intent=intent, deadline_s=0.1)
        await call(toolbox, "own.let_go", {}, intent=intent)
    assert intent.committed == 2


@promise("python:ask")
async def test_a_function_asks_a_person_and_runs_again_with_the_answers(own):
    source = (
        "@tool\n"
        "async def book(room: str, context: ToolContext) -> Any:\n"
        "    seats = await context.ask('How many?', int)\n"
        "    sure = await context.ask(f'{seats} in {room}?', {'type': 'boolean'})\n"
        "    return [seats, sure]\n"
    )
    intent = Intent()
    async with own(source, provider=None) as toolbox:
        first = (await call(toolbox, "own.book", {"room": "a"}, intent=intent)).question
        assert (first.requests[0].message, first.requests[0].form, first.in_call) == (
            "How many?",
            {"type": "integer"},
            False,
        )
        assert first.fault("many").startswith("answer")
        second = (await call(toolbox, "own.book", {"room": "a"}, intent=intent, reply=InputResponse(first, 3))).question
        assert second.requests[0].message == "3 in a?"
        done = await call(toolbox, "own.book", {"room": "a"}, intent=intent, reply=InputResponse(second, True))
        declined = InputResponse(second, None, declined=True)
        refused = await call(toolbox, "own.book", {"room": "a"}, intent=intent, reply=declined)
        other = await call(toolbox, "own.book", {"room": "b"}, intent=intent, reply=InputResponse(second, True))
    assert done.data == [3, True]
    assert refused.error == "a person was asked and declined"
    assert "ask the same questions in the same order" in other.error


@promise("python:ask")
async def test_nobody_is_asked_after_a_write(own):
    source = (
        "@tool(writes=['send_email'])\n"
        "async def late(context: ToolContext) -> Any:\n"
        "    await context.write('send_email', to=['a@b.c'], subject='s', body='')\n"
        "    return await context.ask('Sure?')\n"
    )
    async with own(source) as toolbox:
        answer = await call(toolbox, "own.late", {}, intent=Intent())
    assert (answer.success, answer.question, answer.data["message_id"]) == (True, None, "m1")


@promise("python:context")
async def test_a_function_knows_its_caller_its_effect_and_the_secrets_of_its_entry(opened, tmp_path):
    (tmp_path / "own.py").write_text(
        "from backstay import ToolContext, tool\n"
        "@tool\n"
        "def tell(context: ToolContext, name: str) -> list[str]:\n"
        "    return [context.user_id, context.session_id, context.effect_id, context.secret(name)]\n"
    )
    entry = {"module": "own.py", "secrets": {"key": "${KEY}"}}
    caller = Caller(user_id="ana", session_id="s1")
    async with opened(tmp_path, {"python": {"own": entry}}, KEY="k" * 12) as toolbox:
        told = await call(toolbox, "own.tell", {"name": "key"}, intent=Intent(), effect_id="run/1", caller=caller)
        unknown = await call(toolbox, "own.tell", {"name": "KEY"}, intent=Intent(), caller=caller)
        assert told.data == ["ana", "s1", "run/1", "k" * 12]
        assert unknown.error == "there is no secret 'KEY' (known: key); add it to `secrets` in toolbox.json"
        assert "k" * 12 in toolbox.secrets


@promise("python:cache")
async def test_answers_of_a_read_are_kept_by_user_and_arguments(own):
    source = (
        "calls = []\n"
        "@tool(safety='read_only', cache=600)\n"
        "def count(n: int) -> int:\n    calls.append(n)\n    return len(calls)\n"
        "@tool(safety='read_only', retries=2)\n"
        "def flaky() -> int:\n    calls.append(0)\n    return 6 // (len(calls) == 6)\n"
    )
    async with own(source, provider=None) as toolbox:
        ana, bo = Caller(user_id="ana"), Caller(user_id="bo")
        asked = [(ana, 1), (ana, 1), (bo, 1), (ana, 2), (bo, 1)]
        seen = [await call(toolbox, "own.count", {"n": n}, caller=caller) for caller, n in asked]
        flaky = await call(toolbox, "own.flaky", {})
    assert [(answer.data, answer.cached) for answer in seen] == [
        *[(1, False), (1, True), (2, False), (3, False), (2, True)],
    ]
    assert flaky.data == 6


@promise("python:where")
async def test_tools_come_from_files_packages_modules_and_entry_points(opened, tmp_path, monkeypatch):
    head = "from backstay import tool\n"
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import deep\nfrom installed_tools import foreign\n")
    (package / "inner.py").write_text(f"{head}@tool\ndef deep() -> str:\n    return __name__\n")
    site = tmp_path / "site"
    metadata = site / "installed_tools-1.dist-info"
    metadata.mkdir(parents=True)
    (site / "installed_tools.py").write_text(f"{head}@tool\ndef foreign() -> int:\n    return 7\n")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-tools\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[backstay.tools]\nshop = installed_tools\n")
    monkeypatch.syspath_prepend(site)
    entries = {"packed": {"module": "package/"}, "named": {"module": "installed_tools"}, "shop": {}}
    async with opened(tmp_path, {"actions": entries}) as toolbox:
        tools = sorted((await toolbox.catalog("anyone")).definitions)
        answer = await call(toolbox, "shop.foreign", {}, intent=Intent())
    monkeypatch.delitem(sys.modules, "installed_tools")
    assert tools == ["named.foreign", "packed.deep", "shop.foreign"]
    assert answer.data == 7


@promise("python:actions")
async def test_both_names_of_the_section_at_once_are_refused(opened, tmp_path):
    with pytest.raises(ToolboxInvalid, match="`actions` is another name of `python`"):
        async with opened(tmp_path, {"actions": {}, "python": {}}):
            pass


@promise("python:one-path")
async def test_what_a_function_calls_is_named_to_the_policy(acting):
    async with acting("composio") as toolbox:
        definitions = (await toolbox.catalog("anyone")).definitions
    assert definitions["gmail.send_email"].tool.calls == ("people.GMAIL_SEND_EMAIL",)
    assert definitions["slack.post_message_undo"].tool.calls == ("people.SLACK_DELETES_A_MESSAGE_FROM_A_CHAT",)
    assert definitions["people.GMAIL_SEND_EMAIL"].tool.calls == ()
