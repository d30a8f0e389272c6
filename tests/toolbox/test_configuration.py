import json

import pytest

from backstay.errors import ToolboxInvalid
from tests.requirements import promise
from toolbox.toolbox import open_toolbox


async def refused(folder, text, **environment):
    file = folder / "toolbox.json"
    file.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    with pytest.raises(ToolboxInvalid) as caught:
        async with open_toolbox(file, environment=environment, home=folder):
            pass
    return str(caught.value)


def declaring(**declared):
    return {"mcpServers": {"m": {"command": "x"}}, "providers": {"m": {"tools": {"send": declared}}}}


@promise("tools:toolbox-errors")
async def test_a_missing_file_is_named_with_what_to_do(tmp_path):
    with pytest.raises(ToolboxInvalid) as caught:
        async with open_toolbox(tmp_path / "absent.json", environment={}, home=tmp_path):
            pass
    assert "absent.json" in str(caught.value)
    assert "BACKSTAY_TOOLBOX" in str(caught.value)


@promise("tools:toolbox-errors")
async def test_invalid_json_is_named_with_line_and_column(tmp_path):
    assert "line 2 column 17" in await refused(tmp_path, '{\n  "mcpServers": nothing}')


@promise("tools:toolbox-errors")
@pytest.mark.parametrize("text", ["[]", "3", "null", '"x"', '{"mcpServers": []}'])
async def test_a_file_of_another_shape_is_refused(tmp_path, text):
    assert "toolbox.json" in await refused(tmp_path, text)


@promise("tools:toolbox-errors")
async def test_a_key_written_twice_is_refused(tmp_path):
    assert "tools: duplicate key" in await refused(tmp_path, '{"providers": {"m": {"tools": {}, "tools": {}}}}')


@promise("tools:toolbox-errors")
@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"mcpServer": {}}, "mcpServer: unknown field; did you mean 'mcpServers'?"),
        (
            {"mcpServers": {"m": {"comand": "x"}}},
            "mcpServers.m.comand: unknown field (value 'x'); did you mean 'command'?",
        ),
        ({"mcpServers": {"m": {}}}, "mcpServers.m: needs either `command` (stdio) or `url`"),
        ({"mcpServers": {"m": {"command": "x", "url": "http://h/"}}}, "mcpServers.m: needs either"),
        ({"mcpServers": {"m": {"url": "http://h/", "args": ["x"]}}}, "mcpServers.m: `args`, `env` and `cwd` belong"),
        ({"mcpServers": {"m": {"url": "ftp://h/"}}}, "mcpServers.m.url: not an http:// or https:// address"),
        ({"mcpServers": {"m": {"command": "x", "type": "sse"}}}, "mcpServers.m: `type` says that it is reached over"),
        ({"mcpServers": {"m": {"url": "http://h/", "type": "stdio"}}}, "mcpServers.m: `type` says that it is started"),
        ({"mcpServers": {"m": {"url": "http://h/", "type": "smoke"}}}, "mcpServers.m.type:"),
        ({"mcpServers": {"m": {"command": 3}}}, "mcpServers.m.command:"),
        ({"mcpServers": {"a.b": {"command": "x"}}}, "mcpServers.a.b: not a usable provider name"),
        ({"mcpServers": {"engine": {"command": "x"}}}, "mcpServers.engine: this name belongs to the engine"),
        ({"providers": {"m": {}}}, "providers.m: there is no such server, plugin or module (known: none)"),
        ({"users": {"*": {"providers": ["m"]}}}, "users.*.providers: unknown provider 'm'"),
        (
            {"mcpServers": {"m": {"command": "x", "includ": ["a"]}}},
            "mcpServers.m.includ: unknown field; did you mean 'include'?",
        ),
        (
            {"mcpServers": {"m": {"command": "x", "inlcudeTools": ["a"]}}},
            "mcpServers.m.inlcudeTools: unknown field; did you mean 'includeTools'?",
        ),
        ({"workspace": {"alow": []}}, "workspace.alow: unknown field; did you mean 'allow'?"),
        ({"workspace": {"x": []}}, "workspace.x: unknown field; remove it (known here: allow, deny)"),
        ({"plugins": {"folder": "p", "jial": True}}, "jial: unknown field (value True); did you mean 'jail'?"),
        (
            {"mcpServers": {"m": {"command": "x"}}, "providers": {"m": {"jobs": {"unaskd": []}}}},
            "providers.m.jobs.unaskd: unknown field; did you mean 'unasked'?",
        ),
        ({"users": {"*": {"provider": []}}}, "users.*.provider: unknown field; did you mean 'providers'?"),
        (declaring(safty="read_only"), "providers.m.tools.send.safty: unknown field"),
        (declaring(safety="harmless"), "providers.m.tools.send.safety:"),
        (declaring(idempotent="yes"), "providers.m.tools.send.idempotent:"),
        (declaring(idempotency_ttl=0), "providers.m.tools.send.idempotency_ttl:"),
        (declaring(undo={}), "providers.m.tools.send.undo.tool: required field is missing"),
        (declaring(undo={"tool": "r", "arguments": {"a": "{{ result. }}"}}), "providers.m.tools.send.undo.arguments:"),
        (declaring(undo={"tool": "r", "arguments": {"a": "{{ reslt.id }}"}}), "'reslt' is not known"),
        (declaring(undo_by_effect_id={"tool": "r", "arguments": {"a": "{{ result.id }}"}}), "'result' is not known"),
        (declaring(verify={"tool": "r"}), "providers.m.tools.send.verify.applied_if: required field is missing"),
        (declaring(verify={"tool": "r", "applied_if": "result.ok"}), "must be exactly one {{ expression }}"),
        (declaring(verify={"tool": "r", "applied_if": "{{ 1 }}", "result": "x"}), "verify.result: must be exactly one"),
        ({"mcpServers": {"m": {"command": "x"}}, "providers": {"m": {"uid": 4}}}, "not available in this version: uid"),
    ],
)
async def test_what_is_wrong_is_named_with_field_and_fix(tmp_path, configuration, message):
    assert message in await refused(tmp_path, configuration)


@promise("tools:off")
async def test_a_folder_of_plugins_may_be_empty_or_missing(tmp_path, opened):
    async with opened(tmp_path, {"plugins": "plugins/"}):
        pass
    (tmp_path / "plugins" / "no plugin").mkdir(parents=True)
    async with opened(tmp_path, {"plugins": "plugins/"}) as toolbox:
        assert (await toolbox.catalog("anyone")).definitions == {}


@promise("tools:variables")
async def test_a_variable_that_is_not_set_disables_its_provider_only_and_is_named(tmp_path, opened, raw):
    (tmp_path / "plugins/tool").mkdir(parents=True)
    (tmp_path / "plugins/tool/cli.py").write_text("import argparse; argparse.ArgumentParser().parse_args()")
    configuration = {
        "mcpServers": {
            "crm": {"url": "http://127.0.0.1:1/", "headers": {"Authorization": "Bearer ${CRM_TOKEN}"}},
            "raw": raw(tools=[{"name": "ping", "inputSchema": {"type": "object"}}]) | {"env": {"L": "${L:-low}"}},
        },
        "plugins": "plugins/",
        "providers": {"tool": {"env": {"KEY": "${TOOL_KEY}"}}},
    }
    async with opened(tmp_path, configuration) as toolbox:
        catalog = await toolbox.catalog("anyone")

    assert set(catalog.unavailable) == {"crm", "tool"}
    assert (
        "mcpServers.crm.headers.Authorization: the environment variable CRM_TOKEN is not set"
        in (catalog.unavailable["crm"])
    )
    assert "providers.tool.env.KEY: the environment variable TOOL_KEY is not set" in catalog.unavailable["tool"]
    assert {definition.provider for definition in catalog.definitions.values()} == {"raw"}


@promise("tools:variables-misspelt")
async def test_what_is_no_reference_is_refused(tmp_path):
    assert "is not a reference" in await refused(
        tmp_path, {"mcpServers": {"m": {"command": "x", "args": ["${1 + 1}"]}}}
    )


@promise("tools:commented")
async def test_a_file_may_hold_comments_and_trailing_commas_and_faults_keep_their_place(tmp_path):
    file = tmp_path / "toolbox.json"
    file.write_text('// mine\n{"mcpServers": {/* none: "x", */},}\n', encoding="utf-8")
    async with open_toolbox(file, environment={}, home=tmp_path) as toolbox:
        assert (await toolbox.catalog("anyone")).definitions == {}
    assert "line 3 column 3" in await refused(tmp_path, "{ // one,\n/* two\n*/,}")


@promise("tools:no-file")
async def test_a_file_that_nobody_named_may_be_missing(tmp_path):
    async with open_toolbox(tmp_path / "none.json", environment={}, home=tmp_path, optional=True) as toolbox:
        assert (await toolbox.catalog("anyone")).definitions == {}
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere.json")
    with pytest.raises(ToolboxInvalid, match="there is no toolbox file"):
        async with open_toolbox(tmp_path / "dangling.json", environment={}, home=tmp_path, optional=True):
            pass


@promise("tools:shown-paths")
async def test_a_path_is_no_secret_unless_it_is_named_like_a_secret(tmp_path, opened):
    place, key = str(tmp_path / "notes.db"), str(tmp_path / "key-file")
    server = {"command": "x", "env": {"NOTES": "${NOTES}", "KEY": "${API_KEY}", "AWS": "${AWS}"}}
    variables = {"NOTES": place, "API_KEY": key, "AWS": "/wJalrXUtnFEMI/K7MDENG+bPxRfiCY"}
    async with opened(tmp_path, {"mcpServers": {"m": server}}, **variables) as toolbox:
        assert toolbox.secrets == {key, variables["AWS"]}


@promise("secrets:variables")
async def test_values_of_variables_are_secrets_and_never_part_of_a_message(tmp_path, opened):
    configuration = {
        "mcpServers": {
            "a": {"command": "x", "env": {"MODE": "development", "TOKEN": "written-out-token", "K": "${K}"}},
            "b": {"url": "http://127.0.0.1:1/", "headers": {"Authorization": "Bearer ${T}"}},
            "c": {"command": "x", "args": ["${SHORT}", "${HOME}/x"]},
        }
    }
    environment = {"K": "value-of-k", "T": "value-of-t", "SHORT": "1234567", "HOME": "/home/somebody"}
    async with opened(tmp_path, configuration, **environment) as toolbox:
        assert toolbox.secrets == {"written-out-token", "value-of-k", "value-of-t", "Bearer value-of-t"}
    configuration["mcpServers"]["b"]["headers"] = {"Authorization": "${T}\nX: y"}
    assert "value-of-t" not in await refused(tmp_path, configuration, **environment)
    assert "hunter22" not in await refused(
        tmp_path, {"mcpServers": {"m": {"command": "x", "env": {"P": ["hunter22"]}}}}
    )


@promise("tools:hosts")
async def test_servers_as_other_hosts_write_them_work_unchanged(tmp_path, opened):
    servers = {
        "desktop": {"command": "npx", "args": ["-y", "some-server", "/data"], "env": {"TOKEN": "${TOKEN}"}},
        "editor": {"type": "stdio", "command": "uvx", "args": ["a-server"], "env": {"KEY": "${env:TOKEN}"}},
        "assistant": {"command": "x", "disabled": False, "autoApprove": ["send"], "alwaysAllow": [], "timeout": 60},
        "web": {"serverUrl": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "console": {"httpUrl": "http://127.0.0.1:1/mcp", "trust": True, "includeTools": ["a"], "description": "d"},
        "stream": {"url": "http://127.0.0.1:1/sse", "transport": "sse"},
        "off": {"command": "${NOT_SET}", "disabled": True},
    }
    async with opened(tmp_path, {"mcpServers": servers}, TOKEN="token-of-the-host") as toolbox:
        assert "token-of-the-host" in toolbox.secrets


@promise("tools:hosts")
async def test_what_another_host_approves_by_itself_is_asked_about_here(tmp_path, opened, raw):
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("send", "drop")]
    entry = raw(tools=tools, answers={}) | {"autoApprove": ["send"], "disabledTools": ["drop"]}
    async with opened(tmp_path, {"mcpServers": {"m": entry}}) as toolbox:
        definitions = (await toolbox.catalog("anyone")).definitions
    assert {name: definition.tool.safety for name, definition in definitions.items()} == {"m.send": "restricted_write"}


@promise("tools:offered")
@pytest.mark.parametrize(
    ("said", "offered"),
    [({"include": ["send"]}, {"m.send"}), ({"exclude": ["send"]}, {"m.drop"}), ({"disabledTools": []}, None)],
)
async def test_a_server_offers_only_the_tools_that_its_entry_includes_or_does_not_exclude(
    tmp_path, opened, raw, said, offered
):
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("send", "drop")]
    async with opened(tmp_path, {"mcpServers": {"m": raw(tools=tools, answers={}) | said}}) as toolbox:
        definitions = (await toolbox.catalog("anyone")).definitions
    assert set(definitions) == (offered or {"m.send", "m.drop"})


@promise("tools:late")
async def test_an_init_timeout_is_read_in_seconds_or_milliseconds(tmp_path, opened, raw):
    written = {"half": 0.5, "second": 1000, "absent": None}
    servers = {name: raw(name, silent=True) | {"initTimeout": given} for name, given in written.items()}
    async with opened(tmp_path, {"mcpServers": {name: servers[name] for name in ("half", "second")}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert "did not answer within 0.5 s of its start; raise its `initTimeout`" in catalog.unavailable["half"]
    assert "did not answer within 1 s of its start" in catalog.unavailable["second"]
    async with opened(tmp_path, {"mcpServers": {"absent": servers["absent"]}}):
        pass
    for wrong in ("soon", 0, -1, 10**9):
        entry = {"command": "x", "initTimeout": wrong}
        assert "mcpServers.m.initTimeout:" in await refused(tmp_path, {"mcpServers": {"m": entry}})
