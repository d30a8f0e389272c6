"""The servers of other hosts, as toolbox.json will name them."""

import json
from pathlib import Path

import pytest

from backstay.errors import ToolboxInvalid
from tests.requirements import promise
from toolbox.configuration.hosts import host_files, server_of, servers_of
from toolbox.configuration.load import load

GITHUB_TOKEN = "ghp_" + "A1b2C3d4" * 5


def imported(folder, data, known=None, name="mcp.json"):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return {server.name: server for server in servers_of(file, known or {})[0]}


def load_again(folder, servers):
    """Return the names under which a toolbox of ours knows the servers."""
    ours = folder / "ours.json"
    ours.write_text(json.dumps({"mcpServers": {name: found.entry for name, found in servers.items()}}))
    return set(load(ours, {})[0].servers)


@promise("tools:other-hosts")
def test_claude_desktops_tokens_become_variables(tmp_path):
    servers = imported(
        tmp_path,
        {
            "globalShortcut": "",
            "mcpServers": {
                "github": {
                    "command": "npx",
                    "args": ["-y", "server-github", "--api-key", "hunter22", f"--url=https://h/?k={GITHUB_TOKEN}"],
                    "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": GITHUB_TOKEN, "LEVEL": "debug"},
                }
            },
        },
    )

    github = servers["github"]
    assert github.entry == {
        "command": "npx",
        "args": ["-y", "server-github", "--api-key", "${GITHUB_API_KEY}", "--url=https://h/?k=${GITHUB_SECRET}"],
        "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_PERSONAL_ACCESS_TOKEN}", "LEVEL": "debug"},
    }
    assert github.values == {
        "GITHUB_API_KEY": "hunter22",
        "GITHUB_SECRET": GITHUB_TOKEN,
        "GITHUB_PERSONAL_ACCESS_TOKEN": GITHUB_TOKEN,
    }


@promise("tools:hosts-cursor")
def test_cursors_references_and_headers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "project"
    servers = imported(
        project,
        {
            "mcpServers": {
                "files": {"command": "./serve", "args": ["${workspaceFolder}/data", "${userHome}/x"]},
                "crm": {"url": "https://crm.example/mcp", "headers": {"Authorization": "Bearer pa55word-of-crm"}},
                "env": {"command": "x", "env": {"KEY": "${env:MY_KEY}"}},
            }
        },
        name=".cursor/mcp.json",
    )

    assert servers["files"].entry == {
        "command": "./serve",
        "args": [f"{project}/data", "${HOME}/x"],
        "cwd": str(project),
    }
    assert servers["crm"].entry["headers"] == {"Authorization": "Bearer ${CRM_AUTHORIZATION}"}
    assert servers["crm"].values == {"CRM_AUTHORIZATION": "pa55word-of-crm"}
    assert servers["env"].entry["env"] == {"KEY": "${MY_KEY}"}


@promise("tools:hosts-vs-code")
@pytest.mark.parametrize("nested", [False, True])
def test_vs_codes_inputs_are_variables_that_are_needed(tmp_path, nested):
    servers = {
        "my server!": {
            "type": "http",
            "url": "https://h/mcp",
            "headers": {"X-Key": "${input:the-key}"},
            "envFile": "${workspaceFolder}/.env",
        }
    }
    data = {"mcp": {"servers": servers}} if nested else {"inputs": [{"id": "the-key"}], "servers": servers}
    (found,) = imported(tmp_path, f"// VS Code\n{json.dumps(data)}").values()

    assert found.name == "my server"
    assert found.entry == {"type": "http", "url": "https://h/mcp", "headers": {"X-Key": "${THE_KEY}"}}
    assert (found.unset, found.left_out) == (["THE_KEY"], ["envFile"])


@promise("tools:others-hosts")
def test_of_two_names_for_one_field_one_counts_and_the_other_is_named(tmp_path):
    (found,) = imported(
        tmp_path, {"mcpServers": {"a": {"cmd": "b", "command": "a", "environment": {}, "envs": {"B": "1"}}}}
    ).values()
    assert (found.entry, found.left_out) == ({"command": "a", "env": {}}, ["cmd", "envs"])


@promise("tools:hosts-places")
def test_no_imported_value_takes_the_place_of_a_setting_or_of_another_variable(tmp_path):
    servers = imported(
        tmp_path,
        {
            "mcpServers": {
                "a": {"command": "x", "env": {"OPENAI_API_KEY": "sk-strange-key", "API_KEY": "first-secret"}},
                "b": {"command": "x", "env": {"BACKSTAY_LEDGER_TOKEN": "evil-evil", "API_KEY": "other-secret"}},
                "openai": {"command": "x", "args": ["--api-key", "third-secret"]},
                "c": {"command": "x", "env": {"K": "${input:openai-api-key}", "MY_TOKEN": "fourth-secret"}},
            }
        },
        known={"MY_TOKEN": "of-somebody-else"},
    )

    values = {name: value for server in servers.values() for name, value in server.values.items()}
    assert values == {
        "MCP_OPENAI_API_KEY": "sk-strange-key",
        "API_KEY": "first-secret",
        "MCP_BACKSTAY_LEDGER_TOKEN": "evil-evil",
        "API_KEY_OWN": "other-secret",
        "MCP_OPENAI_API_KEY_OWN": "third-secret",
        "MY_TOKEN_OWN": "fourth-secret",
    }
    assert servers["b"].entry["env"]["API_KEY"] == "${API_KEY_OWN}"
    assert servers["c"].unset == ["MCP_OPENAI_API_KEY"]


@promise("tools:hosts-engines-names")
def test_a_server_whose_name_belongs_to_the_engine_is_taken_over_under_another_one(tmp_path):
    servers = imported(tmp_path, {"mcpServers": {name: {"command": "x"} for name in ("shell", "fs", "engine", "a")}})
    assert set(servers) == {"shell-server", "fs-server", "engine-server", "a"}
    assert load_again(tmp_path, servers) == set(servers)


@promise("tools:hosts-typed")
def test_what_a_person_types_is_treated_alike():
    server = server_of("x", {"command": "run", "args": ["--token=abc-secret"], "env": {"A": "1"}}, {})

    assert server.entry == {"command": "run", "args": ["--token=${X_TOKEN}"], "env": {"A": "1"}}
    assert server.values == {"X_TOKEN": "abc-secret"}


@promise("tools:hosts-refused")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "no JSON object"),
        ("{}", "names no server"),
        ('{"mcpServers": {}}', "names no server"),
        ('{"mcpServers": {"a": 7}}', "the server 'a' is not an object"),
        ('{"mcpServers": {"a": {"command": 7}}}', "mcpServers.a.command"),
        ('{"mcpServers": {"a": {"args": ["x"]}}}', "needs either `command`"),
        ('{"mcpServers": {"a": {"command": "${command:pick}"}}}', "'${command:pick}' is known to its own host only"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_with_the_file(tmp_path, text, said):
    with pytest.raises(ToolboxInvalid) as caught:
        imported(tmp_path, text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500


ENTRY = {"command": "python", "args": ["-c", "pass"]}
SERVERS = json.dumps({"mcpServers": {"good": ENTRY}})
FILES = {
    # tradesdontlie/tradingview-mcp#406: what shells on Windows write
    "mark.json": SERVERS.encode("utf-8-sig"),
    "wide.json": SERVERS.encode("utf-16"),
    # Codex
    "codex.toml": b'[mcp_servers.good]\ncommand = "python"\nargs = ["-c", "pass"]\n',
    # Continue
    "continue.yaml": b"mcpServers:\n  - name: good\n    command: python\n    args: ['-c', 'pass']\n",
    # goose
    "goose.yaml": b"extensions:\n  good:\n    cmd: python\n    args: ['-c', 'pass']\n    enabled: true\n",
    # Nothing but the servers, as a page shows them
    "bare.json": json.dumps({"good": ENTRY}).encode(),
}


@promise("tools:hosts-files")
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_in_the_form_in_which_its_host_writes_it(tmp_path, name):
    file = tmp_path / name
    file.write_bytes(FILES[name])
    servers, faults = servers_of(file, {})
    assert [(server.name, server.entry) for server in servers] == [("good", ENTRY)]
    assert faults == []


@promise("tools:hosts-files")
@pytest.mark.parametrize(
    "text",
    [
        *("a: &a [*a]", "mcpServers: {a: &a {command: b}, c: *a}", "a: [", "- 1", "\t"),
        "mcpServers:\n  a: {command: b}\n  a: {command: c}\n",
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_name(tmp_path, text):
    file = tmp_path / "mcp.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ToolboxInvalid, match=r"mcp\.yaml: "):
        servers_of(file, {})


@promise("tools:hosts-files")
def test_the_servers_that_belong_to_a_folder_are_taken_over_in_that_folder(tmp_path, monkeypatch):
    data = {"projects": {str(tmp_path): {"mcpServers": {"here": ENTRY}}}, "mcpServers": {"all": ENTRY}}
    monkeypatch.chdir(tmp_path)
    assert set(imported(tmp_path, data)) == {"all", "here"}
    monkeypatch.chdir("/")
    assert set(imported(tmp_path, data)) == {"all"}
    with pytest.raises(ToolboxInvalid, match="names servers of other folders only; run it in one of them"):
        imported(tmp_path, {"projects": data["projects"]})


@promise("tools:hosts-found")
def test_the_files_of_hosts_are_found_where_they_keep_them(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    places = [".config/Claude/claude_desktop_config.json", ".config/Code/User/mcp.json", ".cursor/mcp.json"]
    for place in places:
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text("{}", encoding="utf-8")

    found = host_files({"XDG_CONFIG_HOME": str(tmp_path / ".config")})

    assert [path.resolve() for path in found] == [tmp_path / place for place in (*places, ".cursor/mcp.json")]
