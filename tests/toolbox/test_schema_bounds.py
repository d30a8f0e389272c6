"""What hostile schemas may cost: their own server's calls a bounded time, and everybody else nothing."""

import asyncio
import json

import pytest

from tests.requirements import promise
from tests.sizes import spread
from toolbox.providers.elicitation import ElicitationRequest, InputRequired

FINE = {"result": {"content": [{"type": "text", "text": "fine"}]}}
CASE_BLIND = {
    "type": "object",
    "properties": {f"p{n}": {"type": "string", "pattern": f"(?i)x{n}" + r"[^\pL]" * 160} for n in range(200)},
}
NAMES = {f"(?i)n{n}" + r"\pL" * 12: {"type": "string"} for n in range(2000)}
DOUBLING = {"d0": {}} | {
    f"d{n}": {"dependentSchemas": {key: {"$ref": f"#/$defs/d{n - 1}"} for key in "ab"}} for n in range(1, 40)
}
HOSTILE = {
    "case-blind classes": (CASE_BLIND, {f"p{n}": "text" for n in range(200)}),
    "patterns of names": ({"type": "object", "patternProperties": NAMES}, {f"name{n}": "x" for n in range(50)}),
    "an enum in a list": (
        {"type": "object", "properties": {"x": {"items": {"enum": [{"n": n} for n in range(5000)]}}}},
        {"x": [{"n": -1}] * 5000},
    ),
}


def tool(name, schema, **more):
    return {"name": name, "inputSchema": schema, **more}


def shape(**properties):
    return {"type": "object", "properties": properties}


@promise("tools:schema-bounds")
@pytest.mark.thorough
@pytest.mark.parametrize("name", spread(list(HOSTILE), 2))
async def test_a_slow_schema_ends_by_itself_and_keeps_no_other_provider_waiting(opened, tmp_path, raw, name):
    schema, arguments = HOSTILE[name]
    servers = {"evil": raw("evil", tools=[tool("t", schema)]), "mail": raw("mail", tools=[tool("send", shape())])}
    async with opened(tmp_path, {"mcpServers": servers}) as toolbox:
        definitions = (await toolbox.catalog("anyone")).definitions
    async with asyncio.timeout(150):
        slow = [asyncio.create_task(definitions["evil.t"].check(arguments)) for _ in range(2)]
        await asyncio.sleep(0)
        assert await definitions["mail.send"].check({}) is None
        assert not any(check.done() for check in slow)
        assert all("too long" in fault for fault in await asyncio.gather(*slow))


@promise("tools:bounds-decided")
@pytest.mark.parametrize(
    ("schema", "arguments", "fault"),
    [
        (shape(x={"uniqueItems": True}), {"x": [{"n": [n]} for n in range(20_000)]}, None),
        (shape(x={"uniqueItems": True}), {"x": [{"n": 1}, {"n": 1.0}]}, "does not fit uniqueItems"),
        (shape(x={"uniqueItems": True}), {"x": [1, True, "1", None, [], {}, [1], {"1": 1}]}, None),
        (shape(x={"enum": [1, {"a": [True]}]}), {"x": {"a": [1]}}, "must be one of"),
        (shape(x={"enum": [1, {"a": [True]}]}), {"x": 1.0}, None),
        (
            {"type": "object", "$defs": DOUBLING, "unevaluatedProperties": False, "$ref": "#/$defs/d39"},
            {"a": 1, "b": 1},
            "too long",
        ),
        (shape(x={"pattern": "a" * 1001}), {"x": "b"}, None),
    ],
)
async def test_what_could_take_long_is_decided_or_refused_or_left_to_the_server(
    opened, tmp_path, raw, schema, arguments, fault
):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("t", schema)])}}) as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["raw.t"]
    async with asyncio.timeout(150):
        found = await definition.check(arguments)
    assert found is None if fault is None else fault in found


class PausedOnce:
    """Read a thread's clock that jumps by seconds once, as after a garbage collection or a pause of the host."""

    def __init__(self) -> None:
        self.reads = 0

    def thread_time(self) -> float:
        self.reads += 1
        return 0.0 if self.reads < 10 else 3.0


@promise("tools:bounds-pauses")
async def test_a_pause_of_the_machine_amid_a_check_refuses_no_valid_arguments(opened, tmp_path, raw, monkeypatch):
    schema = shape(x={"uniqueItems": True})
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("t", schema)])}}) as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["raw.t"]
    clock = PausedOnce()
    monkeypatch.setattr("toolbox.schema.time", clock)
    assert await definition.check({"x": list(range(100))}) is None
    assert clock.reads > 100


@promise("tools:bounds-look")
@pytest.mark.parametrize("values", [[{"n": n} for n in range(6000)], [[n] for n in range(9000)]])
@pytest.mark.parametrize("key", ["required", "enum", "type"])
async def test_the_look_at_a_schema_is_bounded_like_a_check(opened, tmp_path, raw, key, values):
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {"x": {key: values}},
    }
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("t", schema)])}}) as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["raw.t"]
    async with asyncio.timeout(150):
        fault = await definition.check({"x": 1})
    # What is no list of names or types says nothing; a list of values counts.
    assert fault is None if key != "enum" else "must be one of" in fault


@promise("tools:bounds-large")
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (shape(x={"description": "x" * 300_000}), "is longer than 262144 characters"),
        (shape(x={"enum": list(range(20_001))}), "holds more than 20000 values"),
        (
            shape(x=json.loads('{"items":' * 65 + "{}" + "}" * 65)),
            "is nested deeper than 64 levels",
        ),
    ],
)
@pytest.mark.parametrize("field", ["inputSchema", "outputSchema"])
async def test_a_schema_that_is_too_large_leaves_out_its_own_tool_only(opened, tmp_path, raw, schema, reason, field):
    listed = tool("t", shape()) | {field: schema}
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[listed, tool("fine", shape())])}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert set(catalog.definitions) == {"raw.fine"}
    assert catalog.problems == [f"raw.t: left out because its schema {reason}"]


def answered(content):
    return {"result": {"content": [], "structuredContent": content}}


@promise("tools:bounds-answers")
async def test_the_schema_of_answers_is_bounded_too_and_an_answer_it_cannot_decide_counts(opened, tmp_path, raw):
    slow = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a|aa)+$"}}}
    answer = {"x": "a" * 60 + "!"}
    listed = [tool("t", shape(), outputSchema=slow), tool("fits", shape(), outputSchema=shape(n={"type": "integer"}))]
    entry = raw(tools=listed, answers={"t": answered(answer), "fits": answered({"n": 1})})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox, asyncio.timeout(150):
        definitions = (await toolbox.catalog("anyone")).definitions
        assert (await toolbox.call(definitions["raw.fits"], {}, deadline_s=10)).data == {"n": 1}
        assert (await toolbox.call(definitions["raw.t"], {}, deadline_s=10)).data == answer
        many = {"type": "object", "patternProperties": NAMES}
        raw(tools=[tool("t", shape(), outputSchema=many)], answers={"t": answered({"namex": "x"})})
        await toolbox.catalog("anyone", fresh=True)
        now = (await toolbox.catalog("anyone")).definitions["raw.t"]
        assert (await toolbox.call(now, {}, deadline_s=30)).data == {"namex": "x"}


@promise("tools:bounds-forms")
async def test_the_form_of_a_question_is_bounded_too():
    form = {"type": "object", "patternProperties": NAMES}
    question = InputRequired(requests=(ElicitationRequest(key="answer", message="?", form=form),))
    async with asyncio.timeout(150):
        assert "too long" in await asyncio.to_thread(question.fault, {f"name{n}": "x" for n in range(50)})


@promise("tools:endless-line")
async def test_a_line_that_never_ends_ends_the_server_and_the_next_call_has_another(opened, tmp_path, raw, monkeypatch):
    monkeypatch.setattr("toolbox.mcp.transports.PIECE_S", 0.5)
    monkeypatch.setattr("toolbox.mcp.transports.CAP", 100_000)
    answers = {
        "drip": {"endless": " ", "pause": 0.05},
        "flood": {"endless": "x" * 100_000, "pause": 0},
        "fine": FINE,
    }
    entry = raw(tools=[tool(name, shape()) for name in answers], answers=answers)

    async def intent():
        pass

    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox, asyncio.timeout(150):
        definitions = (await toolbox.catalog("anyone")).definitions
        for name in ("drip", "flood"):
            with pytest.raises(Exception, match="Connection closed") as caught:
                await toolbox.call(definitions[f"raw.{name}"], {}, deadline_s=30, before_send=intent)
            assert type(caught.value).__name__ == "OutcomeUnknown"
            assert (await toolbox.call(definitions["raw.fine"], {}, deadline_s=30)).data == "fine"
