import ast
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from backstay.policies.policy import Policy
from backstay.redaction.redactor import Redactor
from backstay.tools.tool import Safety
from tests.requirements import promise
from toolbox.bindings.binding import BoundParameter
from toolbox.catalog.catalog import build
from toolbox.catalog.definition import define
from toolbox.manifest.builder import make_manifest
from toolbox.manifest.docs import call_line, example_of, tool_docs
from toolbox.manifest.manifest import Manifest, ManifestProvider, ManifestTool
from toolbox.providers.declaration import Declaration
from toolbox.providers.listing import ListedTool
from toolbox.schema import compile_schema, fault_of

HOSTILE = (
    *(
        "<script>alert(1)</script>",
        "a | b",
        "| --- |\n| x |",
        "# not a heading",
        "```\nout\n```",
        "`code`",
        "[x](http://e)",
    ),
    *("![x](http://e/i.png)", "\u202egnp.exe", "a\x00b\x1b[31mred", "---", "1. one", "&lt;", "https://evil.example/x"),
    *(
        "<!-- hidden -->",
        "*bold* _it_ ~~s~~",
        "\\|",
        "a\\",
        "\ttab",
        "<img src=x onerror=y>",
        "\u2028line",
        "{{ 7 * 7 }}",
    ),
)


def described(*tools, providers=None):
    known = {tool.provider for tool in tools}
    made = {name: ManifestProvider(name=name, kind="mcp", tools=1, path="p") for name in known}
    return Manifest(user_id="ana", version="v", providers=providers or made, tools={tool.name: tool for tool in tools})


def manifest_tool(text, schema=None):
    return ManifestTool(
        name=f"raw.{text}",
        provider="raw",
        description=text,
        parameters=schema or {"type": "object", "properties": {text: {"type": "string"}}, "required": [text]},
        safety=Safety.RESTRICTED_WRITE,
        undo=text,
        verify=text,
        denied=text,
        path="x",
        mcp_tool_name=text,
        function="raw__x",
        binding="raw.x",
        arguments=(BoundParameter(argument=text, name="x", type=text, required=True, default=text, description=text),),
        definition="0" * 16,
    )


SEND = {
    "type": "object",
    "properties": {
        "to": {"type": "array", "items": {"type": "string", "format": "email"}, "description": "Who."},
        "copies": {"type": "integer", "minimum": 2, "description": "How many | at least two."},
        "from": {"type": "string", "default": "me"},
        "key": {"type": "string"},
    },
    "required": ["to", "copies", "key"],
    "additionalProperties": False,
}
TEXT = "Send an e-mail at once. It cannot be stopped.\n\nUse drafts:\n- for long ones\n- for many"
DECLARED = Declaration.model_validate(
    {
        "safety": "write_safe",
        "idempotent": True,
        "idempotency_argument": "key",
        "undo": {"tool": "recall", "arguments": {"id": "{{ result.id }}"}},
        "verify": {"tool": "sent", "arguments": {}, "applied_if": "{{ result.found }}"},
    }
)


def an_office():
    listed = [
        (ListedTool(name="send", description=TEXT, input_schema=SEND), DECLARED),
        (ListedTool(name="sent", input_schema={"type": "object"}), Declaration(safety=Safety.READ_ONLY)),
        (ListedTool(name="recall", input_schema={"type": "object"}), Declaration()),
    ]
    catalog = build([define("mail", tool, said, trusted=False, serial=False) for tool, said in listed], [], {})
    catalog = replace(
        catalog,
        kinds={"mail": "mcp", "down": "mcp"},
        unavailable={"down": "the server exited before it answered"},
        withheld={"off": "not connected: disabled in toolbox.json"},
        problems=["mail.send: odd <b>"],
    )
    policy = Policy.admit({"deny": ["mail.recall"]})
    return make_manifest("ana", catalog, policy=policy, redactor=Redactor(()))[0]


@promise("tools:docs")
def test_a_page_says_what_a_tool_does_takes_and_costs_to_undo():
    pages = tool_docs(an_office())
    assert pages == tool_docs(an_office())
    assert sorted(pages) == ["down.md", "index.md", "mail.md"]
    assert pages["mail.md"] == snapshot("""\
# mail

Kind: mcp; 3 tools (1 read_only, 1 write_safe, 1 restricted_write); available

| tool | safety | undone | what it does |
|---|---|---|---|
| mail.recall | restricted_write | no |  |
| mail.send | write_safe | yes | Send an e-mail at once. |
| mail.sent | read_only |  |  |

## mail.recall

**Not available:** denied: deny\\[0\\]: mail.recall

A call:

```json
{
  "tool": "mail.recall",
  "arguments": {}
}
```

The same in a program:

```python
await mail.recall()
```

- Safety: restricted_write.
- Undone: it cannot be.
- A model calls it `mail__recall`.

## mail.send

Send an e-mail at once. It cannot be stopped.

Use drafts:\\
\\- for long ones\\
\\- for many

| argument | type | required | default | description |
|---|---|---|---|---|
| to | list\\[str\\] | yes |  | Who. |
| copies | int | yes |  | How many \\| at least two. |
| from | str | no | "me" |  |

A call:

```json
{
  "tool": "mail.send",
  "arguments": {
    "to": [
      "ana@example.com"
    ],
    "copies": 2
  }
}
```

The same in a program:

```python
await mail.send(to=["ana@example.com"], copies=2)
```

- Safety: write_safe.
- Undone: by recall\\(id=result.id\\)
- Checked, when an answer was lost: by sent\\(\\), applied if result.found
- Sent twice under one effect id, it takes effect once.
- A model calls it `mail__send`.

## mail.sent

A call:

```json
{
  "tool": "mail.sent",
  "arguments": {}
}
```

The same in a program:

```python
await mail.sent()
```

- Safety: read_only.
- A model calls it `mail__sent`.
""")
    assert pages["index.md"] == snapshot("""\
# Tools

| provider | |
|---|---|
| [down](down.md) | Kind: mcp; 0 tools; not available: the server exited before it answered |
| [mail](mail.md) | Kind: mcp; 3 tools (1 read_only, 1 write_safe, 1 restricted_write); available |

Not shown:

- off: not connected: disabled in toolbox.json

To be corrected:

- mail.send: odd \\<b\\>
""")
    assert pages["down.md"] == snapshot("""\
# down

Kind: mcp; 0 tools; not available: the server exited before it answered

Its tools are not known here.
""")


@promise("tools:docs-hostile")
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_a_server_says_acts_in_a_page(text):
    page = tool_docs(described(manifest_tool(text)))["raw.md"]
    outside = re.sub(r"^```\w+\n.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert page.count("\n```") == 4, "a text opened or closed a block of code"
    bare = re.sub(r"\\.", "", outside)
    assert not re.search(r"[<>&]", bare)
    assert not re.search(r"\[[^\]]*\]\(", bare)
    assert "://" not in outside
    assert bare.count("`") == 2, "the name of the function is the only code"
    assert all(character.isprintable() or character == "\n" for character in page)
    rows = [line for line in re.sub(r"\\.", "", page).splitlines() if line.startswith("|")]
    assert [line.count("|") for line in rows] == [5, 5, 5, 6, 6, 6]
    assert len([line for line in bare.splitlines() if line.startswith("#")]) == 2


@promise("tools:docs-hostile")
def test_pages_have_names_of_their_own():
    names = ("index", "Index", "my crm", "my_crm")
    providers = {name: ManifestProvider(name=name, kind="mcp", path="p") for name in names}
    pages = tool_docs(described(providers=providers))
    assert len({name.casefold() for name in pages}) >= 4
    assert len(pages) == 5


FITTING = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "minLength": 30},
            {"type": "string", "maxLength": 1},
            {"type": "string", "format": "email"},
            {"type": "integer", "minimum": 7},
            {"type": "integer", "exclusiveMinimum": 7, "multipleOf": 5},
            {"type": "number", "maximum": -2.5},
            {"type": "number", "exclusiveMaximum": 0},
            {"type": ["null", "boolean"]},
            {"enum": [None, "a", 3]},
            {"const": {"a": 1}},
            {"type": "null"},
            {"anyOf": [{"type": "null"}, {"type": "integer"}]},
            {"$ref": "#/$defs/point"},
        ]
    ),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner, "minItems": st.integers(0, 3)})
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
            lambda fields: {"type": "object", "properties": fields, "required": sorted(fields)[:2]}
        )
    ),
    max_leaves=6,
)
POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {}}, "required": ["x"]}


@promise("tools:docs-examples")
@settings(max_examples=40, deadline=None)
@given(fields=st.dictionaries(st.sampled_from(["to", "class", "a b", "ü"]), FITTING, max_size=4))
def test_an_example_fits_its_schema_and_its_line_is_python(fields):
    schema = {"type": "object", "properties": fields, "required": sorted(fields), "$defs": {"point": POINT}}
    example = example_of(schema)
    assert set(example) == set(fields)
    assert fault_of(compile_schema(schema), example) is None, example
    line = call_line(manifest_tool("x", schema), example)
    (call,) = (node for node in ast.walk(ast.parse(f"async def main():\n    {line}")) if isinstance(node, ast.Call))
    (given,) = call.keywords or [ast.keyword(value=ast.Dict([], []))]
    assert ast.literal_eval(given.value) == example


WORDS = (
    *("type", "properties", "required", "items", "minimum", "exclusiveMaximum", "maximum", "multipleOf", "minLength"),
    *("maxLength", "minItems", "enum", "const", "default", "examples", "format", "anyOf", "allOf", "$ref", "$defs"),
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS) | st.text(max_size=3),
            inner | st.sampled_from(["object", "array", "integer", "string", "#", "#/properties/a", 1e308, 1e-320]),
            max_size=5,
        )
    ),
    max_leaves=15,
)


@promise("tools:docs-hostile")
@settings(max_examples=40, deadline=None)
@given(schema=st.dictionaries(st.sampled_from(["type", "properties", "required", "allOf", "$ref"]), ODD))
def test_no_schema_breaks_a_page(schema):
    tool_docs(described(manifest_tool("x", schema)))


@promise("tools:docs-examples")
def test_a_schema_that_refers_to_itself_has_a_small_example():
    wide = {f"f{n}": {"$ref": "#"} for n in range(100)}
    schema = {"type": "object", "properties": wide, "required": list(wide)}
    assert len(json.dumps(example_of(schema))) < 20_000


@promise("tools:docs-examples")
def test_the_line_of_a_program_calls_the_function_with_the_arguments():
    named = manifest_tool(
        "from", {"type": "object", "properties": {"from": {}, "x y": {}}, "required": ["from", "x y"]}
    )
    page = tool_docs(described(named))["raw.md"]
    (line,) = re.findall(r"^```python\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert line == 'await raw.x(x="from", **{"x y": "x y"})'
    ast.parse(f"async def main():\n    {line}")
