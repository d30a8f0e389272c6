import asyncio

import pytest

from backstay.errors import ToolChanged
from backstay.tools.tool import Safety
from tests.requirements import promise
from toolbox import search_tools
from toolbox.catalog.naming import function_name

FINE = {"result": {"content": [{"type": "text", "text": "fine"}]}}


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@promise("tools:version")
async def test_equal_tools_have_one_version_and_every_change_has_another(opened, tmp_path, raw):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("a"), tool("b")])}}) as toolbox:
        first = await toolbox.catalog("anyone")
        assert (await toolbox.catalog("anyone", fresh=True)).version == first.version
        seen = {first.version}
        hashes = {first.definitions["raw.a"].tool.definition}
        for changed in (
            tool("a", description="new"),
            tool("a", inputSchema={"type": "object", "properties": {"x": {"const": True}}}),
            tool("a", inputSchema={"type": "object", "properties": {"x": {"const": 1}}}),
            tool("a", outputSchema={"type": "object"}),
            tool("a", annotations={"readOnlyHint": True}),
        ):
            raw(tools=[changed, tool("b")])
            now = await toolbox.catalog("anyone", fresh=True)
            assert now.version not in seen
            assert now.definitions["raw.a"].tool.definition not in hashes
            assert now.definitions["raw.b"].tool.definition == first.definitions["raw.b"].tool.definition
            seen.add(now.version)
            hashes.add(now.definitions["raw.a"].tool.definition)
    assert len(first.version) == len(first.definitions["raw.a"].tool.definition) == 16


def unordered(turn):
    """Return a tool whose lists without an order a server lists in this or that one."""
    names, kinds = ["to", "body", "cc"][::turn], ["string", "null"][::turn]
    fields = {"to": {"type": kinds, "enum": ["b", None, "a"]}, "required": {"items": {"required": names}}}
    asked = {"type": "object", "properties": fields, "required": names, "dependentRequired": {"to": names}}
    answered = {"type": "object", "$defs": {"a": {"required": names}}, "required": names}
    return tool("a", inputSchema=asked, outputSchema=answered)


@promise("tools:version-unordered")
async def test_the_order_of_a_list_without_one_is_no_change_and_that_of_a_value_is(opened, tmp_path, raw):
    def defaulting(turn):
        return tool("a", inputSchema={"type": "object", "default": {"required": ["x", "y"][::turn]}})

    def naming(turn):
        named = {"enum": [1, 2][::turn], "enumNames": ["one", "two"]}
        return tool("a", inputSchema={"type": "object", "properties": {"n": named}})

    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[unordered(1)])}}) as toolbox:
        found = []
        for each in (unordered(1), unordered(-1), *(make(turn) for make in (defaulting, naming) for turn in (1, -1))):
            raw(tools=[each])
            found.append(await toolbox.catalog("anyone", fresh=True))
    versions, definitions = zip(*((each.version, each.definitions["raw.a"].tool) for each in found), strict=True)
    hashes = [each.definition for each in definitions]
    assert versions[0] == versions[1]
    assert hashes[0] == hashes[1]
    assert len({hashes[0], *hashes[2:]}) == len({versions[0], *versions[2:]}) == 5
    # Either order is known by the hash that older versions gave it.
    assert definitions[0].earlier_definition != definitions[1].earlier_definition
    assert [each.is_defined_by(each.earlier_definition) for each in definitions] == [True, True, *[False] * 4]


@promise("tools:version-earlier")
async def test_a_definition_is_known_by_the_hash_of_older_versions_too(opened, tmp_path, raw):
    fields = {"to": {"type": ["string", "null"], "enum": ["b", "a"]}}
    asked = {"type": "object", "properties": fields, "required": ["to", "body"]}
    entry = raw("desk", tools=[tool("post", description="Post a note.", inputSchema=asked)])
    async with opened(tmp_path, {"mcpServers": {"desk": entry}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    known = catalog.pinned["desk.post"]
    assert "68210939d0e0634d3772be284697148737e713ecd324d292ffe2c6b0f9345b56" in known.digests
    post = catalog.definitions["desk.post"].tool
    assert post.is_defined_by("68210939d0e0634d")
    assert post.definition == known.digest[:16] != "68210939d0e0634d"
    assert not post.is_defined_by("")


@promise("tools:version")
async def test_a_declaration_is_part_of_the_definition(opened, tmp_path, raw):
    entry = raw(tools=[tool("a")])
    hashes = set()
    for declared in ({}, {"idempotent": True}, {"undo": {"tool": "a"}}):
        configuration = {"mcpServers": {"raw": entry}, "providers": {"raw": {"tools": {"a": declared}}}}
        async with opened(tmp_path, configuration) as toolbox:
            hashes.add((await toolbox.catalog("anyone")).definitions["raw.a"].tool.definition)
    assert len(hashes) == 3


@promise("recovery:tool-changed")
async def test_a_changed_tool_is_refused_before_the_intent(opened, tmp_path, raw):
    entry = raw(tools=[tool("a")], answers={"a": FINE})
    committed = []

    async def commit():
        committed.append(1)

    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        ruled_on = (await toolbox.catalog("anyone")).definitions["raw.a"]
        raw(tools=[tool("a", description="now it deletes")], answers={"a": FINE})
        await toolbox.catalog("anyone", fresh=True)
        with pytest.raises(ToolChanged):
            await toolbox.call(ruled_on, {}, deadline_s=5, before_send=commit)
        raw(tools=[], answers={})
        await toolbox.catalog("anyone", fresh=True)
        with pytest.raises(ToolChanged):
            await toolbox.call(ruled_on, {}, deadline_s=5, before_send=commit)
    assert committed == []


@promise("recovery:tool-changed")
async def test_a_server_that_was_replaced_is_looked_at_before_it_is_called(opened, tmp_path, raw):
    entry = raw(tools=[tool("a")], answers={"a": FINE})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        ruled_on = (await toolbox.catalog("anyone")).definitions["raw.a"]
        (provider,) = toolbox._providers.values()
        await provider._connection.close()
        raw(tools=[tool("a", description="now it deletes")], answers={"a": FINE})
        with pytest.raises(ToolChanged):
            await toolbox.call(ruled_on, {}, deadline_s=5)


@promise("tools:list-changed")
async def test_a_server_that_says_its_list_changed_is_listed_again(opened, tmp_path, raw):
    notify = FINE | {"notify": "notifications/tools/list_changed"}
    entry = raw(tools=[tool("a")], answers={"a": notify})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        before = await toolbox.catalog("anyone")
        raw(tools=[tool("a"), tool("b")], answers={"a": notify})
        assert set((await toolbox.catalog("anyone")).definitions) == {"raw.a"}
        await toolbox.call(before.definitions["raw.a"], {}, deadline_s=5)
        assert set((await toolbox.catalog("anyone")).definitions) == {"raw.a", "raw.b"}


@promise("tools:list-changed")
async def test_a_server_of_the_stateless_revision_is_heard_too(opened, servers, tmp_path):
    entry = {"command": "python", "args": [str(servers / "office.py"), "stdio"]}
    async with opened(tmp_path, {"mcpServers": {"office": entry}}) as toolbox:
        before = await toolbox.catalog("anyone")
        assert "office.grown" not in before.definitions
        async with asyncio.timeout(10):
            while "office.grown" not in (await toolbox.catalog("anyone")).definitions:
                await toolbox.call(before.definitions["office.grow"], {}, deadline_s=5)


@promise("tools:users")
async def test_users_see_only_the_providers_they_are_granted(opened, tmp_path, raw):
    configuration = {
        "mcpServers": {"mail": raw("mail", tools=[tool("send")]), "bank": raw("bank", tools=[tool("pay")])},
        "users": {"*": {"providers": ["mail"]}, "ana": {"providers": ["mail", "bank"]}, "eve": {"providers": []}},
    }
    async with opened(tmp_path, configuration) as toolbox:
        assert set((await toolbox.catalog("ana")).definitions) == {"mail.send", "bank.pay"}
        assert set((await toolbox.catalog("bo")).definitions) == {"mail.send"}
        assert (await toolbox.catalog("eve")).definitions == {}
        found = {user: await search_tools("pay", user_id=user, toolbox=toolbox) for user in ("ana", "bo")}
        assert found["ana"][0]["tool"] == "bank.pay"
        assert "bank.pay" not in [hit["tool"] for hit in found["bo"]]


@promise("tools:off")
async def test_a_disabled_server_is_not_there(opened, tmp_path, raw):
    entry = {"command": "${NOT_SET}", "disabled": True}
    async with opened(tmp_path, {"mcpServers": {"off": entry, "on": raw(tools=[tool("a")])}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert (set(catalog.definitions), catalog.unavailable) == ({"on.a"}, {})


HOSTILE = [
    "a.b/c",
    "../../etc/passwd",
    "x" * 300,
    "größe",
    "; DROP TABLE tools",
    '"quoted" AND (',
    "__init__",
    "{{ x }}",
]


@promise("tools:odd-names")
async def test_hostile_names_are_listed_found_and_callable(opened, tmp_path, raw):
    entry = raw(tools=[tool(name) for name in HOSTILE], answers=dict.fromkeys(HOSTILE, FINE))
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert {definition.mcp_name for definition in catalog.definitions.values()} == set(HOSTILE)
        for name in HOSTILE:
            hit = catalog.search(f"raw.{name}", "full")[0]
            assert (hit.tool, hit.mcp_tool_name) == (f"raw.{name}", name)
            assert hit.path.startswith("providers/raw/tools/")
            assert hit.path.count("/") == 3
            definition = catalog.definitions[hit.tool]
            assert (await toolbox.call(definition, {}, deadline_s=5)).data == "fine"
        for function in catalog.by_function:
            assert len(function) <= 64
            assert function.replace("_", "a").replace("-", "a").isalnum()
            assert function.isascii()


@promise("tools:odd-names")
@pytest.mark.parametrize("name", [" ", "a\nb", "a\u202eb", "a\x00b"])
async def test_a_name_that_people_cannot_read_is_left_out_and_named(opened, tmp_path, raw, name):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool(name), tool("fine")])}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert set(catalog.definitions) == {"raw.fine"}
    assert "cannot be shown" in catalog.problems[0]


@promise("tools:names-clashing")
async def test_tools_under_one_function_name_are_left_out_and_named_and_all_others_stay(opened, tmp_path, raw):
    name = "a.b"
    clashing = raw(tools=[tool(name), tool(function_name("raw", name).removeprefix("raw__")), tool("fine")])
    configuration = {"mcpServers": {"raw": clashing, "mail": raw("mail", tools=[tool("send")])}}
    async with opened(tmp_path, configuration) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert set(catalog.definitions) == {"raw.fine", "mail.send"}
    assert set(catalog.by_function) == {"raw__fine", "mail__send"}
    (problem,) = catalog.problems
    assert problem.startswith("raw.a.b, raw.a_b_63230aa4 are left out because all of them would be called raw__a_b_")


@promise("tools:names-clashing")
async def test_tools_of_two_providers_that_clash_are_left_out_and_their_others_stay(opened, tmp_path, raw):
    servers = {"a": raw("a", tools=[tool("b__c"), tool("x")]), "a__b": raw("a__b", tools=[tool("c"), tool("y")])}
    async with opened(tmp_path, {"mcpServers": servers}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert set(catalog.definitions) == {"a.x", "a__b.y"}
    assert catalog.problems[0].startswith("a.b__c, a__b.c are left out")


@promise("tools:names-undo")
async def test_an_undo_that_is_left_out_is_no_longer_promised(opened, tmp_path, raw):
    clashing = function_name("raw", "re.call").removeprefix("raw__")
    entry = raw(tools=[tool("send"), tool("re.call"), tool(clashing)])
    providers = {"raw": {"tools": {"send": {"undo": {"tool": "re.call"}}}}}
    async with opened(tmp_path, {"mcpServers": {"raw": entry}, "providers": providers}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert catalog.definitions["raw.send"].tool.undo is None
    assert any("'re.call' does not exist" in problem for problem in catalog.problems)


@promise("tools:function-names")
async def test_long_names_stay_apart_and_a_name_listed_twice_is_one_tool(opened, tmp_path, raw):
    names = ["y" * 100 + "1", "y" * 100 + "2", "y" * 100 + "2"]
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool(name) for name in names])}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert len(catalog.by_function) == 2


@promise("tools:odd-lists")
@pytest.mark.parametrize("listing", [{"tools": "none"}, {"tools": 3}])
async def test_a_list_that_is_none_is_a_reason(opened, tmp_path, raw, listing):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(listing=listing)}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert "cannot list its tools" in catalog.unavailable["raw"]


@promise("tools:odd-lists")
async def test_numbers_that_json_does_not_know_do_not_break_the_catalog(opened, tmp_path, raw):
    odd = tool("a", inputSchema={"type": "object", "properties": {"x": {"maximum": float("inf")}}})
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[odd])}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert catalog.definitions["raw.a"].validate({"x": 1}) is None


@promise("tools:undo-exists")
async def test_undo_and_verify_are_promised_only_when_their_tools_exist(opened, tmp_path, raw):
    recall = {"tool": "recall", "arguments": {"id": "{{ result.id }}", "hard": True}}
    check = {"tool": "sent", "arguments": {"token": "{{ effect.id }}"}, "applied_if": "{{ result.found }}"}
    declared = {
        "send": {"undo": recall, "verify": check | {"verify_is_final": True}},
        "wire": {"undo": {"tool": "recal"}, "verify": check | {"tool": "wire"}},
        "wrong": {"safety": "read_only"},
    }
    declared["wire"]["safety"] = "restricted_write"
    configuration = {
        "mcpServers": {"raw": raw(tools=[tool("send"), tool("wire"), tool("recall"), tool("sent")])},
        "providers": {"raw": {"tools": declared}},
    }
    async with opened(tmp_path, configuration) as toolbox:
        catalog = await toolbox.catalog("anyone")
    send, wire = catalog.definitions["raw.send"], catalog.definitions["raw.wire"]
    assert send.tool.undo == "recall(id=result.id, hard=true)"
    assert (send.tool.verify, send.tool.verify_is_final) == (True, True)
    assert catalog.undo_of(send).name == "raw.recall"
    assert catalog.verify_of(send).name == "raw.sent"
    assert (wire.tool.undo, wire.tool.verify) == (None, False)
    assert catalog.undo_of(wire) is None
    assert sorted(catalog.problems) == [
        "providers.raw.tools.wrong: the server has no such tool; correct its name",
        "raw.wire: undo.tool 'recal' does not exist; correct its name",
        "raw.wire: verify.tool 'wire' is declared to write; name a reading tool",
    ]


READ, SAFE, RESTRICTED = Safety.READ_ONLY, Safety.WRITE_SAFE, Safety.RESTRICTED_WRITE
NOTHING, READS, WRITES = {}, {"readOnlyHint": True}, {"readOnlyHint": False}
SOFT, HARD = {"readOnlyHint": False, "destructiveHint": False}, {"destructiveHint": True}


@promise("policy:raise")
@pytest.mark.parametrize(
    "case",
    [
        (NOTHING, False, None, RESTRICTED),
        (READS, False, None, RESTRICTED),
        (SOFT, False, None, RESTRICTED),
        (HARD, False, None, RESTRICTED),
        (NOTHING, True, None, RESTRICTED),
        (READS, True, None, READ),
        (WRITES, True, None, RESTRICTED),
        (SOFT, True, None, SAFE),
        (HARD, True, None, RESTRICTED),
        (NOTHING, False, "read_only", READ),
        (READS, False, "write_safe", SAFE),
        (WRITES, False, "read_only", SAFE),
        (SOFT, False, "read_only", SAFE),
        (SOFT, False, "restricted_write", RESTRICTED),
        (HARD, False, "read_only", RESTRICTED),
        (HARD, False, "write_safe", RESTRICTED),
        (HARD, True, "write_safe", SAFE),
        (READS, True, "restricted_write", RESTRICTED),
        (NOTHING, True, "read_only", READ),
    ],
)
async def test_a_server_lowers_its_danger_only_when_it_is_trusted(opened, tmp_path, raw, case):
    annotations, trusted, declared, expected = case
    configuration = {
        "mcpServers": {"raw": raw(tools=[tool("a", annotations=annotations)])},
        "providers": {"raw": {"trusted": trusted, "tools": {"a": {"safety": declared}}}},
    }
    async with opened(tmp_path, configuration) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert catalog.definitions["raw.a"].tool.safety is expected
