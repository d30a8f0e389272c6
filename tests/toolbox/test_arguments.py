import pytest

from tests.requirements import promise
from toolbox.schema import compile_schema, fault_of

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


@promise("tools:argument-faults")
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


@promise("secrets:fitting")
def test_of_a_value_that_is_not_known_only_the_names_around_it_can_be_wrong():
    hidden = "⟦secret:vault/pin:0123456789abcdef01234567⟧"
    validator = compile_schema(TOOL, of_a_server=True)
    given = {"to": hidden, "count": hidden, "kind": hidden, "lines": [{"api_key": hidden}]}
    faults = {
        None: given,
        "arguments: unknown field 'cc'; known: to, count, kind, lines": given | {"cc": 1},
        "arguments: 'to' is required; add it": {"count": hidden},
        'arguments.kind: must be one of ["a", "b"]': given | {"kind": "c"},
    }
    found = {fault_of(validator, some, unknown=lambda value: hidden in str(value)): some for some in faults.values()}
    assert found == faults


@promise("tools:meant-schemas")
async def test_what_has_a_default_may_be_missing_and_what_is_nullable_may_be_null(definition):
    scale = {"enum": ["css", "device"], "default": "css"}
    line = {"type": "object", "properties": {"end": {"type": "integer", "nullable": True}, "scale": scale}}
    lines = {"type": "array", "items": {**line, "required": ["end", "scale"]}}
    null = {"type": "string", "default": None}
    schema = {"type": "object", "properties": {"lines": lines, "scale": scale, "style": null}}
    tool = await definition({**schema, "required": ["lines", "scale", "style"]})
    assert tool.validate({"lines": [{"end": None}, {"end": 3, "scale": "device"}], "style": None}) is None
    faults = {
        "arguments: 'lines' is required; add it": {},
        "arguments.lines[0]: 'end' is required; add it": {"lines": [{}]},
        'arguments.scale: must be one of ["css", "device"]': {"lines": [], "scale": None},
        "arguments.style: must be string, not integer": {"lines": [], "style": 1},
        'arguments.lines[0].end: must be ["integer", "null"], not string': {"lines": [{"end": "hidden"}]},
    }
    assert {tool.validate(arguments): arguments for arguments in faults.values()} == faults


@promise("tools:hostile-schemas")
@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
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


def text(pattern):
    return {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}


@promise("tools:hostile-schemas")
@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("^(a+)+$", "a" * 3000 + "!"),
        ("(a|a)*b", "a" * 3000),
        ("(a*)*c", "a" * 3000),
        ("((a?){30})a{30}b", "a" * 3000),
        ("a*a*a*a*a*a*a*b", "a" * 3000),
        ("(x+x+)+y", "x" * 3000),
    ],
)
async def test_a_pattern_that_takes_others_for_ever_is_decided(definition, pattern, value):
    fault = (await definition(text(pattern))).validate({"x": value})
    assert fault == f"arguments.x: does not fit pattern {pattern} (string given)"


@promise("tools:hostile-schemas")
@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("(", "a"),
        ("^(?=b)", "a"),
        (r"(a)\1", "ab"),
        ("^a{2000}$", "a"),
        ("^((a{100}){100}){100}$", "a"),
        ("(.{0,500}a)b.{0,499}", "a" * 100_000),
        (r"^\s$", "\u00a0"),
        ("^b", "\ud800"),
    ],
)
async def test_a_pattern_that_cannot_be_decided_in_bounded_time_is_left_to_the_server(definition, pattern, value):
    assert (await definition(text(pattern))).validate({"x": value}) is None


@promise("tools:patterns")
@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("b", "abc", "ac"),
        ("^a$", "a", "a\n"),
        (r"^\d+$", "12", "\u0661\u0662"),
        (r"^\u00e9\\u$", "\u00e9\\u", "\u00e9"),
        (r"^\p{L}+$", "\u03b1", "1"),
        (r"^(?<year>\d{4})\/$", "2026/", "2026"),
    ],
)
async def test_patterns_are_read_as_ecma_262_reads_them(definition, pattern, fits, does_not):
    tool = await definition(text(pattern))
    assert tool.validate({"x": fits}) is None
    assert tool.validate({"x": does_not}) == f"arguments.x: does not fit pattern {pattern} (string given)"


@promise("tools:hostile-schemas")
async def test_patterns_of_names_are_bounded_too(definition):
    patterns = {"^x-": {"type": "integer"}, "^(a+)+$": {"type": "string"}, "(?=never)": {"type": "string"}}
    tool = await definition({"type": "object", "patternProperties": patterns, "additionalProperties": False})
    assert tool.validate({"x-1": 1, "a" * 3000: "text"}) is None
    assert tool.validate({"x-1": "text"}) == "arguments.x-1: must be integer, not string"
    assert tool.validate({"a" * 3000 + "!": "text"}) is None  # the third pattern may be meant for it
    del patterns["(?=never)"]
    strict = await definition({"type": "object", "patternProperties": patterns, "additionalProperties": False})
    assert strict.validate({"a" * 30 + "!": "text"}) == f"arguments: unknown field '{'a' * 30}!'; known: none"
    strict = await definition({"type": "object", "patternProperties": patterns, "unevaluatedProperties": False})
    assert strict.validate({"a" * 30 + "!": "text"}) is None


@promise("tools:hostile-schemas")
async def test_all_patterns_of_one_check_share_one_bound(definition):
    names = {f"n{n}": {"type": "string", "pattern": f"^a.{{0,1000}}b{{{n}}}"} for n in range(20)}
    plain = {"last": {"type": "string", "pattern": "^b$"}}
    tool = await definition({"type": "object", "properties": {**names, **plain}})
    assert tool.validate({"last": "a"}) == "arguments.last: does not fit pattern ^b$ (string given)"
    assert tool.validate({**dict.fromkeys(names, "a" + "b" * 3000), "last": "a"}) is None


@promise("tools:dialects")
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
