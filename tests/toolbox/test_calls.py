import asyncio
import hashlib

import pytest

from backstay.errors import OutcomeUnknown
from tests.requirements import promise
from toolbox.configuration.meaning import judge
from toolbox.providers.declaration import Declaration

EVERY = pytest.mark.parametrize("provider", ["office", "remote", "events"])


async def call(toolbox, name, arguments=None, *, before_send=None, deadline_s=20.0, effect_id=None):
    catalog = await toolbox.catalog("anyone")
    definition = catalog.definitions[name]
    return await toolbox.call(
        definition, arguments or {}, deadline_s=deadline_s, effect_id=effect_id, before_send=before_send
    )


async def intent():
    """Stand for a committed intent."""


@promise("tools:stdio")
@EVERY
async def test_structured_content_is_the_data_and_keeps_its_types(office, provider):
    answer = await call(office, f"{provider}.structured", {"count": 3})
    assert (answer.success, answer.data, answer.error) == (True, {"count": 3, "id": "0012"}, None)


@promise("tools:text")
@EVERY
async def test_text_is_read_as_json_when_it_is_json_and_else_stays_text(office, provider):
    assert (await call(office, f"{provider}.json_text")).data == {"rows": [1, 2, 3]}
    assert (await call(office, f"{provider}.plain_text")).data == "only words"
    assert (await call(office, f"{provider}.odd_text")).data == {"a": "nan", "b": "?"}


@promise("tools:files")
async def test_pictures_and_other_bytes_are_kept_apart_and_links_keep_what_they_say(office):
    answer = await call(office, "office.picture")
    name = hashlib.sha256(b"hello").hexdigest()
    image = {"type": "image", "mime": "image/png", "bytes": 5, "sha256": name}
    link = {"type": "resource_link", "uri": "office://plan", "mime": "text/plain", "name": "plan", "bytes": 9}
    link |= {"read_with": "office.resources_read"}
    assert (answer.data, answer.files) == (["see", image, link], {name: b"hello"})


@promise("tools:tool-error")
@EVERY
async def test_an_error_of_the_tool_is_an_answer_with_one_line(office, provider):
    answer = await call(office, f"{provider}.refuse", before_send=intent)
    assert answer.success is False
    assert "the mailbox is full" in answer.error
    assert "\n" not in answer.error
    assert len(answer.error) <= 500


WITHHELD = [
    "MCP error -32602: Tool send has an output schema but no structured content was provided",
    "MCP error -32602: Invalid structured content for tool send: [ { code: 'invalid_type' } ]",
    "MCP error -32602: Output validation error: Tool send has an output schema but no structured content was provided",
    "Output validation error: outputSchema defined but no structured output returned",
    "Output validation error: 5 is not of type 'string'",
    "Error executing tool send: 1 validation error for sendOutput result Input should be a valid integer",
    "Error executing tool send: 2 validation errors for sendDictOutput a Input should be a valid integer",
    "Invalid tools/call result: [ { code: 'invalid_union', path: [ 'content', 0 ] } ]",
    "Response missing structured content which is expected when calling tool with non-empty outputSchema",
    "Validation failed: structuredContent does not match tool outputSchema. Validation errors: $.id: must be a string",
    "Tool (send) output validation failed: $.id: must be a string",
    "Error calling tool 'send': structured_content must be a dict or None. Got list: [1].",
    "Error calling tool 'send': Could not serialize structured content. If this is unexpected",
    "MCP error -32602: Structured content does not match the tool's output schema: data/id must be string",
    "Failed to validate structured content: unknown format",
    "Tool call result validation failed: $.id: must be a string",
    "validating tool output: validating root: id has type integer, want string",
    "output schema validation failed: /id: got number, want string",
]
"""What servers say once their tool has run, and what it answered does not fit its own output schema."""
TOOL = {"name": "send", "inputSchema": {"type": "object"}}


@promise("effects:withheld-answer")
@pytest.mark.parametrize("as_result", [False, True])
@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        *((said, "doubtful") for said in WITHHELD),
        ("MCP error -32602: Input validation error: Invalid arguments for tool send: to: Required", "failed"),
        ("MCP error -32602: Tool send not found", "failed"),
        ("MCP error -32602: Invalid tools/call request: [ { path: [ 'params', 'name' ] } ]", "failed"),
        ("Tool (send) input validation failed: $.to: is missing", "failed"),
        ("Error executing tool send: 1 validation error for sendArguments to Field required", "failed"),
    ],
)
async def test_a_write_whose_server_keeps_back_its_answer_may_have_taken_effect(
    opened, raw, tmp_path, said, meaning, as_result
):
    result = {"result": {"content": [{"type": "text", "text": said}], "isError": True}}
    error = {"error": {"code": -32602, "message": said}}
    entry = raw(tools=[TOOL], answers={"send": result if as_result else error})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        answer = await call(toolbox, "raw.send", before_send=intent)
    judged = judge(answer, Declaration(), {"arguments": {}, "effect": {"id": "e"}})
    assert (answer.error, judged.meaning) == (said, meaning)


@promise("effects:lost-behind")
@pytest.mark.parametrize(
    ("code", "said", "meaning"),
    [
        (-32600, "upstream error: upstream tool failed: timeout after 10s", "doubtful"),
        (-32602, "Request timed out", "doubtful"),
        (-32700, "Failed to parse JSON response", "doubtful"),
        (-32600, "upstream error: failed to connect: timeout after 10s", "failed"),
        (-32602, "timeout: must be at most 600", "failed"),
    ],
)
async def test_a_write_whose_gateway_has_lost_its_answer_may_have_taken_effect_whatever_the_code(
    opened, raw, tmp_path, code, said, meaning
):
    entry = raw(tools=[TOOL], answers={"send": {"error": {"code": code, "message": said}}})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        answer = await call(toolbox, "raw.send", before_send=intent)
        read = await call(toolbox, "raw.send")
    judged = judge(answer, Declaration(), {"arguments": {}, "effect": {"id": "e"}})
    assert (answer.error, judged.meaning) == (said, meaning)
    assert (read.success, read.error) == (False, said)


LARGE = pytest.mark.parametrize("provider", ["office", "remote"])
"""An event of a stream may have a megabyte, so that larger answers need another transport."""


@promise("context:20mb")
@LARGE
async def test_twenty_megabytes_come_through(office, provider):
    answer = await call(office, f"{provider}.huge", {"megabytes": 20})
    assert len(answer.data) == 20 * 1024 * 1024


@promise("tools:cap")
@LARGE
async def test_an_answer_over_the_cap_is_named_and_the_connection_goes_on(office, provider):
    answer = await call(office, f"{provider}.huge", {"megabytes": 65}, deadline_s=60)
    assert answer.success is False
    assert "64 MB" in answer.error
    with pytest.raises(OutcomeUnknown):
        await call(office, f"{provider}.huge", {"megabytes": 65}, before_send=intent, deadline_s=60)
    assert (await call(office, f"{provider}.plain_text")).success


@promise("tools:hangs")
@EVERY
async def test_a_call_that_hangs_is_unknown_at_its_deadline_and_others_go_on(office, provider):
    with pytest.raises(OutcomeUnknown):
        await call(office, f"{provider}.hang", before_send=intent, deadline_s=0.3)
    assert (await call(office, f"{provider}.plain_text")).success


@promise("tools:hangs")
@EVERY
async def test_a_cancelled_call_leaves_the_connection_usable(office, provider):
    sent = asyncio.Event()

    async def tell():
        sent.set()

    running = asyncio.create_task(call(office, f"{provider}.hang", before_send=tell))
    async with asyncio.timeout(10):
        await sent.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await call(office, f"{provider}.plain_text")).success


@promise("effects:id-travels")
@EVERY
async def test_the_effect_id_travels_beside_the_arguments(office, provider):
    answer = await call(office, f"{provider}.show_meta", effect_id="task-1/run-1/4")
    assert answer.data["effect"] == "task-1/run-1/4"


@promise("effects:id-travels")
async def test_the_declared_argument_carries_the_effect_id_and_the_model_never_sees_it(office):
    catalog = await office.catalog("anyone")
    assert catalog.definitions["office.show_meta"].parameters.get("properties") == {}
    assert "token" in catalog.definitions["remote.show_meta"].parameters["properties"]
    answer = await call(office, "office.show_meta", effect_id="task-1/run-1/4")
    assert answer.data["token"] == "task-1/run-1/4"


@promise("effects:before-intent")
@EVERY
async def test_a_fault_before_the_intent_is_committed_sends_nothing(office, provider):
    async def fail():
        raise LookupError("the store is away")

    with pytest.raises(LookupError):
        await call(office, f"{provider}.die", before_send=fail)
    assert (await call(office, f"{provider}.plain_text")).success


@promise("tools:died")
async def test_a_server_that_dies_in_mid_call_is_unknown_and_opened_again(office):
    with pytest.raises(OutcomeUnknown):
        await call(office, "office.die", before_send=intent)
    assert (await call(office, "office.plain_text")).data == "only words"


@promise("tools:serial")
async def test_calls_run_side_by_side_unless_the_provider_is_serial(office, opened, servers, tmp_path):
    await asyncio.gather(*(call(office, "office.overlap") for _ in range(5)))
    assert (await call(office, "office.overlap")).data["most"] > 1
    configuration = {
        "mcpServers": {"office": {"command": "python", "args": [str(servers / "office.py"), "stdio"]}},
        "providers": {"office": {"serial": True}},
    }
    async with opened(tmp_path, configuration) as toolbox:
        assert (await toolbox.catalog("anyone")).definitions["office.overlap"].tool.serial
        answers = await asyncio.gather(*(call(toolbox, "office.overlap") for _ in range(5)))
    assert [answer.data["most"] for answer in answers] == [1] * 5
