import ast
import importlib
import inspect
import json
import keyword
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from backstay.tools.tool import Safety, Tool
from tests.requirements import promise
from tests.sizes import sized
from toolbox.bindings.package import bindings_of, bound, describe, render_package, signatures_of
from toolbox.catalog.definition import Definition
from toolbox.providers.declaration import Declaration

HOSTILE = (
    *('x"): pass\nimport os #', '"""', "\\", '\\"""\n', "class", "None", "call", "UNSET", "Any", "__init__", "a\\"),
    *("a-b", "a_b", "a b", "1", "", "ªb", "\u202eevil", "é", "名前", "list", "str", "self", "\n", "\x00", "\x0c", "\r"),
    *("a" * 500, "{{ 7 * 7 }}", "{% raw %}", "{# x", "\ud800", "name", "value", "others", "print", "main", "tool.more"),
    "__debug__",
)
NAMES = st.sampled_from(HOSTILE) | st.text(max_size=12)
ODD = st.none() | st.booleans() | st.integers() | st.floats() | NAMES
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object", "odd", 3, None])
SCHEMAS = st.recursive(
    ODD
    | st.fixed_dictionaries(
        {}, optional={"type": KINDS | st.lists(KINDS, max_size=3), "description": ODD, "default": ODD}
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS,
            "properties": st.dictionaries(NAMES, inner, max_size=4) | ODD,
            "required": st.lists(NAMES, max_size=3) | ODD,
            "additionalProperties": inner,
            "items": inner,
            "enum": st.lists(ODD, max_size=4),
            "const": inner,
            "anyOf": st.lists(inner, max_size=3) | ODD,
            "allOf": st.lists(inner, max_size=2),
            "$ref": st.sampled_from(["#", "#/$defs/a", "#/properties/a_b", "#/nowhere", "http://127.0.0.1/x", 3]),
            "$defs": st.dictionaries(st.just("a"), inner, max_size=1),
            "nullable": st.booleans(),
            "description": NAMES,
        },
    ),
    max_leaves=12,
)


def define(name, parameters=None, *, description="", safety=Safety.READ_ONLY, undo=None):
    return Definition(
        tool=Tool(name=name, safety=safety, undo=undo),
        function=name.replace(".", "__"),
        mcp_name=name.partition(".")[2],
        description=description,
        parameters={"type": "object"} if parameters is None else parameters,
        declaration=Declaration(),
    )


def fields(*required, **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


SEND = define(
    "mail.send-email",
    {
        **fields(
            "to",
            "subject",
            priority={"enum": ["low", "high", None], "default": "low", "description": "How soon."},
            to={"type": "array", "items": {"type": "string"}, "description": "Who gets it."},
            subject={"type": "string"},
            attachments={"type": "array", "items": {"$ref": "#/$defs/Attachment"}},
            headers={"type": "object", "additionalProperties": {"type": "string"}},
            delay={"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "null"}], "default": None},
            **{"from": {"type": "string", "description": 'Sender, "as is".'}, "kind": {"const": "plain"}},
        ),
        "$defs": {
            "Attachment": fields("file-name", **{"file-name": {"type": "string"}, "size": {"type": "integer"}}),
        },
    },
    description="Send an email at once. It cannot be stopped.\n\nUse drafts for anything long.",
    safety=Safety.RESTRICTED_WRITE,
    undo="recall(id=result.id)",
)
PING = define("mail.list", description="List all folders.")
OPEN = define("my crm.update", {"properties": {"id": {}}, "required": ["id"], "additionalProperties": True})


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Write the package and import its servers, as a program or a host would."""

    def write(*definitions):
        for path, source in render_package(definitions).items():
            place = tmp_path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(source, encoding="utf-8")
        for name in [name for name in sys.modules if name.partition(".")[0] == "sandbox_py"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.syspath_prepend(tmp_path)
        return importlib.import_module("sandbox_py.servers"), importlib.import_module("sandbox_py.client")

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "sandbox_py"]:
        del sys.modules[name]


@promise("programs:bindings-text")
def test_a_tool_is_written_as_a_typed_documented_function():
    assert bindings_of([SEND]) == snapshot(
        {
            "mail": {
                "send_email": '''\
from typing import Any, Literal, NotRequired, TypedDict

from sandbox_py.client import UNSET, call

SendEmailAttachmentsItem = TypedDict(
    "SendEmailAttachmentsItem",
    {
        "file-name": str,
        "size": NotRequired[int],
    },
)


async def send_email(
    *,
    to: list[str],
    subject: str,
    priority: Literal["low", "high"] | None = UNSET,
    attachments: list[SendEmailAttachmentsItem] = UNSET,
    headers: dict[str, str] = UNSET,
    delay: int | float | None = UNSET,
    from_: str = UNSET,
    kind: Literal["plain"] = UNSET,
) -> Any:
    """Send an email at once. It cannot be stopped.

    Use drafts for anything long.

    Args:
        to: Who gets it.
        priority: How soon. (default: "low")
        delay: (default: None)
        from_: Sender, "as is".

    Safety: restricted_write, undone by recall(id=result.id).
    """
    return await call(
        "mail.send-email",
        {
            name: value
            for name, value in {
                "to": to,
                "subject": subject,
                "priority": priority,
                "attachments": attachments,
                "headers": headers,
                "delay": delay,
                "from": from_,
                "kind": kind,
            }.items()
            if value is not UNSET
        },
    )
'''
            }
        }
    )


@promise("programs:bindings-text")
def test_a_tool_without_parameters_and_one_that_takes_anything_are_written_briefly():
    assert bindings_of([PING, OPEN]) == snapshot(
        {
            "mail": {
                "list": '''\
from typing import Any

from sandbox_py.client import call


async def list() -> Any:
    """List all folders.

    Safety: read_only.
    """
    return await call("mail.list", {})
'''
            },
            "my_crm": {
                "update": '''\
from typing import Any

from sandbox_py.client import call


async def update(
    *,
    id: Any,
    **others: Any,
) -> Any:
    """Call the tool.

    Safety: read_only.
    """
    return await call(
        "my crm.update",
        {
            **others,
            "id": id,
        },
    )
'''
            },
        }
    )


@promise("programs:bindings-text")
def test_the_package_has_a_client_and_one_module_per_tool():
    package = render_package([SEND, PING, OPEN])
    assert sorted(package) == snapshot(
        [
            "sandbox_py/__init__.py",
            "sandbox_py/client.py",
            "sandbox_py/servers/__init__.py",
            "sandbox_py/servers/mail/__init__.py",
            "sandbox_py/servers/mail/list.py",
            "sandbox_py/servers/mail/send_email.py",
            "sandbox_py/servers/my_crm/__init__.py",
            "sandbox_py/servers/my_crm/update.py",
        ]
    )
    assert package["sandbox_py/servers/mail/__init__.py"] == snapshot('''\
"""Tools of mail."""

from sandbox_py.servers.mail.list import list
from sandbox_py.servers.mail.send_email import send_email

__all__ = [
    "list",
    "send_email",
]
''')
    assert package["sandbox_py/client.py"] == snapshot('''\
"""Call tools: inside the sandbox the engine answers; elsewhere, the caller that was registered."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

__all__ = ["UNSET", "ToolCaller", "ToolError", "call", "register_tool_caller", "result"]

UNSET: Any = object()
"""Stands for an argument that was not given."""

ToolCaller = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Takes the name of a tool, `provider.tool`, and its arguments; raises ToolError when the tool fails."""

_callers: list[ToolCaller] = []


class ToolError(Exception):
    """A tool did not do what it was asked to; `error_type` says in one word why, the text says it in full."""

    def __init__(self, message: str = "", error_type: str = "ToolError", tool: str = "") -> None:
        """Hold what the tool said."""
        super().__init__(message)
        self.error_type = error_type
        self.tool = tool


def register_tool_caller(caller: ToolCaller) -> None:
    """Let this caller make all calls from now on."""
    _callers[:] = [caller]


async def call(tool: str, arguments: Mapping[str, Any]) -> Any:
    """Return what the tool answers."""
    if not _callers:
        message = "no tool caller is registered; call register_tool_caller first"
        raise RuntimeError(message)
    return await _callers[0](tool, arguments)


async def result(ref: str) -> Any:
    """Return an earlier stored result in full."""
    return await call("engine.result", {"ref": ref})
''')


@promise("programs:bindings-text")
def test_a_model_reads_one_line_for_each_function():
    send, *others = describe([SEND, PING, OPEN]).splitlines()
    assert send.split(", ") == snapshot(
        [
            "mail.send_email(*",
            "to: list[str]",
            "subject: str",
            'priority: Literal["low"',
            '"high"] | None = "low"',
            'attachments: list[{"file-name": str',
            '"size"?: int}] = ...',
            "headers: dict[str",
            "str] = ...",
            "delay: int | float | None = None",
            "from_: str = ...",
            'kind: Literal["plain"] = ...) [restricted_write',
            "undone by recall(id=result.id)] Send an email at once.",
        ]
    )
    assert others == snapshot(
        ["mail.list() [read_only] List all folders.", "my_crm.update(*, id: Any, **others) [read_only]"]
    )


@promise("programs:bindings-call")
async def test_only_the_arguments_that_were_given_are_sent_under_their_own_names(imported):
    servers, client = imported(SEND, PING, OPEN)
    sent = []

    async def caller(tool, arguments):
        sent.append((tool, arguments))
        return len(sent)

    with pytest.raises(RuntimeError, match="register_tool_caller"):
        await servers.mail.list()
    client.register_tool_caller(caller)
    assert await servers.mail.send_email(to=["a"], subject="", from_="b", delay=None) == 1
    assert await servers.mail.list() == 2
    assert await servers.my_crm.update(id=1, **{"odd name": 2, "class": 3}) == 3
    assert sent == [
        ("mail.send-email", {"to": ["a"], "subject": "", "from": "b", "delay": None}),
        ("mail.list", {}),
        ("my crm.update", {"id": 1, "odd name": 2, "class": 3}),
    ]
    with pytest.raises(TypeError):
        await servers.mail.send_email(["a"], "subject")
    with pytest.raises(TypeError):
        await servers.mail.send_email(to=["a"], subject="", sender="b")


def tool_names(definitions):
    """The tool that each function calls, by module and function name."""
    return {(binding.module, binding.function): binding.tool for binding in bound(definitions)}


@promise("programs:bindings-call")
def test_signatures_say_what_may_be_left_out():
    signatures = signatures_of([SEND, OPEN])
    send, update = signatures["mail"]["send_email"], signatures["my_crm"]["update"]
    needed = [name for name, parameter in send.parameters.items() if parameter.default is inspect.Parameter.empty]
    assert needed == ["to", "subject"]
    assert {parameter.kind for parameter in send.parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert [parameter.kind for parameter in update.parameters.values()][-1] is inspect.Parameter.VAR_KEYWORD
    assert tool_names([SEND, OPEN]) == {
        ("mail", "send_email"): "mail.send-email",
        ("my_crm", "update"): "my crm.update",
    }


RIGHT = """
from sandbox_py.servers import mail, my_crm
from sandbox_py.servers.mail import list as folders

async def main() -> None:
    await mail.send_email(to=["a"], subject="b", attachments=[{"file-name": "c"}], priority=None)
    await my_crm.update(id=1, more=2)
    await folders()
"""
WRONG = """
from sandbox_py.servers import mail

async def main() -> None:
    await mail.send_email(to="a", subject="b")
    await mail.send_email(to=["a"])
    await mail.send_email(to=["a"], subject="b", priority="soon")
    await mail.send_email(to=["a"], subject="b", attachments=[{"size": 1}])
    await mail.send_email(to=["a"], subject="b", sender="c")
"""


@promise("programs:bindings")
def test_pyright_accepts_the_package_and_finds_wrong_calls(tmp_path):
    odd = [define(f"odd.{name}", fields(name, **{name: {"enum": [name, None]}}), description=name) for name in HOSTILE]
    package = render_package([SEND, PING, OPEN, *odd, define("mail.dict", fields(x={"type": "object"}))])
    package |= {"right.py": RIGHT, "wrong.py": WRONG}
    for path, source in package.items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source, encoding="utf-8")
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "include": ["sandbox_py", "right.py", "wrong.py"],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = (sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable)
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=150)
    found = [
        (diagnostic["file"].removeprefix(f"{tmp_path}/"), diagnostic["range"]["start"]["line"] + 1)
        for diagnostic in json.loads(checked.stdout)["generalDiagnostics"]
    ]
    assert found == [("wrong.py", line) for line in (5, 6, 7, 8, 9)], checked.stdout


class Unset:
    """Stands for the client's own mark."""


def run(source, calls):
    """Execute a source as the sandbox does, with a client that records what is called."""

    async def call(tool, arguments):
        calls.append((tool, arguments))

    tree = ast.parse(source)
    own = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "sandbox_py.client")]
    namespace = {"call": call, "UNSET": Unset}
    exec(compile(ast.Module(own, []), "<binding>", "exec"), namespace)
    (function,) = [node.name for node in own if isinstance(node, ast.AsyncFunctionDef)]
    return namespace[function]


@promise("programs:bindings-hostile")
@settings(max_examples=sized(150, 50), deadline=None)
@given(tools=st.dictionaries(st.tuples(NAMES, NAMES), st.tuples(SCHEMAS, NAMES), min_size=1, max_size=4))
async def test_whatever_a_server_says_each_source_is_one_function_that_makes_one_call(tools):
    definitions = [
        define(f"{provider}.{tool}", schema, description=text) for (provider, tool), (schema, text) in tools.items()
    ]
    names = tool_names(definitions)
    signatures = signatures_of(definitions)
    sources = bindings_of(definitions)
    assert sorted(names.values()) == sorted({definition.name for definition in definitions})
    assert describe(definitions).count("\n") == len(names) - 1
    for (module, function), tool in names.items():
        source = sources[module][function]
        assert all(
            name.isidentifier() and name.isascii() and not keyword.iskeyword(name) for name in (module, function)
        )
        *before, code = ast.parse(source).body
        assert isinstance(code, ast.AsyncFunctionDef)
        assert code.name == function
        assert all(isinstance(node, ast.ImportFrom) or is_record(node) for node in before)
        assert {node.module for node in before if isinstance(node, ast.ImportFrom)} == {"typing", "sandbox_py.client"}
        document, returned = code.body
        assert isinstance(document.value.value, str)
        assert isinstance(returned, ast.Return)
        calls = []
        parameters = signatures[module][function].parameters
        named = [
            parameter.name for parameter in parameters.values() if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        ]
        await run(source, calls)(**{name: index for index, name in enumerate(named)})
        ((called, arguments),) = calls
        assert called == tool
        assert sorted(arguments.values()) == list(range(len(named)))


def is_record(node):
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.func.id == "TypedDict"


@promise("programs:bindings-hostile")
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_still_readable_where_it_may_be(text):
    tool = define("a.b", fields(x={"type": "string", "description": text}), description=f"first {text} last")
    (function,) = [
        node for node in ast.parse(bindings_of([tool])["a"]["b"]).body if isinstance(node, ast.AsyncFunctionDef)
    ]
    document = ast.get_docstring(function)
    assert document.startswith("first")
    assert document.endswith("Safety: read_only.")
    assert not {"\x00", "\u202e", "\r"} & set(document)


@promise("programs:bindings-hostile")
def test_two_tools_that_would_share_a_name_keep_apart_and_a_fine_name_is_kept():
    names = tool_names([define("a.b-c"), define("a.b_c"), define("a.b c"), define("A.b"), define("print.x")])
    assert names["a", "b_c"] == "a.b_c"
    assert names["print_", "x"] == "print.x"
    assert len(names) == 5
    assert names == dict(zip(names, names.values(), strict=True))


@promise("programs:bindings-bounded")
def test_a_tool_with_far_too_much_to_say_is_written_briefly_and_still_works():
    many = {f"field_{number}": {"type": "string", "description": "x" * 500} for number in range(150)}
    endless = {f"field_{number}": {"type": "string"} for number in range(5000)}
    deep = {"type": "object"}
    for _ in range(900):
        deep = {"anyOf": [deep, deep], "properties": {"a": deep}}
    tools = [define("a.many", fields(**many)), define("a.endless", fields(**endless)), define("a.deep", fields(x=deep))]
    sources = bindings_of(tools)["a"]
    assert "field_149: Any" in sources["many"] or "**others: Any" in sources["many"]
    assert "**others: Any" in sources["endless"]
    assert max(map(len, sources.values())) < 12_001


@promise("programs:bindings-bounded")
def test_two_hundred_tools_of_any_length_fit_into_one_frame():
    wordy = {f"名前{number}": {"type": "string", "description": "長い" * 200} for number in range(30)}
    sources = bindings_of(
        [define(f"p{number % 7}.t{number}", fields(**wordy), description="長い" * 1000) for number in range(200)]
    )
    assert len(json.dumps(sources)) < 950_000


@promise("programs:bindings-bounded")
def test_the_lines_for_a_model_are_bounded_and_say_how_many_are_left_out():
    tools = [define(f"p.t{number}", fields(x={"type": "string"}), description="word " * 300) for number in range(300)]
    text = describe(tools, limit=5000)
    assert len(text) <= 5000
    shown = text.count("\n")
    assert text.endswith(f"and {300 - shown} more; search_tools finds them")
    assert len(describe(tools, limit=10)) <= 10
