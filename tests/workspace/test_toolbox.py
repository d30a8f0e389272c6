"""Files and shell in the toolbox: who sees them, what is declared of them, which commands the lists let through."""

import json

import pytest

from backstay.errors import ToolboxInvalid
from backstay.policies.command_lists import CommandLists
from backstay.tools.tool import Safety
from tests.docs.blocks import names, table
from tests.requirements import promise
from toolbox.configuration.load import load
from toolbox.toolbox import open_toolbox


class NoHost:
    """Nothing here is ever called."""

    reason = None
    root = ""


async def opened(path, toolbox):
    path.write_text(json.dumps(toolbox), encoding="utf-8")
    async with open_toolbox(path, environment={}, home=path.parent, workspaces=NoHost()) as tools:
        both = frozenset({"fs", "shell"})
        return await tools.catalog("ana"), await tools.catalog("ana", builtin=both)


@promise("workspaces:opt-in")
async def test_a_run_that_did_not_ask_for_files_or_shell_sees_none(tmp_path):
    without, with_both = await opened(tmp_path / "toolbox.json", {})
    assert without.definitions == {}
    assert {"fs.read_file", "fs.edit_file", "shell.run"} <= with_both.definitions.keys()


@promise("workspaces:declared")
async def test_every_writing_tool_is_known_to_be_undone_and_checked(tmp_path):
    _, catalog = await opened(tmp_path / "toolbox.json", {})
    assert catalog.problems == []
    for name, definition in catalog.definitions.items():
        if definition.tool.safety is Safety.READ_ONLY or definition.hidden:
            continue
        undo, by_id, verify = (
            catalog.undo_of(definition),
            catalog.undo_by_effect_id_of(definition),
            catalog.verify_of(definition),
        )
        assert undo is not None, name
        assert by_id is not None, name
        assert verify is not None, name
        assert undo.name == by_id.name == f"{definition.provider}.restore"
        assert definition.declaration.idempotent
    safeties = {name: definition.tool.safety for name, definition in catalog.definitions.items()}
    assert safeties["shell.run"] is Safety.RESTRICTED_WRITE
    assert safeties["fs.write_file"] is Safety.WRITE_SAFE
    assert safeties["fs.search"] is Safety.READ_ONLY


@promise("workspaces:declared")
async def test_the_tools_behind_the_undo_are_found_by_nobody(tmp_path):
    _, catalog = await opened(tmp_path / "toolbox.json", {})
    for query in ("restore", "fs.restore", "fs__restore", "shell.outcome", "bring back files", ""):
        assert not {hit.tool for hit in catalog.search(query, limit=50)} & {"fs.restore", "fs.outcome", "shell.restore"}
    assert "fs__restore" not in catalog.by_function


@promise("workspaces:granted")
async def test_users_get_only_what_they_are_granted_and_operators_may_raise_a_class(tmp_path):
    toolbox = {
        "users": {"ana": {"providers": ["fs"]}},
        "providers": {"fs": {"tools": {"write_file": {"safety": "restricted_write"}}}},
    }
    _, catalog = await opened(tmp_path / "toolbox.json", toolbox)
    assert {definition.provider for definition in catalog.definitions.values()} == {"fs"}
    assert catalog.definitions["fs.write_file"].tool.safety is Safety.RESTRICTED_WRITE
    assert catalog.undo_of(catalog.definitions["fs.write_file"]) is not None


@promise("workspaces:page")
async def test_the_page_names_every_tool_and_its_class(tmp_path):
    _, catalog = await opened(tmp_path / "toolbox.json", {})
    rows = table("docs/workspace.md", "## What a model can call")
    said = {names(tool)[0]: safety for tool, safety, _ in rows}
    assert said == {
        name: definition.tool.safety.value for name, definition in catalog.definitions.items() if not definition.hidden
    }


@promise("workspaces:granted")
@pytest.mark.parametrize(
    ("toolbox", "said"),
    [
        ({"mcpServers": {"fs": {"command": "x"}}}, "belongs to the engine"),
        ({"workspace": {"deny": "rm"}}, "workspace.deny"),
        ({"workspace": {"forbid": []}}, "workspace.forbid"),
    ],
)
def test_a_toolbox_file_that_is_wrong_about_workspaces_is_refused(toolbox, said, tmp_path):
    (tmp_path / "toolbox.json").write_text(json.dumps(toolbox), encoding="utf-8")
    with pytest.raises(ToolboxInvalid, match=said):
        load(tmp_path / "toolbox.json", {})


@promise("workspaces:lists")
@pytest.mark.parametrize(
    "command",
    ["rm -rf x", "/bin/rm x", "ls; rm x", "ls && rm x", "ls | xargs rm", "A=1 rm x", "if true; then rm x; fi",
     "find . -exec rm {} +", "(rm x)", "ls\nrm x", "sudo rm x", "git push origin", "env git push"],
)  # fmt: skip
def test_a_denied_command_is_found_wherever_it_stands(command):
    assert "not allowed" in (CommandLists(deny=("rm", "git push")).refusal(command) or "")


@promise("workspaces:lists")
@pytest.mark.parametrize("command", ["ls -la", "git pull", "echo 'rm x' > a", "grep rmdir a", "FOO=rm ls"])
def test_what_is_not_denied_passes(command):
    assert CommandLists(deny=("rm", "git push")).refusal(command) is None


@promise("workspaces:lists")
@pytest.mark.parametrize(
    ("command", "passes"),
    [
        ("ls -la | grep x > out", True),
        ("A=1 ls 2>&1 && python3 a.py", True),
        ("while true; do ls; done", True),
        ("curl x", False),
        ("ls; curl x", False),
        ("ls $(curl x)", False),
        ("ls `curl x`", False),
        ("ls <(curl x)", False),
        ("$SHELL -c ls", False),
        ("'unclosed", False),
        ("pythonx a", False),
    ],
)
def test_with_a_list_of_allowed_commands_all_others_are_refused(command, passes):
    assert (CommandLists(allow=("ls", "grep", "python3", "true"), deny=()).refusal(command) is None) is passes


@promise("workspaces:denied-before")
@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("rm -rf /", True),
        ("cd /tmp && rm -rf / --no-preserve-root", True),
        ("docker run x", True),
        ("git log | xargs ssh host", True),
        ("rm -rf build", False),
        ("rm -rf /workspace/build", False),
        ("cat docker/Dockerfile ~/.ssh/config", False),
    ],
)
async def test_without_a_list_a_few_commands_are_denied_and_an_empty_one_denies_none(command, refused, tmp_path):
    _, plain = await opened(tmp_path / "toolbox.json", {})
    _, emptied = await opened(tmp_path / "toolbox.json", {"workspace": {"deny": []}})
    said = [catalog.definitions["shell.run"].refusal({"command": command}) for catalog in (plain, emptied)]
    assert [line is not None for line in said] == [refused, False]
    assert plain.definitions["fs.read_file"].refusal({"path": "docker"}) is None
