"""Servers and hosts as public reports tell of them, by kind: `others/*.yaml` names the reports."""

import json
from pathlib import Path

import pytest
import yaml
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

from backstay.errors import OutcomeUnknown
from tests.requirements import promise
from toolbox.catalog.naming import function_name
from toolbox.configuration.meaning import reports_error
from toolbox.mcp import pages, streams
from toolbox.mcp.event_stream import EventReader
from toolbox.mcp.wire import MALFORMED, answer_to, as_handed_on, cut_off, messages_of
from toolbox.providers.answer import answer_of
from toolbox.schema import compile_schema

OTHERS = Path(__file__).parent / "others"
TOOL = {"name": "fine", "inputSchema": {"type": "object"}}


def corpus(name):
    cases = yaml.safe_load((OTHERS / f"{name}.yaml").read_text(encoding="utf-8"))
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


def every(name):
    return yaml.safe_load((OTHERS / f"{name}.yaml").read_text(encoding="utf-8"))


def exact(value):
    """Return a text that tells 1, 1.0, true and "1" apart."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


@promise("tools:others-answers")
@corpus("answers")
def test_what_an_answer_says_is_read_however_it_is_written(case):
    answer = answer_of(case["result"])
    assert exact(answer.data) == exact(case["data"])
    assert (answer.success, answer.error) == ("error" not in case, case.get("error"))


@promise("tools:others-answers")
def test_what_comes_beside_structured_content_counts_when_a_write_is_judged():
    assert reports_error({"_content": ["Error: the mailbox is full"]})
    assert reports_error({"error": "locked", "_content": ["see the log"]})
    assert not reports_error({"success": True, "_content": ["Error: none"]})
    assert not reports_error({"id": 7, "_content": ["Created order 7"]})


@promise("tools:others-messages")
@corpus("messages")
def test_a_line_is_read_as_the_messages_that_it_holds(case):
    found = [message.model_dump(exclude_none=True) for message in messages_of(case["line"].encode("latin-1"))]
    for message in found:
        del message["jsonrpc"]
        if "error" in message:
            message |= {"error": message["error"]["message"], "code": message["error"]["code"]}
    wanted = [
        message | ({"code": message.get("code", found[place].get("code"))} if "error" in message else {})
        for place, message in enumerate(case["read"])
    ]
    assert exact(found) == exact(wanted)


@promise("tools:others-messages")
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_a_stream_of_events_is_read_alike_in_pieces_of_any_size(size, ending):
    lines = [
        b"\xef\xbb\xbf: ping",
        b"",
        b"retry: 3000",
        b"",
        b"id: 1",
        b"data: ",
        b"",
        b"event: ping",
        b"data: {}",
        b"",
        b"data: ping",
        b"",
        b'data: {"level": 30, "id": 7}',
        b"",
        b'data: {"jsonrpc": "2.0",',
        b'data:  "id": 7, "result": {"t": "caf\xe9 \\ud83d"}}',
        b"",
        b"event: endpoint",
        b"data: /messages?session=1",
        b"",
        b'data: [{"jsonrpc":"2.0","id":8,"result":{}},{"jsonrpc":"2.0","id":9,"error":"no"}]',
    ]
    stream, reader = ending.join(lines), EventReader(None)
    read = b"".join(reader.feed(stream[place : place + size]) for place in range(0, len(stream), size)) + reader.end()
    events = [event for event in read.decode().split("\n\n") if event.strip(": \n")]
    assert [event for event in events if "data" not in event or "id: 1" in event or "ping" in event] == [
        ": ping\nretry: 3000",
        "id: 1\ndata: ",
        "event: ping\ndata: {}",
    ]
    assert "event: endpoint\ndata: /messages?session=1" in events
    answers = [json.loads(line[6:]) for line in read.decode().splitlines() if '"jsonrpc"' in line]
    assert [answer["id"] for answer in answers] == [7, 8, 9]
    assert answers[0]["result"] == {"t": "caf\ufffd ?"}


@promise("tools:others-lists")
async def test_a_list_is_read_tool_by_tool_and_what_is_left_out_is_named(opened, tmp_path, raw):
    cases = every("pages")
    servers = {f"s{place}": raw(f"s{place}", tools=[TOOL, case["entry"]]) for place, case in enumerate(cases)}
    async with opened(tmp_path, {"mcpServers": servers}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert catalog.unavailable == {}
    for place, case in enumerate(cases):
        assert f"s{place}.fine" in catalog.definitions, case["name"]
        assert (f"s{place}.{case.get('kept')}" in catalog.definitions) == ("kept" in case), case["name"]
        said = [problem for problem in catalog.problems if problem.startswith((f"s{place}:", f"s{place}."))]
        assert len(said) == ("fault" in case), case["name"]
        assert "fault" not in case or case["fault"] in said[0], said


@promise("tools:others-lists")
@pytest.mark.parametrize("ends", [{"nextCursor": ""}, {"nextCursor": None}, {"nextCursor": False}, {}])
async def test_an_empty_cursor_ends_a_list(opened, tmp_path, raw, ends):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[TOOL], listing=ends)}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert (set(catalog.definitions), catalog.unavailable, catalog.problems) == ({"raw.fine"}, {}, [])


@promise("tools:others-lists")
async def test_a_list_without_an_end_keeps_what_was_read_of_it(opened, tmp_path, raw):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[TOOL], listing={"nextCursor": 7})}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert set(catalog.definitions) == {"raw.fine"}
    assert catalog.problems == ["raw: its list has no end; the 1 tools that were read are offered"]


@promise("tools:others-lists")
async def test_a_list_that_is_an_object_or_null_is_read(opened, tmp_path, raw):
    by_name = {"fine": {"inputSchema": {"type": "object"}}}
    servers = {"named": raw("named", listing={"tools": by_name}), "none": raw("none", listing={"tools": None})}
    async with opened(tmp_path, {"mcpServers": servers}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert (set(catalog.definitions), catalog.unavailable) == ({"named.fine"}, {})


@promise("tools:others-schemas")
async def test_a_schema_that_is_not_quite_one_is_mended_and_what_it_says_still_counts(opened, tmp_path, raw):
    cases = every("schemas")
    tools = [
        {"name": f"t{place}", "inputSchema": {"type": "object", "properties": {"x": case["x"]}}}
        for place, case in enumerate(cases)
    ]
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=tools)}}) as toolbox:
        definitions = (await toolbox.catalog("anyone")).definitions
    for place, case in enumerate(cases):
        tool = definitions[f"raw.t{place}"]
        assert not isinstance(compile_schema(tool.parameters), str), (case["name"], tool.parameters)
        for value in case["fits"]:
            assert tool.validate({"x": value}) is None, (case["name"], value)
        for value in case.get("not", ()):
            assert tool.validate({"x": value}) is not None, (case["name"], value)


@promise("tools:others-names")
async def test_a_name_in_any_script_or_with_any_separator_has_a_function_of_its_own(opened, tmp_path, raw):
    # openai/codex#8174, github/copilot-cli#1879, hostinger/api-mcp-server#48, IBM/mcp-context-forge#2534
    names = [
        "files.read",
        "files/read",
        "files_read",
        "files read",
        "files:read",
        "查询天气",
        "查询航班",
        "查询",
        "été",
        "ete",
    ]
    tools = [{"name": name, "description": "Does it.", "inputSchema": {"type": "object"}} for name in names]
    answers = {name: {"result": {"content": [{"type": "text", "text": name}]}} for name in names}
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=tools, answers=answers)}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert catalog.problems == []
        assert len(catalog.by_function) == len(names)
        for function, tool in catalog.by_function.items():
            assert function.isascii()
            assert len(function) <= 64
            assert function == function_name("raw", tool.mcp_name)
            assert tool.mcp_name in function or tool.description == f"{tool.mcp_name}: Does it."
            assert (await toolbox.call(tool, {}, deadline_s=10)).data == tool.mcp_name
    assert function_name("raw", "files_read") == "raw__files_read"


@promise("tools:others-handshake")
@pytest.mark.parametrize(
    "handshake",
    [
        {"capabilities": {"tools": []}},  # logiscape/mcp-sdk-php#1
        {"capabilities": {"tools": [{"name": "fine"}]}},  # springfall2008/batpred#3496
        {"capabilities": []},  # logiscape/mcp-sdk-php#1
        {"capabilities": {"tools": True, "logging": [], "experimental": None}},
        {"capabilities": None, "serverInfo": None, "instructions": None, "_meta": []},
        {"serverInfo": {"name": "raw"}, "instructions": ["a"]},
        {"serverInfo": {"name": None, "version": 2}},
    ],
)
async def test_a_handshake_that_is_a_little_off_opens_the_server(opened, tmp_path, raw, handshake):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[TOOL], handshake=handshake)}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert (set(catalog.definitions), catalog.unavailable) == ({"raw.fine"}, {})


@promise("tools:others-handshake")
async def test_a_revision_that_is_not_known_is_named(opened, tmp_path, raw):
    versions = ["2024-10-08", "1.0", "2027-01-01", "DRAFT-2026-v1", "x" * 500]
    servers = {
        f"s{place}": raw(f"s{place}", tools=[TOOL], handshake={"protocolVersion": version})
        for place, version in enumerate(versions)
    }
    async with opened(tmp_path, {"mcpServers": servers}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    for place, version in enumerate(versions):
        said = catalog.unavailable[f"s{place}"]
        assert f"it speaks revision '{version[:30]}" in said
        assert "known are 2024-11-05" in said
        assert len(said) < 300


@promise("tools:others-handshake")
async def test_a_reason_names_what_the_server_wrote_wrongly(opened, tmp_path, raw):
    servers = {"list": raw("list", listing={"tools": "none"}), "none": raw("none", handshake={"protocolVersion": 7})}
    async with opened(tmp_path, {"mcpServers": servers}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert "tools: Input should be a valid list" in catalog.unavailable["list"]
    assert "protocolVersion: Input should be a valid string" in catalog.unavailable["none"]


@promise("tools:list-fresh")
@pytest.mark.parametrize(
    ("listing", "seen"),
    [
        ({"ttlMs": 1}, True),
        ({"ttlMs": 0}, False),
        ({"ttlMs": -5}, False),
        ({"ttlMs": 3_600_000}, False),
        ({}, False),
        ({"ttlMs": "0"}, False),
    ],
)
async def test_a_list_counts_for_as_long_as_its_server_says(opened, tmp_path, raw, listing, seen):
    discover = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
    discover |= {"ttlMs": 0, "cacheScope": "private", "_meta": {}}
    entry = raw(tools=[TOOL], discover=discover, listing=listing)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        assert set((await toolbox.catalog("anyone")).definitions) == {"raw.fine"}
        raw(tools=[TOOL, TOOL | {"name": "new"}], discover=discover, listing=listing)
        assert ("raw.new" in (await toolbox.catalog("anyone")).definitions) == seen


@promise("tools:list-fresh")
async def test_a_change_that_is_told_while_the_list_is_read_is_read_too(opened, tmp_path, raw):
    entry = raw(tools=[TOOL], changes_while_listed=3)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        assert set((await toolbox.catalog("anyone")).definitions) == {"raw.fine"}
        raw(tools=[TOOL | {"name": "new"}])
        assert set((await toolbox.catalog("anyone")).definitions) == {"raw.new"}


@promise("tools:others-schemas")
async def test_arguments_that_no_schema_can_check_are_left_to_the_server(opened, tmp_path, raw):
    schema = {"type": "object", "properties": {"x": {"$id": "http://h/a", "$ref": "b.json#/nowhere"}}}
    answers = {"t": {"result": {"content": [{"type": "text", "text": "fine"}]}}}
    entry = raw(tools=[{"name": "t", "inputSchema": schema}], answers=answers)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        tool = (await toolbox.catalog("anyone")).definitions["raw.t"]
        assert tool.validate({"x": 1}) is None
        assert (await toolbox.call(tool, {"x": 1}, deadline_s=10)).data == "fine"


FAILED = {"content": [{"type": "text", "text": "the disk is full"}], "isError": True}


@promise("tools:others-answers")
async def test_a_failure_is_never_read_as_a_success(opened, tmp_path, raw):
    answers = {f"t{place}": {"result": FAILED | {"inputRequests": asks}} for place, asks in enumerate((None, {}, []))}
    for place, spelled in enumerate(('"ID"', '"+ID"', '" ID"', "ID.0")):
        line = json.dumps({"jsonrpc": "2.0", "id": "HERE", "result": FAILED}).replace('"HERE"', spelled)
        answers[f"id{place}"] = {"line": line}
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in answers]
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=tools, answers=answers)}}) as toolbox:
        for tool in (await toolbox.catalog("anyone")).definitions.values():
            answer = await toolbox.call(tool, {}, deadline_s=10, effect_id="e", before_send=intent)
            assert (answer.success, answer.error) == (False, "the disk is full"), tool.mcp_name


@promise("tools:others-answers")
async def test_what_an_error_says_in_its_data_is_told(opened, tmp_path, raw):
    # spring-ai-community/mcp-annotations#94, vercel/ai#10746
    said = {"detail": {"detail": "no such page"}, "text": "no such page", "none": None, "same": "Internal error"}
    answers = {
        name: {"error": {"code": -32603, "message": "Internal error", "data": data}} for name, data in said.items()
    }
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in answers]
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=tools, answers=answers)}}) as toolbox:
        definitions = (await toolbox.catalog("anyone")).definitions
        told = {name: (await toolbox.call(definitions[f"raw.{name}"], {}, deadline_s=10)).error for name in answers}
    assert told == {
        "detail": 'Internal error: {"detail": "no such page"}',
        "text": "Internal error: no such page",
        "none": "Internal error",
        "same": "Internal error",
    }


@promise("tools:others-answers")
async def test_an_answer_that_cannot_be_read_leaves_a_write_unknown_and_is_told_to_a_read(opened, tmp_path, raw):
    value = json.loads("[" * 600 + "]" * 600)
    answers = {
        "text": {"result": {"content": [{"type": "text", "text": json.dumps(value)}]}},
        "fine": {"result": {"content": "fine"}},
        "asks": {"result": FAILED | {"inputRequests": {"a": {"method": "roots/list"}}}},
    }
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in answers]
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=tools, answers=answers)}}) as toolbox:
        definitions = (await toolbox.catalog("anyone")).definitions
        written = {"deadline_s": 10, "effect_id": "e", "before_send": intent}
        assert (await toolbox.call(definitions["raw.text"], {}, **written)).data == json.dumps(value)
        with pytest.raises(OutcomeUnknown, match="not the result of a call"):
            await toolbox.call(definitions["raw.asks"], {}, **written)
        assert "not the result of a call" in (await toolbox.call(definitions["raw.asks"], {}, deadline_s=10)).error
        assert (await toolbox.call(definitions["raw.fine"], {}, **written)).data == "fine"


HUGE = 10**400


@promise("tools:others-lists")
async def test_a_hostile_schema_or_time_costs_at_most_its_own_tool(opened, tmp_path, raw):
    schemas = [
        {"type": "object", "dependentRequired": {"x": ["y"]}},
        {"type": "object", "properties": {"x": {"maximum": HUGE, "minLength": HUGE}}},
        {"type": "object", "allOf": [{}], "properties": {"x": {"$ref": f"#/allOf/{'1' * 5000}"}}},
    ]
    tools = [{"name": f"t{place}", "inputSchema": schema} for place, schema in enumerate(schemas)]
    entry = raw(tools=[TOOL, *tools], listing={"ttlMs": HUGE})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert (catalog.unavailable, catalog.problems) == ({}, [])
    assert set(catalog.definitions) == {"raw.fine", "raw.t0", "raw.t1", "raw.t2"}
    assert catalog.definitions["raw.t0"].validate({"x": 1}) is not None


@promise("tools:others-lists")
def test_whatever_cannot_be_read_is_left_out_by_name_or_told_as_an_error(monkeypatch):
    def fails(*_, **__):
        raise RecursionError

    monkeypatch.setattr(pages, "input_schema", fails)
    page = pages.readable_page({"tools": [TOOL]})
    assert (page["tools"], page["_meta"][pages.LEFT_OUT]) == (
        [],
        [".fine: left out because it cannot be read (RecursionError)"],
    )
    monkeypatch.setattr(streams, "readable_page", fails)
    reads = streams._Reads(None, {7: "tools/list"})
    answer = JSONRPCResponse(jsonrpc="2.0", id=7, result={"tools": []})
    assert reads._read(SessionMessage(answer)).message.error.code == MALFORMED


@promise("tools:others-lists")
def test_entries_that_are_no_tools_cost_no_more_than_their_number():
    meta = pages.readable_page({"tools": [1] * 1000})["_meta"]
    assert (len(meta[pages.LEFT_OUT]), meta[pages.MORE]) == (50, 950)


@promise("tools:others-messages")
def test_a_body_is_read_in_a_charset_that_servers_write_and_in_no_other():
    body = b'{"jsonrpc":"2.0","id":1,"result":{"t":"\xe9"}}'
    for charset in ("iso-8859-1", "windows-1252", "cp1252"):
        assert answer_to(1, body, charset).result == {"t": "\xe9"}
    # Each of these either takes quadratic time or is no charset at all.
    for charset in ("punycode", "idna", "unicode_escape", "raw-unicode-escape", "rot13", "nothing"):
        assert answer_to(1, body, charset).result == {"t": "\ufffd"}


@promise("tools:others-messages")
def test_of_several_answers_in_one_event_the_one_that_names_the_request_counts():
    reader = EventReader(5)
    batch = [{"jsonrpc": "2.0", "id": 4, "result": {"t": 4}}, {"jsonrpc": "2.0", "id": 5, "error": {"code": 1}}]
    read = reader.feed(b"data: " + json.dumps(batch).encode() + b"\n\n").decode()
    assert [json.loads(line[6:])["id"] for line in read.splitlines() if line.startswith("data: ")] == [5]
    assert '"error"' in read
    assert reader.refused


@promise("tools:others-messages")
def test_a_stream_without_an_end_keeps_nothing_of_what_is_no_event():
    reader = EventReader(None)
    assert reader.feed(b'{"a"\n\ndata: {"jsonrpc": "2.0", "id": 5, "result": {}}\n\n').endswith(b'"result":{}}\n\n')


@promise("tools:others-messages")
def test_a_log_line_that_quotes_a_message_ends_no_request():
    assert cut_off(b'{"request": {"jsonrpc": "2.0", "method": "tools/call"}, "id": 5}') is None
    assert cut_off(b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "ad') is None
    assert cut_off(b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": ad}, "id": 5}') is None
    assert cut_off(b'{"jsonrpc": "2.0", "id": 5, "x": 1}') == 5
    assert cut_off(b'{"jsonrpc": "2.0", "id": 5, "result": {"a": ') == 5
    assert cut_off(b'{"jsonrpc": "2.0", "id": 5, "result": {"method": "a", ') == 5


@promise("tools:others-messages")
def test_a_result_that_needs_no_mending_is_handed_on_as_it_is():
    body = b'{"jsonrpc": "2.0", "id": 1, "result": {"t": 1.50}}'
    assert as_handed_on(1, body)[1] is body
    assert json.loads(as_handed_on(2, body)[1]) == {"jsonrpc": "2.0", "id": 2, "result": {"t": 1.5}}
    assert as_handed_on(1, b"none") == (None, b"none")


async def intent():
    """Stand for a committed intent."""
