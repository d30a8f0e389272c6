import json

import pytest

from backstay.errors import OutcomeUnknown, ToolboxInvalid, ToolChanged
from backstay.tools.tool import Safety
from toolbox.configuration.template import render

MAIL = {"to": "Ana <ana@example.com>; bo@example.com", "subject": "Hi\tyou", "body": "b"}


@pytest.fixture
def acting(opened, tmp_path, servers):
    """Open a toolbox with a server for mail and chat in one shape, and actions over it."""

    def open_with(shape, **configuration):
        server = {"command": "python", "args": [str(servers / "people.py"), shape]}
        names = {"gmail": {"provider": "people", "shape": shape}, "slack": {"provider": "people", "shape": shape}}
        return opened(tmp_path, {"mcpServers": {"people": server}, "actions": names, **configuration})

    return open_with


@pytest.fixture
def own(opened, tmp_path, servers):
    """Open a toolbox with actions from a file, over a plain server."""

    def open_with(source, **entry):
        (tmp_path / "own.py").write_text(
            "import asyncio\nfrom typing import Any\nfrom toolbox.actions import ActionError, Tools, action\n" + source
        )
        server = {"command": "python", "args": [str(servers / "people.py"), "plain"]}
        entry = {"module": "own.py", "provider": "people", **entry}
        return opened(tmp_path, {"mcpServers": {"people": server}, "actions": {"own": entry}})

    return open_with


class Intent:
    """Count how often an intent was committed."""

    def __init__(self):
        self.committed = 0

    async def __call__(self):
        self.committed += 1


async def call(toolbox, name, arguments, *, intent=None, deadline_s=60, effect_id=None):
    definition = (await toolbox.catalog("anyone")).definitions[name]
    assert definition.validate(arguments) is None
    return await toolbox.call(definition, arguments, deadline_s=deadline_s, before_send=intent, effect_id=effect_id)


@pytest.mark.parametrize("shape", ["plain", "composio"])
async def test_one_action_fits_servers_that_name_things_differently(acting, shape):
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


async def test_actions_say_their_own_danger_and_how_they_are_undone(acting):
    async with acting("composio") as toolbox:
        catalog = await toolbox.catalog("anyone")
        safety = {
            name: definition.tool.safety
            for name, definition in catalog.definitions.items()
            if definition.provider != "people"
        }
        assert safety == {
            "gmail.search": Safety.READ_ONLY,
            "gmail.send_email": Safety.RESTRICTED_WRITE,
            "slack.delete_message": Safety.RESTRICTED_WRITE,
            "slack.post_message": Safety.RESTRICTED_WRITE,
            "slack.search_messages": Safety.READ_ONLY,
        }
        post = catalog.definitions["slack.post_message"]
        undo = catalog.undo_of(post)
        posted = await call(toolbox, "slack.post_message", {"channel": "general", "text": "t"}, intent=Intent())
        arguments = render(post.declaration.undo.arguments, {"result": posted.data, "arguments": {}, "effect": {}})
        undone = await call(toolbox, undo.name, arguments, intent=Intent())
    assert undone.data["deleted"] == ["general", "1.5"]


async def test_an_action_is_offered_only_where_its_tool_is(acting):
    async with acting("plain") as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert [name for name in sorted(catalog.definitions) if name.startswith("slack.")] == ["slack.post_message"]
        assert catalog.definitions["slack.post_message"].tool.undo is None or (
            catalog.undo_of(catalog.definitions["slack.post_message"]) is None
        )
    async with acting("plain", actions={"gmail": {"provider": "people", "shape": "composio"}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert catalog.unavailable == {"gmail": "people offers none of GMAIL_FETCH_EMAILS, GMAIL_SEND_EMAIL"}


async def test_a_hit_names_the_tool_behind_an_action(acting):
    async with acting("composio") as toolbox:
        catalog = await toolbox.catalog("anyone")
        names = {hit.tool: hit.mcp_tool_name for hit in catalog.search("gmail.", limit=40)}
    assert names["gmail.send_email"] == "GMAIL_SEND_EMAIL"
    assert names["people.GMAIL_SEND_EMAIL"] == "GMAIL_SEND_EMAIL"


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


@pytest.mark.parametrize("shape", ["plain", "composio"])
async def test_what_the_server_refuses_the_action_refuses(acting, shape):
    async with acting(shape) as toolbox:
        answer = await call(toolbox, "gmail.send_email", MAIL | {"subject": "refuse"}, intent=Intent())
    assert not answer.success
    assert answer.error.endswith("the mailbox is full")


async def test_a_write_without_an_answer_is_unknown_whatever_the_action_makes_of_it(acting, own):
    async with acting("plain") as toolbox:
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, "gmail.send_email", MAIL | {"subject": "die"}, intent=Intent())
    hiding = (
        "@action()\n"
        "async def send_email(tools: Tools) -> str:\n"
        "    try:\n"
        "        await tools.write('send_email', to=['a@b.c'], subject='die', body='')\n"
        "    except Exception:\n"
        "        return 'all is well'\n"
    )
    async with own(hiding) as toolbox:
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, "own.send_email", {}, intent=Intent())


async def test_an_action_writes_once_and_what_was_written_stands_when_the_action_fails_after_it(own):
    source = (
        "SEND = {'to': ['a@b.c'], 'subject': 's', 'body': ''}\n"
        "@action(calls=('send_email',))\n"
        "async def twice(tools: Tools) -> Any:\n"
        "    await tools.write('send_email', **SEND)\n"
        "    await tools.write('send_email', **SEND)\n"
        "@action(calls=('send_email', 'search_emails'))\n"
        "async def stumble(tools: Tools) -> Any:\n"
        "    await tools.read('search_emails', query='q', limit=1)\n"
        "    await tools.write('send_email', **SEND)\n"
        "    return 1 / 0\n"
        "@action(calls=('send_email',))\n"
        "async def together(tools: Tools) -> Any:\n"
        "    await asyncio.gather(*(tools.write('send_email', **SEND) for _ in range(3)))\n"
        "@action(calls=('send_email',))\n"
        "async def leave(tools: Tools) -> Any:\n"
        "    globals()['left'] = asyncio.create_task(tools.write('send_email', **SEND))\n"
        "    await asyncio.sleep(0)\n"
        "@action(calls=('send_email',))\n"
        "async def count(tools: Tools) -> Any:\n"
        "    return await tools.read('search_emails', query='q', limit=1)\n"
    )
    intent = Intent()
    async with own(source) as toolbox:
        for name in ("twice", "stumble"):
            answer = await call(toolbox, f"own.{name}", {}, intent=intent)
            assert (answer.success, answer.data["message_id"]) == (True, "m1")
        undeclared = await call(toolbox, "own.count", {}, intent=intent)
        together = await call(toolbox, "own.together", {}, intent=intent)
        left = await call(toolbox, "own.leave", {}, intent=intent)
    assert "add it to `calls`" in undeclared.error
    assert (together.success, together.data["message_id"]) == (True, "m1")
    assert left.success
    assert intent.committed == 5


async def test_a_function_is_a_tool_with_the_schema_of_its_signature(own):
    source = (
        "from pydantic import BaseModel\n"
        "class Line(BaseModel):\n    item: str\n    count: int = 1\n"
        "@action(safety='read_only')\n"
        "async def total(lines: list[Line], tax: float | None = None) -> dict[str, Any]:\n"
        "    '''Add up an order.'''\n"
        "    if tax == 3:\n        raise ActionError('no such tax')\n"
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
            "the action failed: ZeroDivisionError",
            "not done within 0.2 s",
        ]


async def test_an_effect_of_a_function_alone_is_unknown_when_the_function_breaks(own):
    source = "@action()\nasync def pay(amount: int) -> float:\n    return 1 / amount\n"
    intent = Intent()
    async with own(source, provider=None) as toolbox:
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, "own.pay", {"amount": 0}, intent=intent)
        assert (await call(toolbox, "own.pay", {"amount": 2}, intent=intent)).data == 0.5
    assert intent.committed == 2


async def test_what_the_intent_raises_comes_out_as_it_is(acting, own):
    class HeldError(Exception):
        pass

    async def hold():
        raise HeldError

    async with acting("plain") as toolbox:
        with pytest.raises(HeldError):
            await call(toolbox, "gmail.send_email", MAIL, intent=hold)
    async with own("@action()\nasync def pay() -> int:\n    return 1\n", provider=None) as toolbox:
        with pytest.raises(HeldError):
            await call(toolbox, "own.pay", {}, intent=hold)


async def test_a_tool_that_changes_behind_an_action_changes_the_action(opened, tmp_path, raw):
    def tool(description):
        return {"name": "send_email", "description": description, "inputSchema": {"type": "object"}}

    entry = raw(tools=[tool("one")], answers={})
    actions = {"gmail": {"provider": "raw", "shape": "plain"}}
    async with opened(tmp_path, {"mcpServers": {"raw": entry}, "actions": actions}) as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["gmail.send_email"]
        raw(tools=[tool("two")], answers={})
        await toolbox._providers["raw"]._connection.close()
        with pytest.raises(ToolChanged):
            await toolbox.call(definition, MAIL, deadline_s=60, before_send=Intent())
        changed = (await toolbox.catalog("anyone")).definitions["gmail.send_email"]
        assert changed.tool.definition != definition.tool.definition


async def test_an_action_over_a_server_that_is_gone_is_unavailable_for_its_reason(opened, tmp_path):
    configuration = {
        "mcpServers": {"people": {"command": "no-such-command"}, "off": {"command": "x", "disabled": True}},
        "actions": {"gmail": {"provider": "people"}, "slack": {"provider": "off"}},
    }
    async with opened(tmp_path, configuration) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert "'no-such-command' was not found" in catalog.unavailable["gmail"]
    assert "slack" not in catalog.unavailable


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ({"gmail": {}}, "actions.gmail.provider: search calls tools; name the server"),
        ({"gmail": {"provider": "x"}}, "actions.gmail.provider: unknown provider 'x' (known: people)"),
        ({"people": {"provider": "people", "module": "gmail"}}, "actions.people: this name belongs to another"),
        ({"fax": {"provider": "people"}}, "no bundled actions of this name (known: gmail, slack)"),
        (
            {"gmail": {"provider": "people", "shape": "odd"}},
            "actions.gmail.shape: unknown 'odd' (known: plain, composio)",
        ),
        (
            {"gmail": {"provider": "people", "shape": {"sned": {"tool": "x"}}}},
            "actions.gmail.shape.sned: no action calls",
        ),
        (
            {"gmail": {"provider": "people", "shape": {"search": {"tool": "x", "arguments": {"q": "{{ qery }}"}}}}},
            "actions.gmail.shape.search.arguments: 'qery' is not known",
        ),
        ({"own": {"module": "gone.py"}}, "actions.own.module: 'gone.py' cannot be loaded: FileNotFoundError"),
        ({"own": {"module": "empty.py"}}, "defines no function with @action"),
        ({"own": {"module": "bad.py"}}, "action plain: write `async def`"),
        ({"own": {"module": "untyped.py"}}, "action odd: its signature cannot be turned into a schema: n has no type"),
    ],
)
async def test_what_is_wrong_with_actions_is_named_with_field_and_fix(opened, tmp_path, actions, said):
    head = "from toolbox.actions import action\n"
    (tmp_path / "empty.py").touch()
    (tmp_path / "bad.py").write_text(f"{head}@action()\ndef plain() -> int:\n    return 1\n")
    (tmp_path / "untyped.py").write_text(f"{head}@action()\nasync def odd(n) -> int:\n    return 1\n")
    with pytest.raises(ToolboxInvalid) as caught:
        async with opened(tmp_path, {"mcpServers": {"people": {"command": "x"}}, "actions": actions}):
            pass
    assert said in str(caught.value)
