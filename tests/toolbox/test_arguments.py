import pytest

TOOL = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "pattern": "^[a-z]+@[a-z.]+$"},
        "count": {"type": "integer"},
        "kind": {"enum": ["a", "b"]},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"api_key": {"type": "integer"}}}},
    },
    "required": ["to"],
    "additionalProperties": False,
}
BOMB = {"a0": {"type": "string"}} | {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n - 1}"}] * 2} for n in range(1, 40)}


@pytest.fixture
async def definition(opened, tmp_path, raw):
    async def listed(schema):
        entry = raw(tools=[{"name": "t", "inputSchema": schema}])
        async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
            return (await toolbox.catalog("anyone")).definitions["raw.t"]

    return listed


async def test_a_fault_names_path_problem_and_expectation_and_never_the_value(definition):
    tool = await definition(TOOL)
    assert tool.validate({"to": "a@b.c", "count": 1, "kind": "a"}) is None
    faults = {
        "arguments: 'to' is required; add it": {},
        "arguments.count: must be integer, not string": {"to": "a@b.c", "count": "hidden"},
        'arguments.kind: must be one of ["a", "b"]': {"to": "a@b.c", "kind": "hidden"},
        "arguments: unknown field 'cc'; known: to, count, kind, lines": {"to": "a@b.c", "cc": "hidden"},
        "arguments.to: does not fit pattern ^[a-z]+@[a-z.]+$ (string given)": {"to": "hidden"},
        "arguments.lines[1].api_key: must be integer, not string": {
            "to": "a@b.c",
            "lines": [{}, {"api_key": "hidden"}],
        },
        "arguments: must be an object": ["hidden"],
    }
    assert {tool.validate(arguments): arguments for arguments in faults.values()} == faults


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"type": "object", "properties": {"x": {"type": "text"}}}, {"x": 1}),
        ({"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:1/schema"}}}, {"x": 1}),
        ({"type": "object", "properties": {"x": {"$ref": "#"}}, "$ref": "#"}, {"x": 1}),
        ({"type": "object", "$defs": BOMB, "properties": {"x": {"$ref": "#/$defs/a39"}}}, {"x": "s"}),
        (
            {
                "type": "object",
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$defs": BOMB,
                "properties": {"x": {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/$defs/a39"}},
            },
            {"x": "s"},
        ),
    ],
)
async def test_a_hostile_schema_is_a_message(definition, schema, arguments):
    fault = (await definition(schema)).validate(arguments)
    assert "schema" in fault
    assert "\n" not in fault


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "(a*)*c", "((a?){30})a{30}", "a*a*a*a*a*a*a*b", "("])
async def test_a_pattern_that_could_take_for_ever_is_left_to_the_server(definition, pattern):
    tool = await definition({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}})
    fault = tool.validate({"x": "a" * 3000})
    assert fault is None or "schema" in fault


async def test_older_dialects_keep_their_own_rules(definition):
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
        "properties": {"x": {"$ref": "#/definitions/pair"}},
    }
    tool = await definition(schema)
    assert tool.validate({"x": ["a", 1]}) is None
    assert tool.validate({"x": ["a", "b"]}) == "arguments.x[1]: must be integer, not string"
