import asyncio
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from backstay.errors import SettingsInvalid, ToolboxInvalid, ToolNotFound
from backstay.policies.policy import Policy
from tests.requirements import promise
from toolbox import ToolboxBuilder
from toolbox.manifest.files import folder_of, read_manifest

HOUSE = Path(__file__).resolve().parents[2]
SECRET = "correct-horse-battery-staple"
SEND = {
    "name": "send-email",
    "description": "Send an e-mail at once.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "to": {"type": "array", "items": {"type": "string"}, "description": "Who gets it."},
            "priority": {"enum": ["low", "high", None], "default": "low"},
            "token": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "client_token": {"type": "string"},
        },
        "required": ["to", "client_token"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object", "properties": {"id": {"type": "string"}}},
}
DECLARED = {
    "safety": "write_safe",
    "idempotent": True,
    "idempotency_argument": "client_token",
    "undo": {"tool": "recall", "arguments": {"id": "{{ result.id }}"}},
    "verify": {
        "tool": "sent",
        "arguments": {"token": "{{ effect.id }}"},
        "applied_if": "{{ result.found }}",
        "verify_is_final": True,
    },
}


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def text_of(folder):
    return "".join(
        f"{path}\n{path.read_text(encoding='utf-8')}" for path in sorted(folder.rglob("*")) if path.is_file()
    )


def configured(raw):
    return {
        "mcpServers": {"mail": raw("mail", tools=[SEND, tool("recall"), tool("sent")])},
        "providers": {"mail": {"tools": {"send-email": DECLARED, "sent": {"safety": "read_only"}}}},
    }


@promise("tools:manifest")
async def test_a_manifest_lies_in_files_by_provider_and_tool(opened, tmp_path, raw):
    async with opened(tmp_path, configured(raw)) as toolbox:
        done = await ToolboxBuilder(toolbox, tmp_path).refresh_manifest(user_id="ana")
        catalog = await toolbox.catalog("ana")
    assert done.folder == tmp_path / "toolbox" / "ana"
    assert files(done.folder.resolve()) == snapshot(
        [
            "manifest.json",
            "providers.json",
            "providers/mail/provider.json",
            "providers/mail/tools/recall.json",
            "providers/mail/tools/send-email.json",
            "providers/mail/tools/sent.json",
            "sandbox_py/__init__.py",
            "sandbox_py/client.py",
            "sandbox_py/servers/__init__.py",
            "sandbox_py/servers/mail/__init__.py",
            "sandbox_py/servers/mail/recall.py",
            "sandbox_py/servers/mail/send_email.py",
            "sandbox_py/servers/mail/sent.py",
        ]
    )
    head = json.loads((done.folder / "manifest.json").read_bytes())
    assert head.pop("generated")
    assert head == {
        "user_id": "ana",
        "version": catalog.version,
        "problems": [],
        "counts": {"providers": 1, "available": 1, "tools": 3, "py_files": 7},
        "providers": ["mail"],
    }
    provider = json.loads((done.folder / "providers/mail/provider.json").read_bytes())
    assert provider.pop("tool_files")["send-email"] == "providers/mail/tools/send-email.json"
    assert provider == json.loads((done.folder / "providers.json").read_bytes())["mail"]
    assert provider == {
        "name": "mail",
        "kind": "mcp",
        "granted": True,
        "available": True,
        "reason": None,
        "tools": 3,
        "safety": {"read_only": 1, "write_safe": 1, "restricted_write": 1},
        "path": "providers/mail/provider.json",
    }


@promise("tools:manifest")
async def test_the_file_of_a_tool_says_all_of_it(opened, tmp_path, raw):
    async with opened(tmp_path, configured(raw)) as toolbox:
        done = await ToolboxBuilder(toolbox, tmp_path).refresh_manifest()
        (hit,) = (await toolbox.catalog("singleton")).search("mail.send-email", limit=1)
        definition = (await toolbox.catalog("singleton")).definitions["mail.send-email"]
    said = json.loads((done.folder / hit.path).read_bytes())
    assert (said.pop("parameters"), said.pop("definition")) == (definition.parameters, definition.tool.definition)
    assert said == snapshot(
        {
            "name": "mail.send-email",
            "provider": "mail",
            "description": "Send an e-mail at once.",
            "output_schema": {"type": "object", "properties": {"id": {"type": "string"}}},
            "safety": "write_safe",
            "undo": "recall(id=result.id)",
            "undo_tool": "mail.recall",
            "verify": "sent(token=effect.id), applied if result.found",
            "verify_is_final": True,
            "idempotent": True,
            "serial": False,
            "denied": None,
            "path": "providers/mail/tools/send-email.json",
            "mcp_tool_name": "send-email",
            "function": "mail__send-email",
            "binding": "mail.send_email",
            "arguments": [
                {
                    "argument": "to",
                    "name": "to",
                    "type": "list[str]",
                    "required": True,
                    "default": None,
                    "description": "Who gets it.",
                },
                {
                    "argument": "priority",
                    "name": "priority",
                    "type": 'Literal["low", "high"] | None',
                    "required": False,
                    "default": '"low"',
                    "description": "",
                },
                {
                    "argument": "token",
                    "name": "token",
                    "type": "str | None",
                    "required": False,
                    "default": "None",
                    "description": "",
                },
            ],
            "others": False,
        }
    )


@promise("tools:manifest")
async def test_what_is_read_back_is_what_was_written(opened, tmp_path, raw):
    async with opened(tmp_path, configured(raw)) as toolbox:
        done = await ToolboxBuilder(toolbox, tmp_path).refresh_manifest()
    assert read_manifest(done.folder) == done.manifest


@promise("tools:manifest-atomic")
async def test_only_a_change_is_written_and_old_versions_go(opened, tmp_path, raw):
    entry = raw(tools=[tool("a")])
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        builder = ToolboxBuilder(toolbox, tmp_path)
        first = await builder.refresh_manifest()
        place = first.folder.resolve()
        before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
        again = await builder.refresh_manifest()
        assert (first.changed, again.changed) == (True, False)
        assert again.folder.resolve() == place
        assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
        seen = [place]
        for number in range(3):
            raw(tools=[tool("a", description=f"number {number}")])
            changed = await builder.refresh_manifest()
            assert changed.changed
            seen.append(changed.folder.resolve())
            said = json.loads((changed.folder / "providers/raw/tools/a.json").read_bytes())
            assert said["description"] == f"number {number}"
    kept = {path for path in place.parent.iterdir() if path.is_dir()}
    assert kept == set(seen[-2:])


@promise("tools:manifest-atomic")
async def test_a_manifest_that_was_damaged_is_written_anew(opened, tmp_path, raw):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("a")])}}) as toolbox:
        builder = ToolboxBuilder(toolbox, tmp_path)
        done = await builder.refresh_manifest()
        (done.folder / "providers/raw/tools/a.json").unlink()
        with pytest.raises(ToolboxInvalid, match=r"a\.json"):
            read_manifest(done.folder)
        assert (await builder.refresh_manifest()).changed
        (done.folder / "manifest.json").write_text("[]", encoding="utf-8")
        assert (await builder.refresh_manifest()).changed
        assert read_manifest(done.folder) == done.manifest


@promise("tools:manifest-safe")
async def test_a_manifest_that_leads_out_of_its_folder_is_not_followed(opened, tmp_path, raw):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("a")])}}) as toolbox:
        done = await ToolboxBuilder(toolbox, tmp_path).refresh_manifest()
    (tmp_path / "outside.json").write_text('{"tool_files": {}}', encoding="utf-8")
    listed = json.loads((done.folder / "providers.json").read_bytes())
    listed["raw"]["path"] = "../../../../outside.json"
    (done.folder / "providers.json").write_text(json.dumps(listed), encoding="utf-8")
    with pytest.raises(ToolboxInvalid, match="points outside"):
        read_manifest(done.folder)


HOSTILE_USERS = (
    *(
        "ana",
        "Ana",
        "ana/Ana",
        "a b",
        "a_b",
        "a/b",
        "../../etc",
        "..",
        ".",
        "",
        "/",
        "/etc/passwd",
        ".versions",
        "a" * 300,
    ),
    *(
        "a" * 301,
        "\x00",
        "\n",
        "名前",
        "名字",
        "a.b",
        "CON",
        "con",
        "-rf",
        "~",
        "\u202eana",
        "\ud800",
        "ana.0123456789abcdef",
    ),
)


@promise("tools:manifest-users")
def test_every_user_has_a_folder_of_their_own_whatever_they_are_called(tmp_path):
    folders = {folder_of(tmp_path, user) for user in HOSTILE_USERS}
    assert len({str(folder).casefold() for folder in folders}) == len(HOSTILE_USERS)
    for folder in folders:
        assert folder.parent == tmp_path / "toolbox"
        assert folder.name.isascii()
        assert 0 < len(folder.name) <= 64
        assert not folder.name.startswith(".")
        assert folder.name.replace("_", "").replace("-", "").replace(".", "").isalnum() or folder.name == "_"


@promise("tools:manifest-users")
@pytest.mark.parametrize("user", ["../../escape", "\ud800", ""])
async def test_the_manifest_of_a_hostile_user_stays_beneath_the_home(opened, tmp_path, raw, user):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("a")])}}) as toolbox:
        done = await ToolboxBuilder(toolbox, tmp_path / "home").refresh_manifest(user_id=user)
    assert done.folder.resolve().is_relative_to(tmp_path / "home" / "toolbox")
    assert read_manifest(done.folder).user_id == user


@promise("tools:manifest-alike")
async def test_providers_and_tools_whose_names_look_alike_have_files_of_their_own(opened, tmp_path, raw):
    configuration = {
        "mcpServers": {
            "my crm": raw("one", tools=[tool("a" * 60 + "/b"), tool("x")]),
            "my_crm": raw("two", tools=[tool("a" * 60 + ".b"), tool("y"), tool("../../../../up")]),
        }
    }
    async with opened(tmp_path, configuration) as toolbox:
        done = await ToolboxBuilder(toolbox, tmp_path).refresh_manifest()
    paths = [entry.path for entry in (*done.manifest.tools.values(), *done.manifest.providers.values())]
    assert len(set(paths)) == len(paths) == 7
    for path in paths:
        assert (done.folder / path).resolve().is_relative_to(done.folder.resolve() / "providers")
    assert read_manifest(done.folder) == done.manifest


@promise("tools:manifest-secrets")
async def test_no_secret_of_the_toolbox_stands_in_a_manifest(opened, tmp_path, raw, web):
    """The server says in every place it has what it was given; the operator wrote it in every place there is."""
    quoted = tool(
        f"with-{SECRET}",
        description=f"Uses {SECRET}.",
        inputSchema={"type": "object", "properties": {"x": {"default": SECRET, "description": f"as {SECRET}"}}},
    )
    talking = tool(
        "talking",
        description=f"Uses {SECRET} and AKIAQ3EGRZ7TXVHW2MNP.",
        inputSchema={
            "type": "object",
            "properties": {"token": {"type": "string", "default": SECRET}, SECRET: {"enum": [SECRET, "other"]}},
            "required": [SECRET],
        },
        outputSchema={"type": "object", "description": SECRET},
    )
    told = raw("told", tools=[quoted, talking])
    configuration = {
        "mcpServers": {
            "told": told | {"args": [*told["args"], SECRET], "env": {"API_KEY": SECRET, "OTHER": "${PLAIN}"}},
            "web": {"url": f"{web.url}/401?key={SECRET}", "headers": {"Authorization": f"Bearer {SECRET}"}},
            "off": {"command": SECRET, "env": {"API_KEY": SECRET}, "disabled": True},
        },
        "providers": {"told": {"tools": {"talking": {"undo": {"tool": "talking", "arguments": {"token": SECRET}}}}}},
    }
    async with opened(tmp_path, configuration, PLAIN="an-ordinary-looking-value") as toolbox:
        done = await ToolboxBuilder(toolbox, tmp_path / "home").refresh_manifest()
    text = text_of(done.folder.resolve())
    for secret in (SECRET, "AKIAQ3EGRZ7TXVHW2MNP", "an-ordinary-looking-value"):
        assert secret not in text
    assert [tool.name for tool in done.manifest.of("told")] == ["told.talking"]
    assert done.manifest.tools["told.talking"].description == "Uses [REDACTED:known] and [REDACTED:aws_key]."
    assert "its name holds a secret" in " ".join(done.manifest.problems)


@promise("tools:reasons")
async def test_what_cannot_be_used_says_why(opened, tmp_path, raw):
    configuration = {
        "mcpServers": {
            "up": raw("up", tools=[tool("read"), tool("delete_all")]),
            "down": raw("down", exit=True),
            "off": {"command": "off", "disabled": True},
            "bank": raw("bank", tools=[tool("pay")]),
        },
        "users": {"*": {"providers": ["up", "down", "off"]}, "ana": {"providers": ["up", "bank"]}},
    }
    policy = Policy.admit({"deny": ["*.delete_*", {"tool": "up.read", "when": {"x": {"gt": 1}}}]})
    async with opened(tmp_path, configuration) as toolbox:
        manifest = (await ToolboxBuilder(toolbox, tmp_path, policy=policy).refresh_manifest("bo")).manifest
    reasons = {name: provider.reason for name, provider in manifest.providers.items()}
    assert "exited before it answered" in reasons.pop("down")
    assert reasons == {
        "up": None,
        "off": "not connected: disabled in toolbox.json",
        "bank": "denied: users.*.providers does not name it in toolbox.json",
    }
    assert [provider.granted for provider in manifest.providers.values()] == [False, True, False, True]
    assert {name: manifest.reason(tool) for name, tool in manifest.tools.items()} == {
        "up.delete_all": "denied: deny[0]: *.delete_*",
        "up.read": None,
    }
    with pytest.raises(ToolNotFound, match="denied"):
        manifest.find("bank.pay")


@promise("tools:closest")
async def test_an_unknown_name_is_answered_with_what_comes_close(opened, tmp_path, raw):
    configuration = {
        "mcpServers": {"a": raw("a", tools=[tool("send_mail"), tool("x")]), "b": raw("b", tools=[tool("x")])}
    }
    async with opened(tmp_path, configuration) as toolbox:
        manifest = await ToolboxBuilder(toolbox, tmp_path).manifest()
    assert {manifest.find(name).name for name in ("a.send_mail", "a__send_mail", "send_mail")} == {"a.send_mail"}
    with pytest.raises(ToolNotFound, match=r"the closest are a\.send_mail"):
        manifest.find("send_email")
    with pytest.raises(ToolNotFound, match=r"several providers: a\.x, b\.x"):
        manifest.find("x")


@promise("tools:manifest-place")
async def test_a_place_that_cannot_be_written_is_named(opened, tmp_path, raw):
    (tmp_path / "home" / "toolbox" / "singleton").mkdir(parents=True)
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("a")])}}) as toolbox:
        with pytest.raises(SettingsInvalid, match=r"BACKSTAY_HOME.*singleton"):
            await ToolboxBuilder(toolbox, tmp_path / "home").refresh_manifest()


WRITER = """
import sys
from pathlib import Path
from backstay.policies.policy import Policy
from backstay.redaction.redactor import Redactor
from toolbox.bindings.package import render_package
from toolbox.catalog.catalog import build
from toolbox.providers.declaration import Declaration
from toolbox.catalog.definition import define
from toolbox.providers.listing import ListedTool
from toolbox.manifest.files import keep
from toolbox.manifest.builder import make_manifest
from dataclasses import replace

for number, line in enumerate(sys.stdin):
    tools = [ListedTool(name=f"t{n}", description=f"version {number} {line.strip()}") for n in range(40)]
    catalog = build([define("raw", one, Declaration(), trusted=False, serial=False) for one in tools], [], {})
    catalog = replace(catalog, kinds={"raw": "mcp"})
    manifest, definitions = make_manifest("ana", catalog, policy=Policy(), redactor=Redactor(()))
    print("begins", flush=True)
    keep(manifest, render_package(definitions), Path(sys.argv[1]))
    print("done", flush=True)
"""


class Writer:
    """A process that writes one version of a manifest for each line it is sent."""

    def __init__(self, process):
        self.process = process

    @classmethod
    async def start(cls, place):
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable,
                *("-c", WRITER, str(place)),
                env={"PATH": os.defpath, "PYTHONPATH": str(HOUSE)},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        )

    async def begin(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        assert await asyncio.wait_for(self.process.stdout.readline(), 150) == b"begins\n"

    async def kill(self):
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


def only_description(place):
    manifest = read_manifest(place)
    assert len(manifest.tools) == 40
    (said,) = {tool.description for tool in manifest.tools.values()}
    return said


@promise("tools:manifest-atomic")
async def test_a_reader_sees_one_version_whole_while_others_are_written(tmp_path):
    place = tmp_path / "toolbox" / "ana"
    writer = await Writer.start(place)
    try:
        seen = set()
        for line in ("first", "second", "third"):
            await writer.begin(line)
            done = asyncio.create_task(writer.process.stdout.readline())
            async with asyncio.timeout(150):
                while not done.done():
                    if place.exists():
                        seen.add(await asyncio.to_thread(only_description, place))
                    await asyncio.sleep(0)
            seen.add(only_description(place))
    finally:
        await writer.kill()
    assert seen == {"version 0 first", "version 1 second", "version 2 third"}


@promise("tools:manifest-atomic")
@pytest.mark.thorough
async def test_a_writer_killed_midway_leaves_the_old_manifest_and_the_next_cleans_up(tmp_path):
    place = tmp_path / "toolbox" / "ana"
    versions = place.parent / ".versions" / "ana"
    writer = await Writer.start(place)
    await writer.begin("old")
    assert await asyncio.wait_for(writer.process.stdout.readline(), 150) == b"done\n"
    old = place.resolve()
    await writer.begin("lost")
    async with asyncio.timeout(150):
        while not any(path.is_dir() and path != old for path in versions.iterdir()):
            await asyncio.sleep(0)
    await writer.kill()
    assert only_description(place) in {"version 0 old", "version 1 lost"}
    writer = await Writer.start(place)
    try:
        await writer.begin("new")
        assert await asyncio.wait_for(writer.process.stdout.readline(), 150) == b"done\n"
    finally:
        await writer.kill()
    assert only_description(place) == "version 0 new"
    assert place.resolve() in set(versions.iterdir())
    assert len([path for path in versions.iterdir() if path.is_dir()]) == 2


HOSTILE_TOOLS = [
    tool(
        name,
        description='"""\n\\',
        inputSchema={
            "type": "object",
            "properties": {
                name: {"enum": [name, None]},
                "nested": {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "number"}}}},
                "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}], "default": 3},
            },
            "required": [name],
        },
    )
    for name in ('x"): pass', "class", "call", "a-b", "名前", "list", "__init__", "a\\", "{{ 7 * 7 }}")
]


@promise("programs:bindings")
@pytest.mark.thorough
async def test_the_bindings_on_disk_are_imported_and_strictly_typed(opened, tmp_path, raw, monkeypatch):
    configuration = configured(raw)
    configuration["mcpServers"]["odd one"] = raw("odd", tools=HOSTILE_TOOLS)
    async with opened(tmp_path, configuration) as toolbox:
        done = await ToolboxBuilder(toolbox, tmp_path).refresh_manifest()
    monkeypatch.syspath_prepend(done.folder)
    try:
        servers = importlib.import_module("sandbox_py.servers")
        client = importlib.import_module("sandbox_py.client")
        sent = []

        async def caller(name, arguments):
            sent.append((name, dict(arguments)))

        client.register_tool_caller(caller)
        await servers.mail.send_email(to=["ana"])
        for item in done.manifest.of("odd one"):
            module, _, function = item.binding.partition(".")
            await getattr(getattr(servers, module), function)(**{item.arguments[0].name: None})
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "sandbox_py"]:
            del sys.modules[name]
    assert sent == [
        ("mail.send-email", {"to": ["ana"]}),
        *((f"odd one.{item.mcp_tool_name}", {item.mcp_tool_name: None}) for item in done.manifest.of("odd one")),
    ]
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "include": ["sandbox_py"]}
    (done.folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = (sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable)
    checked = await asyncio.to_thread(
        subprocess.run, command, cwd=done.folder.resolve(), capture_output=True, text=True, check=False, timeout=100
    )
    assert json.loads(checked.stdout)["generalDiagnostics"] == []
