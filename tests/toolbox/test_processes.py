import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from backstay.errors import OutcomeUnknown, ToolUnavailable
from backstay.redaction.redactor import Redactor
from tests.logs import logged
from tests.requirements import promise

FINE = {"result": {"content": [{"type": "text", "text": "fine"}]}}


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def is_running(process):
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


LAST = "cannot start: no licence"


async def intent():
    """Stand for a committed intent."""


async def call(toolbox, name, before_send=intent, deadline_s=5):
    definition = (await toolbox.catalog("anyone")).definitions[name]
    return await toolbox.call(definition, {}, deadline_s=deadline_s, before_send=before_send)


@promise("tools:missing")
async def test_a_missing_command_is_a_reason_that_names_it(opened, tmp_path):
    async with opened(tmp_path, {"mcpServers": {"gone": {"command": "no-such-command"}}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert "'no-such-command' was not found" in catalog.unavailable["gone"]


@promise("tools:missing")
async def test_a_server_that_ends_at_its_start_is_a_reason_and_its_stderr_is_kept(opened, tmp_path, raw):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(exit=True)}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    log = tmp_path / "home/logs/raw.stderr"
    assert catalog.unavailable["raw"] == f"the server exited before it answered: {LAST}; see its output in {log}"
    assert "no licence" in log.read_text()


NODE = "    at load (a.js:1:1) {\n  code: 'ERR_X',\n  requireStack: [ '/a.js' ]\n}"
ENDS = [
    (
        f"Fatal error: Error [ERR_X]: No such module\n    at b.js:3:1\n{NODE}",
        "Fatal error: Error [ERR_X]: No such module",
    ),
    (f"b:1\n  throw err;\n  ^\n\nError: no x\nRequire stack:\n- /a.js\n{NODE}\n\nNode.js v20.20.2", "Error: no x"),
    ("thread 'main' panicked at no key\nnote: run with `RUST_BACKTRACE=1`", "thread 'main' panicked at no key"),
    ("panic: no address\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:5 +0x1d\nexit status 2", "panic: no address"),
    (
        "npm error 404 Not Found - x\nnpm error A complete log of this run can be found in: /x",
        "npm error 404 Not Found - x",
    ),
    ("Error: one\nusage: server [options]", "usage: server [options]"),
    ("{\n}", "{"),
]
"""What Node, Rust, Go, npm and others print when they end, and which line names the cause."""


@promise("tools:last-words")
async def test_the_reason_of_a_server_that_ended_is_the_line_that_names_the_cause(opened, tmp_path):
    code = "import sys; sys.stderr.write(sys.argv[1])"
    servers = {f"s{place}": {"command": "python", "args": ["-c", code, said]} for place, (said, _) in enumerate(ENDS)}
    async with opened(tmp_path, {"mcpServers": servers}) as toolbox:
        reasons = (await toolbox.catalog("anyone")).unavailable
    for place, (_, cause) in enumerate(ENDS):
        assert reasons[f"s{place}"].startswith(f"the server exited before it answered: {cause}; see its output in")


@promise("secrets:stderr")
async def test_what_a_server_prints_is_kept_without_secrets_and_for_this_user_only(opened, tmp_path):
    known, token = "the-crm-key-of-the-operator", "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    said = "import os, sys; k = os.environ['KEY']; sys.stderr.write('start ' + k[:9]); sys.stderr.flush(); "
    said += f"sys.stderr.write(k[9:] + chr(10) + 'Bearer {token}' + chr(10) + 'last ' + k); sys.stderr.flush()"
    loud = {"command": "python", "args": ["-c", said], "env": {"KEY": "${CRM_KEY}"}}
    log = tmp_path / "home/logs/loud.stderr"
    log.parent.mkdir(parents=True)
    log.touch(mode=0o644)
    async with opened(tmp_path, {"mcpServers": {"loud": loud}}, CRM_KEY=known) as toolbox:
        await toolbox.catalog("anyone")
    text = log.read_text()
    assert ("start" in text, "last" in text, known in text, token in text) == (True, True, False, False)
    assert log.stat().st_mode & 0o777 == 0o600


@promise("secrets:stderr")
@pytest.mark.parametrize("stream", ["stderr", "stdout"])
async def test_a_private_key_that_a_server_prints_line_by_line_is_not_kept(opened, tmp_path, stream):
    lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "abcdEFGH1234567890qwertyuiopASDF", "zxcv12=="]
    printed = ["before", "-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", "after"]
    said = f"import sys, time\nfor line in {printed}:\n print(line, file=sys.{stream}, flush=True)\n time.sleep(0.1)"
    async with opened(tmp_path, {"mcpServers": {"loud": {"command": "python", "args": ["-c", said]}}}) as toolbox:
        await toolbox.catalog("anyone")
    text = (tmp_path / "home/logs/loud.stderr").read_text()
    assert [line for line in lines if line in text] == []
    assert ("before" in text, "after" in text, "[REDACTED:private_key]" in text) == (True, True, True)


@promise("tools:shown-paths")
async def test_a_server_that_ends_without_a_word_names_no_file(opened, tmp_path):
    async with opened(tmp_path, {"mcpServers": {"quiet": {"command": "python", "args": ["-c", ""]}}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert catalog.unavailable["quiet"] == "the server exited before it answered; it printed nothing"


@promise("tools:missing")
async def test_what_an_earlier_start_printed_is_no_reason_of_this_one_and_secrets_are_masked(opened, tmp_path):
    key = "the-crm-key-of-the-operator"
    said = f"import sys; sys.stderr.write('starting' + chr(10) + 'no: {key}'); sys.exit(3)"
    for code, reason in ((said, ": no: [REDACTED:known]; see its output in"), ("", "; it printed nothing")):
        loud = {"command": "python", "args": ["-c", code], "env": {"KEY": "${CRM_KEY}"}}
        async with opened(tmp_path, {"mcpServers": {"loud": loud}}, CRM_KEY=key) as toolbox:
            told = (await toolbox.catalog("anyone")).unavailable["loud"]
        assert told.startswith(f"the server exited before it answered{reason}")


@promise("tools:silent")
async def test_a_silent_server_costs_bounded_time_once_and_never_hides_the_others(opened, tmp_path, raw, monkeypatch):
    monkeypatch.setattr("toolbox.mcp.provider.FIRST_START_S", 0.5)
    servers = {"mute": raw("mute", silent=True), "raw": raw(tools=[tool("ping")])}
    async with opened(tmp_path, {"mcpServers": servers}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert "did not answer" in catalog.unavailable["mute"]
        assert list(catalog.definitions) == ["raw.ping"]


# BaseIntelligence/bounty-challenge#52020 and github/github-mcp-server#179 (several lines), Quantum3-Labs/ARBuilder#2
# (no version), microsoft/agent-governance-toolkit#3833 and tontinton/maki#68 (a header): no usual host reads these.
@promise("tools:unread")
@pytest.mark.parametrize(
    ("how", "wrote"), [("indent", '"jsonrpc": "2.0",'), ("bare", '{"id": 1, "error":'), ("header", "Content-Length: ")]
)
async def test_a_server_whose_answers_nobody_can_read_is_told_with_one_of_them(
    opened, tmp_path, raw, monkeypatch, how, wrote
):
    monkeypatch.setattr("toolbox.mcp.provider.FIRST_START_S", 1.5)
    async with opened(tmp_path, {"mcpServers": {"raw": raw(unread=how, garbage="Server is running")}}) as toolbox:
        reason = (await toolbox.catalog("anyone")).unavailable["raw"]
    assert "each answer must be one line of JSON" in reason
    assert f"it wrote {wrote!r}"[:-1] in reason


@promise("tools:garbage")
async def test_garbage_on_stdout_is_passed_over_and_kept_for_people(opened, tmp_path, raw):
    entry = raw(garbage="Welcome to the server!\n\x00\x01{", tools=[tool("ping")], answers={"ping": FINE})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        assert (await call(toolbox, "raw.ping")).data == "fine"
    assert "Welcome to the server!" in (tmp_path / "home/logs/raw.stderr").read_text()


@promise("tools:bad-output")
@pytest.mark.parametrize(
    "reply",
    [
        {"line": '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "te'},
        {"line": "half an answer"},
    ],
)
async def test_an_answer_that_is_none_is_unknown(opened, tmp_path, raw, reply):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("odd")], answers={"odd": reply})}}) as toolbox:
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, "raw.odd", deadline_s=0.7)


@promise("tools:bad-output")
async def test_a_read_whose_answer_is_cut_off_is_told_at_once(opened, tmp_path, raw):
    reply = {"line": '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "te'}
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("odd")], answers={"odd": reply})}}) as toolbox:
        answer = await call(toolbox, "raw.odd", before_send=None)
    assert (answer.success, answer.error) == (False, "the answer is malformed")


# Letta-MCP-server#102 and MCP-Nest#79 (text alone), claude-code#24742 (null in a field)
@promise("tools:output-schema")
@pytest.mark.parametrize(
    ("result", "data"),
    [
        ({"content": [], "structuredContent": {"n": "7", "note": None}}, {"n": "7", "note": None}),
        ({"content": [{"type": "text", "text": '{"n": 7}'}]}, {"n": 7}),
        ({"content": [{"type": "text", "text": "made 7"}]}, "made 7"),
        ({"content": []}, None),
    ],
)
async def test_an_answer_against_the_tools_own_output_schema_is_an_answer(opened, tmp_path, raw, result, data):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "note": {"type": "string"}}, "required": ["n"]}
    entry = raw(tools=[tool("odd", outputSchema=schema)], answers={"odd": {"result": result}})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        answer = await call(toolbox, "raw.odd")
    assert (answer.success, answer.data) == (True, data)


@promise("tools:tool-error")
@pytest.mark.parametrize("code", [-32000, -32001, -32601, -32602, -32603, 0, 17])
async def test_a_protocol_error_is_the_servers_own_answer(opened, tmp_path, raw, code):
    entry = raw(tools=[tool("odd")], answers={"odd": {"error": {"code": code, "message": "I did not"}}})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        answer = await call(toolbox, "raw.odd")
    assert (answer.success, answer.error) == (False, "I did not")


@promise("tools:clean-env")
async def test_a_server_sees_only_the_harmless_variables_and_its_own(office):
    shown = (await call(office, "office.show_environment")).data
    assert set(shown["environment"]) - {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"} == {"PATH", "KEY"}
    assert shown["environment"]["KEY"] == "k" * 12


@promise("tools:outside")
async def test_a_server_runs_in_the_directory_of_the_file_and_dies_with_the_toolbox(opened, tmp_path, servers):
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "office.py").symlink_to(servers / "office.py")
    async with opened(folder, {"mcpServers": {"o": {"command": "python", "args": ["office.py", "stdio"]}}}) as toolbox:
        shown = (await call(toolbox, "o.show_environment")).data
        assert shown["directory"] == str(folder)
        assert is_running(shown["process"])
    assert not is_running(shown["process"])


@promise("tools:cleanup")
async def test_a_server_that_will_not_end_is_killed(opened, tmp_path, raw, servers):
    entry = raw(stubborn=True, tools=[tool("ping")], answers={"ping": FINE})
    script = tmp_path / "wrapper.py"
    script.write_text(
        f"import os, runpy, sys\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        f"sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    async with opened(tmp_path, {"mcpServers": {"raw": entry | {"args": [str(script), *entry["args"]]}}}) as toolbox:
        await call(toolbox, "raw.ping")
    assert not is_running((tmp_path / "pid").read_text())


@promise("tools:no-orphans")
async def test_servers_end_when_the_process_that_opened_them_is_killed(tmp_path, raw, eventually):
    script = tmp_path / "wrapper.py"
    script.write_text(
        f"import os, runpy, sys\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        f"sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    entry = raw(tools=[tool("ping")])
    entry["args"] = [str(script), *entry["args"]]
    (tmp_path / "toolbox.json").write_text(json.dumps({"mcpServers": {"raw": entry}}))
    program = tmp_path / "owner.py"
    program.write_text(
        "import asyncio, pathlib, sys\nsys.path.insert(0, sys.argv[2])\nfrom toolbox.toolbox import open_toolbox\n"
        "async def main():\n    folder = pathlib.Path(sys.argv[1])\n"
        "    async with open_toolbox(folder / 'toolbox.json', environment={}, home=folder) as toolbox:\n"
        "        await toolbox.catalog('anyone')\n        print('ready', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).parents[2]
    owner = await asyncio.create_subprocess_exec(
        sys.executable, program, tmp_path, root, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(150):
            assert await owner.stdout.readline() == b"ready\n"
        server = (tmp_path / "pid").read_text()
        assert is_running(server)
    finally:
        owner.send_signal(signal.SIGKILL)
        await owner.wait()
    await eventually(lambda: not is_running(server))


@promise("tools:reconnect")
async def test_a_server_that_comes_back_is_used_again(opened, tmp_path, raw, monkeypatch, eventually):
    monkeypatch.setattr("toolbox.mcp.provider._BACKOFF_S", (0.05, 0.05))
    entry = raw(exit=True)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        assert "raw" in (await toolbox.catalog("anyone")).unavailable
        raw(tools=[tool("ping")], answers={"ping": FINE})
        async with asyncio.timeout(10):
            while "raw" in (await toolbox.catalog("anyone")).unavailable:
                await asyncio.sleep(0.02)
        assert (await call(toolbox, "raw.ping")).data == "fine"


@promise("tools:broke")
async def test_a_server_that_broke_keeps_its_tools_in_the_list_with_a_reason(opened, tmp_path, raw):
    async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[tool("ping")])}}) as toolbox:
        before = await toolbox.catalog("anyone")
        raw(exit=True)
        (provider,) = toolbox._providers.values()
        await provider._connection.close()
        after = await toolbox.catalog("anyone")
        assert after.version == before.version
        (hit,) = after.search("ping")
        assert hit.available is False
        assert hit.reason == after.unavailable["raw"]
        with pytest.raises(ToolUnavailable):
            await toolbox.call(after.definitions["raw.ping"], {}, deadline_s=5)


@promise("secrets:echoed-reason")
async def test_a_server_that_repeats_its_key_tells_it_to_no_log_and_no_reason_however_it_is_clipped(
    opened, tmp_path, raw
):
    key = "crm/of-the-operator+" + "kq7w" * 10
    servers = {
        # Clipped where it is told, so that only its beginning stands there.
        "begins": {**raw("begins", handshake={"protocolVersion": key}), "env": {"KEY": "${CRM_KEY}"}},
        "whole": {**raw("whole", handshake={"protocolVersion": key[::-1][:30]}), "env": {"KEY": "${OTHER}"}},
    }
    with logged(Redactor(())) as buffer:
        async with opened(tmp_path, {"mcpServers": servers}, CRM_KEY=key, OTHER=key[::-1][:30]) as toolbox:
            catalog = await toolbox.catalog("anyone")
    told = [*catalog.unavailable.values(), *catalog.problems, buffer.getvalue()]
    assert "speaks revision" in catalog.unavailable["begins"]
    assert "provider.unavailable" in buffer.getvalue()
    assert [said for said in told if key[:8] in said or key[::-1][:8] in said] == []
