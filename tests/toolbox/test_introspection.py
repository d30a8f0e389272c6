import json

import pytest

from backstay.errors import ToolNotFound
from tests.requirements import promise
from toolbox import ToolboxBuilder, get_method_info, list_domains, list_methods

SEND = {
    "name": "send",
    "description": "Send an e-mail.",
    "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
}


def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}


@pytest.fixture
async def sources(opened, tmp_path, raw):
    """The same toolbox open, and as the folder of a manifest."""
    configuration = {
        "mcpServers": {
            "mail": raw("mail", tools=[SEND, tool("recall")]),
            "crm": raw("crm", exit=True),
            "bank": raw("bank", tools=[tool("pay")]),
        },
        "providers": {"mail": {"tools": {"send": {"safety": "write_safe", "undo": {"tool": "recall"}}}}},
        "users": {"*": {"providers": ["mail", "crm"]}},
    }
    async with opened(tmp_path, configuration) as toolbox:
        yield toolbox, (await ToolboxBuilder(toolbox, tmp_path).refresh_manifest()).folder


@promise("tools:introspection")
async def test_domains_are_the_providers_that_the_user_is_granted(sources):
    for source in sources:
        assert await list_domains(toolbox=source) == ["crm", "mail"]


@promise("tools:introspection")
async def test_methods_are_the_tools_of_one_provider(sources):
    for source in sources:
        assert await list_methods("mail", toolbox=source) == ["recall", "send"]
        assert await list_methods("crm", toolbox=source) == []


@promise("tools:introspection")
async def test_the_info_of_a_method_is_all_that_is_known_as_plain_json(sources):
    live, kept = [await get_method_info("mail", "send", toolbox=source) for source in sources]
    assert live == kept == json.loads(json.dumps(live))
    assert {
        key: live[key] for key in ("name", "description", "parameters", "safety", "undo", "available", "reason")
    } == {
        "name": "mail.send",
        "description": "Send an e-mail.",
        "parameters": SEND["inputSchema"],
        "safety": "write_safe",
        "undo": "recall()",
        "available": True,
        "reason": None,
    }


@promise("tools:introspection")
@pytest.mark.parametrize("domain", ["bank", "nothing", "", "../mail"])
async def test_a_domain_that_is_not_granted_is_as_unknown_as_one_that_is_not_there(sources, domain):
    for source in sources:
        with pytest.raises(ToolNotFound, match="there are crm, mail"):
            await list_methods(domain, toolbox=source)
        with pytest.raises(ToolNotFound, match="there are crm, mail"):
            await get_method_info(domain, "pay", toolbox=source)


@promise("tools:closest")
async def test_an_unknown_method_is_answered_with_what_comes_close(sources):
    for source in sources:
        with pytest.raises(ToolNotFound, match=r"closest are mail\.send"):
            await get_method_info("mail", "sent", toolbox=source)


@promise("tools:introspection")
async def test_another_user_has_other_domains(opened, tmp_path, raw):
    configuration = {
        "mcpServers": {"mail": raw("mail", tools=[SEND]), "bank": raw("bank", tools=[tool("pay")])},
        "users": {"*": {"providers": ["mail"]}, "ana": {"providers": ["bank"]}},
    }
    async with opened(tmp_path, configuration) as toolbox:
        assert await list_domains("ana", toolbox=toolbox) == ["bank"]
        assert await list_domains(user_id="bo", toolbox=toolbox) == ["mail"]
        assert (await get_method_info("bank", "pay", "ana", toolbox=toolbox))["safety"] == "restricted_write"
