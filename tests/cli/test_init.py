"""The first commands of a newcomer: init, toolbox add, import and propose."""

import json
import stat
import sys

import pytest

from tests.cli.commands import BACKSTAY, at_terminal, bare, forked
from tests.e2e.scripted_server import SERVER, ScriptedServer, reads, writes
from tests.requirements import promise
from toolbox.configuration.commented import read

TOKEN = "made-up-token-of-a-tracker"


@pytest.fixture
def variables(tmp_path):
    return bare(XDG_STATE_HOME=str(tmp_path / "state"), PYTHONUTF8="1")


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "mine"
    place.mkdir()
    return place


@pytest.fixture
def run(nursery, variables, folder):
    async def run(*arguments, **more):
        return await forked(nursery, *arguments, environment={**variables, **more}, folder=folder)

    return run


@pytest.fixture
def person(nursery, variables, folder):
    def person(*arguments):
        return at_terminal(*BACKSTAY, *arguments, environment=variables, folder=folder, nursery=nursery)

    return person


@pytest.fixture
def tracker(tmp_path):
    """Return the file of another host, whose server leaves a mark when it is started."""
    script = ScriptedServer(
        tmp_path / "tracker.json",
        [reads("get_issue"), reads("delete_all"), writes("list_labels"), writes("create_label"), writes("close_issue")],
    )
    script.write()
    mark = f"open({str(tmp_path / 'mark')!r}, 'a').write('started ')"
    serve = f"import runpy, sys; sys.argv[0:2] = [{str(SERVER)!r}]; runpy.run_path(sys.argv[0], run_name='__main__')"
    start = f"{mark}; {serve}"
    entry = {"command": sys.executable, "args": ["-c", start, "-", str(script.path)], "env": {"TRACKER_TOKEN": TOKEN}}
    file = tmp_path / "claude_desktop_config.json"
    file.write_text(json.dumps({"mcpServers": {"tracker": entry}}), encoding="utf-8")
    return file


def toolbox(folder):
    return read((folder / "toolbox.json").read_text(encoding="utf-8"))


def was_started(folder):
    return (folder.parent / "mark").exists()


@promise("clients:init")
async def test_init_writes_an_example_that_works_and_keeps_what_is_there(run, folder):
    first = await run("init")
    listed = await run("tools", "list", "--output", "json")
    (folder / "policy.yaml").write_text("deny: ['*.delete_*']\n", encoding="utf-8")
    second = await run("init", "--output", "json")

    assert (first.code, second.code) == (0, 0), first.err + second.err
    kept = [{"file": name, "written": False} for name in ("toolbox.json", "policy.yaml", ".env.example")]
    assert json.loads(second.out) == {"files": kept, "servers": []}
    assert {path.name for path in folder.iterdir()} >= {
        ".env.example",
        "example_server.py",
        "policy.yaml",
        "toolbox.json",
    }
    rows = {row["tool"]: (row["safety"], row["undo"], row["reason"]) for row in json.loads(listed.out)}
    assert rows == {
        "notes.add_note": ("write_safe", "delete_note(id=result.id)", None),
        "notes.delete_note": ("restricted_write", None, None),
        "notes.list_notes": ("read_only", None, None),
    }
    assert "backstay dev --scripted" in first.err
    assert "kept: policy.yaml" in second.err
    assert (folder / "policy.yaml").read_text(encoding="utf-8") == "deny: ['*.delete_*']\n"


@promise("clients:init")
@pytest.mark.parametrize("name", ["toolbox.json", "policy.yaml", ".env", ".backstay"])
async def test_init_and_add_refuse_a_folder_that_came_with_files(run, folder, name):
    (folder / name).symlink_to(folder.parent / "elsewhere")
    for arguments in (("init",), ("toolbox", "add", "a", "--yes", "--", "x"), ("toolbox", "import", "f")):
        done = await run(*arguments)
        assert done.code == 2
        assert "not trusted" in done.err
        assert "backstay trust" in done.err
    assert [path.name for path in folder.iterdir()] == [name]


@promise("clients:init")
async def test_init_names_no_server_that_came_with_the_folder(run, folder):
    (folder / "example_server.py").write_text("open('mark', 'w')", encoding="utf-8")
    done = await run("init")

    assert done.code == 2
    assert "example_server.py: is there already, and toolbox.json would start it" in done.err
    assert [path.name for path in folder.iterdir()] == ["example_server.py"]


@promise("clients:init")
@pytest.mark.thorough
async def test_modules_that_lie_in_the_folder_are_not_imported_by_the_example(run, folder):
    for name in ("json.py", "mcp.py", "uuid.py"):
        (folder / name).write_text("open('mark', 'w')", encoding="utf-8")
    await run("init")
    listed = await run("tools", "list")

    assert "notes.add_note" in listed.out
    assert not (folder / "mark").exists()


@promise("clients:init")
async def test_init_trusts_no_folder_in_which_everybody_may_write(run, folder):
    folder.chmod(0o777)
    done = await run("init")

    assert done.code == 2
    assert "others may write in it" in done.err
    assert list(folder.iterdir()) == []


@promise("clients:init")
async def test_init_says_that_another_file_would_count(run, folder):
    done = await run("init", BACKSTAY_TOOLBOX="/etc/toolbox.json")

    assert (done.code, list(folder.iterdir())) == (2, [])
    assert "BACKSTAY_TOOLBOX: set to /etc/toolbox.json" in done.err


@promise("clients:import")
@pytest.mark.parametrize("arguments", [("init", "--import"), ("toolbox", "import")])
async def test_where_nobody_can_be_asked_nothing_is_started(run, folder, tracker, arguments):
    done = await run(*arguments, str(tracker))

    assert done.code == 2
    assert "--yes: nobody can be asked here" in done.err
    assert "tracker" not in str(toolbox(folder) if (folder / "toolbox.json").exists() else "")
    assert not was_started(folder)


@promise("clients:import")
@pytest.mark.thorough
async def test_yes_takes_over_and_classes_everything_and_no_token_stays_in_toolbox_json(run, folder, tracker):
    named = json.loads(tracker.read_text(encoding="utf-8"))
    named["mcpServers"]["odd"] = {"command": 5}
    tracker.write_text(json.dumps(named), encoding="utf-8")
    done = await run("init", "--import", str(tracker), "--yes")
    listed = await run("tools", "list", "--output", "json")

    assert (done.code, done.out) == (0, "tracker\n"), done.err
    assert "left out: mcpServers.odd.command" in done.err
    text = (folder / "toolbox.json").read_text(encoding="utf-8")
    assert TOKEN not in text + done.err
    assert text.startswith("// The tools of your runs.")
    assert toolbox(folder)["providers"]["tracker"]["tools"] == {
        "list_labels": {"safety": "read_only"},
        "get_issue": {"safety": "read_only"},
        "create_label": {"safety": "write_safe"},
    }
    env = folder / ".env"
    assert env.read_text(encoding="utf-8") == f"TRACKER_TOKEN='{TOKEN}'\n"
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    assert "TRACKER_TOKEN=\n" in (folder / ".env.example").read_text(encoding="utf-8")
    classes = {row["tool"]: row["safety"] for row in json.loads(listed.out)}
    assert classes["tracker.get_issue"] == "read_only"
    assert classes["tracker.delete_all"] == classes["tracker.close_issue"] == "restricted_write"


@promise("clients:import")
async def test_a_person_sees_how_a_server_is_started_and_accepts_each_group(person, folder, tracker):
    async with person("init", "--import", str(tracker)) as terminal:
        shown = await terminal.shows("[n]o?")
        before = was_started(folder)
        terminal.type("y")
        by_name = await terminal.shows("declare read_only? [y]es, [n]o")
        terminal.type("n")
        by_server = await terminal.shows("declare read_only? [y]es, [n]o")
        terminal.type("y")
        adding = await terminal.shows("declare write_safe? [y]es, [n]o")
        terminal.type("n")
        code, _ = await terminal.ended()

    assert f"starts    {sys.executable} -c " in shown
    assert "TRACKER_TOKEN=${TRACKER_TOKEN}" in shown
    assert TOKEN not in shown
    assert (before, was_started(folder), code) == (False, True, 0)
    assert "read_only: 1 tool, by name alone; policy for that class: allow" in by_name
    assert "list_labels" in by_name
    assert "read_only: 1 tool, as the server says; policy for that class: allow" in by_server
    assert "create_label" in adding
    assert toolbox(folder)["providers"]["tracker"]["tools"] == {"get_issue": {"safety": "read_only"}}


@promise("clients:import")
@pytest.mark.parametrize(("letter", "added"), [("a", True), ("n", False)])
async def test_a_server_that_the_person_does_not_want_started_is_not(person, folder, tracker, letter, added):
    async with person("toolbox", "import", str(tracker)) as terminal:
        await terminal.shows("[n]o?")
        terminal.type("maybe")
        await terminal.shows("type one of the letters in brackets")
        await terminal.shows("[n]o?")
        terminal.type(letter)
        code, out = await terminal.ended()

    assert (code, out) == (0, "tracker\n" if added else "")
    assert ("tracker" in toolbox(folder)["mcpServers"]) is added
    assert (folder / ".env").exists() is added
    assert not was_started(folder)


@promise("clients:import")
async def test_hostile_names_are_shown_as_what_they_are_and_get_no_class(run, folder, tmp_path):
    names = ["get_\u202eevil", "l\u0456st_a", "get_a  delete_b", "read_" + "x" * 200, "get_[bold]"]
    script = ScriptedServer(tmp_path / "s.json", [reads(name) for name in names])
    script.write()
    done = await run("toolbox", "add", "evil", "--yes", "--", sys.executable, str(SERVER), str(script.path))

    assert done.code == 0
    assert not set(done.err) & {"\u202e", "\u0456", "\x1b"}
    assert "'get_a  delete_b'" in done.err
    assert set(toolbox(folder)["providers"]["evil"]["tools"]) <= {"get_a  delete_b", "get_[bold]"}


@promise("clients:import")
async def test_add_takes_a_command_or_an_address_and_refuses_a_name_that_is_taken(run, folder, tmp_path):
    script = ScriptedServer(tmp_path / "s.json", [reads("get_a")])
    script.write()
    command = ("--", "python", str(SERVER), str(script.path))
    first = await run("toolbox", "add", "a", "--env", "LEVEL=1", "--env", "A_TOKEN=secret-of-a", "--yes", *command)
    web = await run("toolbox", "add", "web", "http://127.0.0.1:9/mcp", "--header", "X=${NOT_SET}", "--yes")
    again = await run("toolbox", "add", "a", "--yes", *command)
    nothing = await run("toolbox", "add", "b", "--yes")
    wrong = await run("toolbox", "add", "b", "--env", "LEVEL", "--yes", "--", "x")
    name = await run("toolbox", "add", "a.b", "--yes", "--", "x")

    assert (first.code, web.code) == (0, 0), first.err + web.err
    assert toolbox(folder)["mcpServers"] == {
        "a": {"command": "python", "args": list(command[2:]), "env": {"LEVEL": "1", "A_TOKEN": "${A_TOKEN}"}},
        "web": {"url": "http://127.0.0.1:9/mcp", "headers": {"X": "${NOT_SET}"}},
    }
    assert "web cannot be asked: mcpServers.web.headers.X: the environment variable NOT_SET is not set" in web.err
    assert "backstay toolbox propose web" in web.err
    assert (again.code, nothing.code, wrong.code, name.code) == (2, 2, 2, 2)
    assert "toolbox.json names it already" in again.err
    assert "name a command or an address" in nothing.err
    assert "--env: expected NAME=VALUE" in wrong.err
    assert "a.b: not a usable provider name" in name.err


@promise("clients:remove")
async def test_what_was_added_is_removed_again_with_all_that_is_said_of_it(run, folder, tmp_path):
    script = ScriptedServer(tmp_path / "s.json", [reads("get_a")])
    script.write()
    await run("init")
    text = (folder / "toolbox.json").read_text(encoding="utf-8")
    users = text.rstrip().removesuffix("}").rstrip() + ',\n  "users": {"*": {"providers": ["notes"]}}\n}\n'
    (folder / "toolbox.json").write_text(users, encoding="utf-8")
    (folder / "toolbox.json").chmod(0o640)
    command = ("--", "python", str(SERVER), str(script.path))
    added = await run("toolbox", "add", "a", "--env", "A_TOKEN=secret-of-a", "--yes", "--output", "json", *command)
    between = toolbox(folder)
    again = await run("toolbox", "propose", "a", "--yes", "--output", "json")
    removed = await run("toolbox", "remove", "a", "--output", "json")

    assert (added.code, again.code, removed.code) == (0, 0, 0), added.err + removed.err
    assert json.loads(added.out) == [{"server": "a", "declared": {"get_a": "read_only"}}]
    assert json.loads(again.out) == [{"server": "a", "declared": {}}]
    assert json.loads(removed.out) == {
        "server": "a",
        "removed": ["mcpServers.a", "providers.a", "users.*.providers"],
    }
    said = "removed from toolbox.json: mcpServers.a, providers.a, users.*.providers; the variables that it read stay"
    assert said in removed.err
    assert between["users"]["*"]["providers"] == ["notes", "a"]
    assert (folder / "toolbox.json").read_text(encoding="utf-8") == users
    assert stat.S_IMODE((folder / "toolbox.json").stat().st_mode) == 0o640
    assert "A_TOKEN" in (folder / ".env").read_text(encoding="utf-8")


@promise("clients:remove-refused")
async def test_a_server_that_is_not_there_or_is_needed_is_not_removed(run, folder):
    nothing = await run("toolbox", "remove", "notes")
    await run("init")
    text = (folder / "toolbox.json").read_text(encoding="utf-8")
    strange = await run("toolbox", "remove", "note")
    needed = (
        text.rstrip().removesuffix("}").rstrip()
        + ',\n  "python": {"mine": {"module": "own", "provider": "notes"}}\n}\n'
    )
    (folder / "toolbox.json").write_text(needed, encoding="utf-8")
    refused = await run("toolbox", "remove", "notes")

    assert (nothing.code, strange.code, refused.code) == (2, 2, 2)
    assert "there is no server 'notes' in toolbox.json; it names none" in nothing.err
    assert "there is no server 'note' in toolbox.json; it names notes" in strange.err
    assert "python.mine.provider: unknown provider 'notes'" in refused.err
    assert (folder / "toolbox.json").read_text(encoding="utf-8") == needed


@promise("clients:import")
@pytest.mark.thorough
async def test_what_is_added_is_seen_by_everybody_who_sees_the_others(run, folder, tmp_path, variables):
    script = ScriptedServer(tmp_path / "s.json", [reads("get_a"), writes("do_b")])
    script.write()
    text = '{\n  // ours\n  "mcpServers": {},\n  "users": {"*": {"providers": []}},\n}\n'
    (folder / "toolbox.json").write_text(text, encoding="utf-8")
    (folder / "toolbox.json").chmod(0o640)
    await run("trust")
    done = await run("toolbox", "add", "a", "--yes", "--", "python", str(SERVER), str(script.path))
    listed = await run("tools", "list")

    assert done.code == 0, done.err
    assert "a.get_a" in listed.out
    assert "// ours" in (folder / "toolbox.json").read_text(encoding="utf-8")
    assert stat.S_IMODE((folder / "toolbox.json").stat().st_mode) == 0o640


@promise("clients:import")
@pytest.mark.thorough
async def test_classes_are_proposed_for_servers_that_are_there_already(run, folder, tmp_path):
    script = ScriptedServer(tmp_path / "s.json", [reads("get_a"), reads("get_b"), reads("get_c")])
    script.write()
    declared = {"get_a": {"safety": "restricted_write"}, "get_b": {"timeout": 9}}
    data = {
        "mcpServers": {"s": {"command": "python", "args": [str(SERVER), str(script.path)]}},
        "providers": {"s": {"tools": declared}},
    }
    (folder / "toolbox.json").write_text(json.dumps(data), encoding="utf-8")
    await run("trust")
    hinted = await run("tools", "list")
    refused = await run("toolbox", "propose")
    strange = await run("toolbox", "propose", "t", "--yes")
    done = await run("toolbox", "propose", "--yes")
    again = await run("toolbox", "propose", "--yes")

    assert "backstay toolbox propose" in hinted.err
    assert (refused.code, strange.code, done.code, again.code) == (2, 2, 0, 0)
    assert "--yes: nobody can be asked here" in refused.err
    assert "there is no server 't' in toolbox.json; it names s" in strange.err
    assert toolbox(folder)["providers"]["s"]["tools"] == {
        "get_a": {"safety": "restricted_write"},
        "get_b": {"timeout": 9, "safety": "read_only"},
        "get_c": {"safety": "read_only"},
    }
    assert "read_only" not in again.err


@promise("clients:said")
async def test_without_tools_the_list_says_how_to_get_some(run, folder):
    without = await run("tools", "list")
    (folder / "toolbox.json").write_text("{}", encoding="utf-8")
    await run("trust")
    empty = await run("tools", "list")
    proposed = await run("toolbox", "propose")

    assert (without.code, empty.code, proposed.code) == (0, 0, 0)
    assert without.err == empty.err
    assert "there are no tools; add a server with: backstay toolbox add NAME -- COMMAND" in empty.err
    assert "names no server" in proposed.err


@promise("clients:import")
async def test_import_without_a_file_names_those_that_are_there(run, tmp_path):
    file = tmp_path / "config/Claude/claude_desktop_config.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}", encoding="utf-8")
    found = await run("toolbox", "import", XDG_CONFIG_HOME=str(tmp_path / "config"), HOME=str(tmp_path))
    nothing = await run("toolbox", "import", HOME=str(tmp_path))
    empty = await run("toolbox", "import", str(file), "--yes")

    assert (found.code, nothing.code, empty.code) == (2, 2, 2)
    assert f"name the file of a host; found on this machine: {file}" in found.err
    assert "found on this machine: none" in nothing.err
    assert f"{file}: names no server" in empty.err


@promise("clients:import")
async def test_a_command_that_fails_leaves_toolbox_json_as_it_was(run, folder):
    await run("init")
    before = (folder / "toolbox.json").read_bytes()
    done = await run("toolbox", "add", "fs", "--yes", "--", "x")

    assert done.code == 2
    assert "mcpServers.fs: this name belongs to the engine" in done.err
    assert (folder / "toolbox.json").read_bytes() == before
