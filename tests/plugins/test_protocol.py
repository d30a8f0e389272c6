import asyncio
import contextlib
import fcntl
import importlib.util
import json
import os
import py_compile
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.plugins.client import ENTRY, HOUSE, PLUGINS, cold, daemon, lay_out
from tests.plugins.site import eventually
from tests.ports import listening
from tests.requirements import promise

CLICK = {"button-text": "Pay", "row": "3"}


@promise("plugins:protocol")
async def test_a_job_is_queued_then_started_then_ended(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "click-button", CLICK)
        await client.until("a")
    assert client.lines == [
        {"status": "ready"},
        {"id": "a", "status": "queued", "payload": {}},
        {"id": "a", "status": "started", "payload": {}},
        {"id": "a", "status": "success", "payload": {"clicked": "Pay", "row": 3, "loud": False}},
    ]


@promise("plugins:commands")
async def test_help_reload_help_and_health_answer_at_once(tmp_path, nursery):
    lay_out(tmp_path, "demo", "other")
    async with daemon(nursery, tmp_path) as client:
        client.ask("h", "help")
        client.ask("r", "reload-help")
        client.ask(7, "health")
        told = await client.until("h")
        assert await client.until("r") == {"id": "r", "status": "success", "payload": "ok"}
        assert await client.until(7) == {"id": 7, "status": "success", "payload": "ok"}
    assert told["status"] == "success"
    assert told["payload"]["plugins"]["demo"]["click-button"] == {
        "description": "click a button",
        "args": ["--button-text", "--row", "--loud"],
        "required": ["--button-text"],
        "usage": "demo click-button --button-text BUTTON_TEXT [--row ROW] [--loud]",
    }
    assert told["payload"]["plugins"]["other"] == {
        "run": {
            "description": "Add numbers.",
            "args": ["--left", "--right"],
            "required": ["--left"],
            "usage": "other --left LEFT [--right RIGHT]",
        }
    }


NO_REQUESTS = [
    "no json",
    "[1]",
    "5",
    '"x"',
    '{"command": "help"}',
    '{"id": true, "command": "help"}',
    '{"id": "a", "command": "health", "payload": {"detail": NaN}}',
    '{"id": "a", "command": "health", "payload": {"detail": 1e999}}',
    '{"id": "a", "command": "health"}{"id": "b"}',
    '{"id": "\\ud800", "command": "health"}',
]


@promise("plugins:errors")
@pytest.mark.thorough
async def test_what_is_no_request_is_bad_json_and_the_daemon_goes_on(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path) as client:
        for number, line in enumerate(NO_REQUESTS):
            client.write(line)
            client.ask(number, "health")
            await client.until(number)
            assert client.lines[1 + 2 * number :] == [
                {"id": None, "status": "error", "payload": {"error": "bad_json"}},
                {"id": number, "status": "success", "payload": "ok"},
            ], line


@promise("plugins:errors")
async def test_a_line_without_end_is_bad_json_once_and_what_follows_is_read(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path) as client:
        client.write("x" * 5_000_000)
        client.ask("h", "health")
        await client.until("h")
    assert [line.get("payload") for line in client.lines[1:]] == [{"error": "bad_json"}, "ok"]


@promise("plugins:errors")
async def test_unknown_commands_plugins_and_actions_are_not_found(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.ask("a", "explode")
        client.ask("b", "run")
        client.run("c", "nobody", "click-button")
        client.run("d", "demo", "nothing")
        client.run("e", "../demo", "click-button")
        for name in "abcde":
            assert await client.until(name) == {"id": name, "status": "error", "payload": {"error": "not_found"}}
        client.write('{"id": "f", "command": null}')
        assert (await client.until("f"))["payload"] == {"error": "not_found"}


@promise("plugins:errors")
async def test_a_failure_tells_the_error_of_its_json_or_else_stderr_without_secrets(tmp_path, nursery):
    lay_out(tmp_path, "demo", demo={"env": {"BOT_KEY": "${BOT_KEY}"}})
    async with daemon(nursery, tmp_path, "--local", BOT_KEY="s3cr3t-value-9") as client:
        client.run("a", "demo", "fail")
        client.run("b", "demo", "fail", {"how": "stderr"})
        assert await client.until("a") == {"id": "a", "status": "error", "payload": {"error": "no such bot"}}
        failed = await client.until("b")
    assert failed["status"] == "error"
    assert failed["payload"]["error"].startswith("refused for ")
    assert "s3cr3t" not in json.dumps(client.lines)


@promise("plugins:errors")
@pytest.mark.thorough
async def test_arguments_that_the_parser_would_not_take_are_named_and_nothing_runs(tmp_path, nursery):
    lay_out(tmp_path, "demo", demo={"env": {"RAN": str(tmp_path / "ran")}})
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "click-button", {})
        client.run("b", "demo", "click-button", {"button-text": "x", "colour": 1})
        client.run("c", "demo", "click-button", [1])
        client.run("d", "demo", "click-button", CLICK, timeout="soon")
        said = [(await client.until(name))["payload"]["error"] for name in "cdab"]
    assert "args" in said[0]
    assert "timeout" in said[1]
    assert "button_text" in said[2]
    assert "colour" in said[3]
    assert not (tmp_path / "ran").exists()


@promise("plugins:errors")
@pytest.mark.thorough
async def test_an_error_that_is_no_text_is_told_as_json(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "fail", {"how": "object"})
        assert json.loads((await client.until("a"))["payload"]["error"]) == {"code": 7, "retry": True}


@promise("plugins:timeouts")
async def test_a_timeout_that_is_no_usable_number_is_refused_and_the_daemon_goes_on(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        for timeout in (10**400, -(10**400), 0, 601, True, [1]):
            client.run("a", "demo", "click-button", CLICK, timeout=timeout)
            assert "timeout" in (await client.until("a"))["payload"]["error"]
        client.ask("h", "health")
        assert (await client.until("h"))["payload"] == "ok"
    assert client.statuses("a") == ["error"] * 6


@promise("plugins:timeouts")
async def test_a_job_that_takes_longer_than_its_timeout_is_killed_and_says_so(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "wait", {"path": str(tmp_path / "never")}, timeout=0.5)
        client.run("b", "demo", "say", {"text": "next"})
        assert await client.until("a") == {"id": "a", "status": "timeout", "payload": {"error": "timeout"}}
        assert (await client.until("b"))["payload"] == "next"
    assert client.statuses("a") == ["queued", "started", "timeout"]


@promise("plugins:raw")
async def test_output_is_json_or_else_the_text_also_where_it_is_empty_or_beyond_json(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    printed = {"{}": {}, "[]": [], '""': "", "false": False, "NaN": "NaN", "-Infinity": "-Infinity", "1e999": "1e999"}
    printed |= {'"\\ud800"': "?", '{"a": 1}{"b": 2}': '{"a": 1}{"b": 2}'}
    printed |= {"Done, thanks": "Done, thanks", '{"a": 1}': {"a": 1}, "5": 5, "null": None, "line\nline": "line\nline"}
    async with daemon(nursery, tmp_path, "--local") as client:
        for number, text in enumerate(printed):
            client.run(number, "demo", "say", {"text": text})
        told = [await client.until(number) for number in range(len(printed))]
    assert [line["status"] for line in told] == ["success"] * len(printed)
    assert [line["payload"] for line in told] == list(printed.values())


@promise("plugins:hyphens")
async def test_whole_numbers_may_be_written_with_a_point_and_an_argument_is_given_once(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "click-button", {"button-text": "x", "row": 7.0})
        client.run("b", "demo", "click-button", {"button-text": "x", "button_text": "y"})
        assert "button_text" in (await client.until("b"))["payload"]["error"]
        assert (await client.told("a", "success"))["payload"]["row"] == 7
    assert client.statuses("b") == ["error"]


@promise("plugins:hyphens")
@pytest.mark.thorough
async def test_arguments_are_taken_as_a_command_line_writes_them(tmp_path, nursery):
    lay_out(tmp_path, "demo", "other")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "click-button", {"--button-text": 5, "row": 2, "loud": "true"})
        client.run("b", "other", "run", {"left": "40", "right": "1.5"})
        client.run("c", "demo", "click-button", {"button_text": "x", "row": None})
        assert (await client.until("a"))["payload"] == {"clicked": "5", "row": 2, "loud": True}
        assert (await client.until("b"))["payload"] == 41.5
        assert (await client.until("c"))["payload"] == {"clicked": "x", "row": None, "loud": False}


@promise("plugins:attach")
async def test_the_same_id_and_payload_tell_the_jobs_state_and_another_payload_is_a_conflict(tmp_path, nursery):
    lay_out(tmp_path, "demo", demo={"env": {"RAN": str(tmp_path / "ran")}})
    gate = tmp_path / "gate"
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "wait", {"path": str(gate)})
        await client.until("a", "started")
        client.run("a", "demo", "wait", {"path": str(gate)})
        assert (await client.until("a", "started"))["payload"] == {}
        client.run("a", "demo", "wait", {"path": str(gate)}, timeout=5)
        assert await client.until("a") == {"id": "a", "status": "error", "payload": {"error": "id_conflict"}}
        gate.touch()
        assert (await client.until("a"))["status"] == "success"
        client.run("a", "demo", "wait", {"path": str(gate)})
        assert (await client.until("a"))["payload"] == {"found": str(gate)}
    assert (tmp_path / "ran").read_text(encoding="utf-8") == "wait\n"


@promise("plugins:one-thread")
async def test_local_jobs_of_all_plugins_run_one_after_another_in_order(tmp_path, nursery):
    lay_out(tmp_path, "demo", "other")
    gate = tmp_path / "gate"
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "wait", {"path": str(gate)})
        client.run("b", "other", "run", {"left": 1})
        client.run("c", "demo", "say", {"text": "c"})
        await client.until("a", "started")
        client.ask("h", "health", detail=True)
        detail = (await client.until("h"))["payload"]
        assert (detail["queue"], detail["running"]) == (2, 1)
        gate.touch()
        await client.until("c")
        client.ask("h", "health", detail=True)
        detail = (await client.until("h"))["payload"]
    told = [(line["id"], line["status"]) for line in client.lines if line.get("status") in {"started", "success"}]
    of_jobs = [each for each in told if each[0] != "h"]
    assert of_jobs == [(name, status) for name in "abc" for status in ("started", "success")]
    assert detail["jobs"] == {"demo": {"success": 2}, "other": {"success": 1}}
    assert detail["seconds"]["demo"]["count"] == 2
    assert b"do not survive" in (tmp_path / "stderr").read_bytes()


@promise("plugins:found")
async def test_a_folder_of_plugins_that_the_file_beside_it_does_not_name_is_told(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    (tmp_path / "toolbox.json").write_text("{}", encoding="utf-8")
    async with daemon(nursery, tmp_path) as client:
        client.ask("h", "help")
        assert (await client.until("h"))["payload"] == {"plugins": {}}
    told = (tmp_path / "stderr").read_text(encoding="utf-8")
    assert f'{tmp_path / "plugins"} is not used; add "plugins": "plugins/" to {tmp_path / "toolbox.json"}' in told


@promise("plugins:ready")
async def test_at_the_end_of_its_input_the_daemon_says_so_and_exits_with_0(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path) as client:
        assert await client.end() == ([{"status": "shutdown"}], 0)


@promise("plugins:ready")
@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ('{"id": "h", "command": "health"}', {"id": "h", "status": "success", "payload": "ok"}),
        ('{"id": "h", "comm', {"id": None, "status": "error", "payload": {"error": "bad_json"}}),
    ],
)
async def test_a_last_line_needs_no_line_break(tmp_path, nursery, line, answer):
    lay_out(tmp_path)
    async with daemon(nursery, tmp_path) as client:
        client.process.stdin.write(line.encode())
        assert await client.end() == ([answer, {"status": "shutdown"}], 0)


@promise("plugins:timeouts")
async def test_the_timeout_of_a_local_job_counts_from_its_start_though_another_daemon_keeps_its_plugin(
    tmp_path, nursery
):
    lay_out(tmp_path, "demo")
    gate = tmp_path / "gate"
    async with daemon(nursery, tmp_path, "--local") as first, daemon(nursery, tmp_path, "--local") as second:
        first.run("a", "demo", "wait", {"path": str(gate)})
        await first.until("a", "started")
        # On a busy machine the process alone may take some seconds.
        second.run("b", "demo", "say", {"text": "b"}, timeout=6)
        await second.until("b", "queued")
        await asyncio.sleep(6.5)
        gate.touch()
        assert (await second.until("b"))["payload"] == "b"


@promise("plugins:ready")
@pytest.mark.thorough
async def test_jobs_that_do_not_survive_are_carried_out_before_the_end_of_the_input_ends_the_daemon(nursery, tmp_path):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "say", {"text": "a"})
        client.run("b", "demo", "say", {"text": "b"})
        lines, code = await client.end()

    told = [(line.get("id"), line["status"]) for line in lines if line["status"] != "queued"]
    assert told == [
        *[("a", "started"), ("a", "success"), ("b", "started"), ("b", "success")],
        (None, "shutdown"),
    ]
    assert code == 0


@promise("plugins:ready")
async def test_a_signal_amid_a_job_ends_it_tells_what_is_known_and_shuts_down(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "demo", "wait", {"path": str(tmp_path / "never")})
        client.run("b", "demo", "say", {"text": "b"})
        await client.until("a", "started")
        client.process.send_signal(signal.SIGTERM)
        lines, code = await client.rest()
    assert lines == [
        {"id": "a", "status": "error", "payload": {"error": "outcome_unknown"}},
        {"id": "b", "status": "error", "payload": {"error": "engine_unavailable"}},
        {"status": "shutdown"},
    ]
    assert code == 0


@promise("plugins:ready")
def test_a_signal_ends_a_daemon_whose_client_does_not_read(tmp_path):
    lay_out(tmp_path)
    environment = os.environ | {
        "BACKSTAY_HOME": str(tmp_path / "home"),
        "BACKSTAY_TOOLBOX": str(tmp_path / "toolbox.json"),
    }
    with subprocess.Popen(
        [sys.executable, str(ENTRY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
    ) as process:
        process.stdin.write(b'{"id": "h", "command": "health"}\n' * 1900)  # their answers are more than a pipe holds
        while not is_full(fcntl.ioctl(process.stdout, termios.FIONREAD, bytes(4))):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def is_full(unread):
    """Return whether a pipe takes no more than one small write, by what FIONREAD says of it."""
    return int.from_bytes(unread, sys.byteorder) > 60_000


@promise("plugins:found")
async def test_a_plugin_that_is_dropped_in_changed_or_removed_is_seen_without_a_restart(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "other", "run", {"left": 1})
        assert (await client.until("a"))["payload"] == {"error": "not_found"}
        shutil.copytree(PLUGINS / "other", tmp_path / "plugins/other")
        client.run("a", "other", "run", {"left": 1})
        assert (await client.until("a"))["payload"] == 1.5
        changed = tmp_path / "plugins/other/cli.py"
        changed.write_text(changed.read_text(encoding="utf-8").replace("--right", "--third"), encoding="utf-8")
        client.ask("h", "help")
        assert (await client.until("h"))["payload"]["plugins"]["other"]["run"]["args"] == ["--left", "--third"]
        shutil.rmtree(tmp_path / "plugins/other")
        client.ask("h", "help")
        assert set((await client.until("h"))["payload"]["plugins"]) == {"demo"}


@promise("plugins:found")
async def test_a_plugin_that_cannot_be_loaded_leaves_the_others_alone_and_a_job_is_told_why(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    (tmp_path / "plugins/broken").mkdir()
    (tmp_path / "plugins/broken/cli.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.ask("h", "help")
        assert set((await client.until("h"))["payload"]["plugins"]) == {"demo"}
        client.run("a", "broken", "run")
        assert "nothing_of_this_name" in (await client.until("a"))["payload"]["error"]


@promise("plugins:found")
async def test_plugins_are_asked_beside_each_other_so_that_none_waits_for_one_that_hangs(tmp_path, nursery):
    lay_out(tmp_path, **{name: {"jail": False} for name in ("first", "second")})
    imported = tmp_path / "imported"
    plugins = {
        "first": f"while not Path({str(imported)!r}).exists(): time.sleep(0.02)",
        "second": f"Path({str(imported)!r}).touch()",
    }
    for name, begin in plugins.items():
        (tmp_path / "plugins" / name).mkdir(parents=True)
        (tmp_path / "plugins" / name / "cli.py").write_text(
            f"import argparse, time\nfrom pathlib import Path\n{begin}\nparser = argparse.ArgumentParser()\n"
            "parser.add_argument('--shown', action=argparse.BooleanOptionalAction)\nparser.parse_args()\n",
            encoding="utf-8",
        )
    async with daemon(nursery, tmp_path) as client:
        client.ask("h", "help")
        found = (await client.until("h"))["payload"]["plugins"]
    assert [(name, actions["run"]["args"]) for name, actions in found.items()] == [
        (name, ["--shown"]) for name in plugins
    ]


@promise("plugins:stdout")
async def test_nothing_but_the_protocol_is_on_stdout(tmp_path):
    lay_out(tmp_path, "demo")
    # Whatever a library prints while it is loaded goes to stderr.
    (tmp_path / "noisy").mkdir()
    (tmp_path / "noisy/sitecustomize.py").write_text(
        "import atexit, sys\natexit.register(print, 'noise at the end')\nsys.stderr.write('noise at the start')\n",
        encoding="utf-8",
    )
    async with cold(tmp_path, "--local", PYTHONPATH=str(tmp_path / "noisy")) as client:
        client.run("a", "demo", "click-button", CLICK)
        await client.until("a")
        assert await client.end() == ([{"status": "shutdown"}], 0)
    assert "noise at the end" in (tmp_path / "stderr").read_text(encoding="utf-8")


@promise("plugins:cache")
async def test_an_unchanged_folder_is_not_asked_again_and_only_the_standard_library_is_loaded(tmp_path):
    lay_out(tmp_path, *["demo"])
    for number in range(4):
        shutil.copytree(PLUGINS / "other", tmp_path / f"plugins/other{number}")
    async with cold(tmp_path) as client:
        await client.end()
    # An interpreter that names each module that it loads: only the daemon's own, and those of the standard library.
    loaded = tmp_path / "loaded"
    kept = f"open({str(loaded)!r}, 'a').write(' '.join(sys.modules) + '\\n')"
    shown = f"import atexit, sys\natexit.register(lambda: {kept})\n"
    (tmp_path / "watched").mkdir()
    (tmp_path / "watched/sitecustomize.py").write_text(shown, encoding="utf-8")
    async with cold(tmp_path, PYTHONPATH=str(tmp_path / "watched")) as client:
        client.ask("h", "help")
        assert set((await client.until("h"))["payload"]["plugins"]) == {"demo", *(f"other{n}" for n in range(4))}
        await client.end()
    processes = loaded.read_text(encoding="utf-8").splitlines()
    assert len(processes) == 1  # no process asked the plugins
    roots = {name.partition(".")[0] for name in processes[0].split()}
    strange = roots - set(sys.stdlib_module_names) - {"gateways", "system", "sitecustomize", "__main__", "backstay"}
    assert not {name for name in strange if not name.startswith(("_", "distutils"))}
    assert not roots & {"asyncio", "pydantic", "temporalio"}


@promise("plugins:anywhere")
async def test_the_file_runs_by_a_symlink_from_any_folder_without_arguments_and_settings(tmp_path, nursery):
    shutil.copytree(PLUGINS / "other", tmp_path / "mcp/plugins/other")
    (tmp_path / "mcp/mcp_stdio.py").symlink_to(ENTRY)
    (tmp_path / "elsewhere").mkdir()
    entry = tmp_path / "mcp/mcp_stdio.py"
    plain = {"BACKSTAY_TOOLBOX": None, "entry": entry, "cwd": tmp_path / "elsewhere"}
    async with cold(tmp_path, "--local", **plain) as client:
        client.run("a", "other", "run", {"left": 2})
        assert (await client.until("a"))["payload"] == 2.5
    # The second start finds the folder of the first one's files, and obeys it.
    async with daemon(nursery, tmp_path, "--local", **plain) as client:
        client.run("a", "other", "run", {"left": 3})
        assert (await client.until("a"))["payload"] == 3.5


@promise("plugins:anywhere")
@pytest.mark.thorough
async def test_the_file_runs_as_it_lies_in_the_wheel(tmp_path):
    lay_out(tmp_path, "other")
    # As hatchling lays it out: the package, and in it the folders that a worker runs from.
    app = tmp_path / "site/backstay/_app"
    shutil.copytree(HOUSE / "backstay", tmp_path / "site/backstay", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("gateways", "people", "sandbox", "store", "system", "toolbox"):
        shutil.copytree(HOUSE / room, app / room, ignore=shutil.ignore_patterns("__pycache__"))
    entry = app / "gateways/plugins_stdio.py"
    path = os.pathsep.join([str(tmp_path / "site")])
    async with cold(tmp_path, "--local", entry=entry, PYTHONPATH=path, PYTHONSAFEPATH="1") as client:
        client.run("a", "other", "run", {"left": 2})
        assert (await client.until("a"))["payload"] == 2.5


@promise("plugins:anywhere")
def test_an_interpreter_without_the_requirements_is_told_so_with_exit_code_2():
    ended = subprocess.run([sys.executable, "-I", "-S", ENTRY], capture_output=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert b"is not installed" in ended.stderr


@promise("plugins:log")
async def test_the_log_has_every_request_and_its_end_without_secrets_and_is_rotated(tmp_path, nursery):
    lay_out(tmp_path, "demo", demo={"env": {"BOT_KEY": "${BOT_KEY}"}})
    token = "".join(["123456789:", "A" * 35])
    async with daemon(nursery, tmp_path, "--local", BOT_KEY="s3cr3t-value-9") as client:
        client.run("a", "demo", "say", {"text": f"the key s3cr3t-value-9 and {token}"})
        client.run("b", "demo", "fail", {"how": "stderr"})
        await client.until("b")
        client.run("b", "demo", "nothing")
        await client.until("b")
        await client.end()
    log = tmp_path / ".backstay/mcp.log"
    text = log.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["event"], line.get("id"), line.get("action"), line.get("status")) for line in lines] == [
        ("request", "a", "say", None),
        ("request", "b", "fail", None),
        ("answer", "a", "say", "success"),
        ("answer", "b", "fail", "error"),
        ("request", "b", "nothing", None),
        ("answer", "b", "nothing", "error"),
    ]
    assert all(line["at"].endswith("Z") for line in lines)
    assert (lines[2]["plugin"], lines[2]["action"], "duration_ms" in lines[2]) == ("demo", "say", True)
    assert "s3cr3t" not in text
    assert token not in text
    assert log.stat().st_mode & 0o077 == 0
    with log.open("ab") as file:
        file.write(b"x" * (5 * 1024 * 1024) + b"\n")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.ask("h", "health")
        await client.until("h")
        await client.end()
    assert (tmp_path / ".backstay/mcp.log.1").stat().st_size > 5 * 1024 * 1024
    assert log.stat().st_size < 1000


@promise("plugins:no-port")
async def test_the_daemon_opens_no_port_whatever_the_settings_of_workers_say(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local", BACKSTAY_METRICS_ADDRESS="127.0.0.1:0") as client:
        client.run("a", "demo", "click-button", CLICK)
        await client.until("a")
        assert await asyncio.to_thread(listening, client.process.pid) == set()


@promise("plugins:sources")
async def test_a_plugin_runs_its_sources_whatever_bytecode_lies_in_its_folder(tmp_path, nursery):
    source = "import argparse\n\nfrom words import WORD\n\nargparse.ArgumentParser().parse_args()\nprint(WORD)\n"
    folder = tmp_path / "plugins/speaking"
    folder.mkdir(parents=True)
    (folder / "cli.py").write_text(source, encoding="utf-8")
    (folder / "words.py").write_text("WORD = 'of the source'\n", encoding="utf-8")
    lay_out(tmp_path)
    other = tmp_path / "other.py"
    other.write_text("WORD = 'of the bytecode'\n", encoding="utf-8")
    lies = importlib.util.cache_from_source(str(folder / "words.py"))
    py_compile.compile(str(other), lies, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "speaking", "run")
        assert (await client.until("a"))["payload"] == "of the source"


@promise("plugins:sources")
async def test_a_module_without_a_source_that_changes_is_seen_without_a_restart(tmp_path, nursery):
    folder = tmp_path / "plugins/named"
    folder.mkdir(parents=True)
    source = "import argparse\n\nfrom words import WORD\n\nparser = argparse.ArgumentParser()\n"
    source += "parser.add_argument(WORD)\nparser.parse_args()\n"
    (folder / "cli.py").write_text(source, encoding="utf-8")
    lay_out(tmp_path)
    async with daemon(nursery, tmp_path, "--local") as client:
        for word in ("--first", "--second"):
            (tmp_path / "words.py").write_text(f"WORD = '{word}'\n", encoding="utf-8")
            py_compile.compile(str(tmp_path / "words.py"), str(folder / "words.pyc"))
            client.ask(word, "help")
            assert (await client.until(word))["payload"]["plugins"]["named"]["run"]["args"] == [word]


@promise("plugins:asked-again")
async def test_a_plugin_that_could_not_be_asked_is_asked_again(tmp_path, nursery):
    lay_out(tmp_path)
    gate = tmp_path / "gate"
    async with daemon(nursery, tmp_path, "--local") as client:
        (tmp_path / "plugins/slow").mkdir(parents=True)
        (tmp_path / "plugins/slow/cli.py").write_text(
            f"import argparse, time\nfrom pathlib import Path\nwhile not Path({str(gate)!r}).exists():\n"
            "    time.sleep(0.02)\nargparse.ArgumentParser().parse_args()\nprint('done')\n",
            encoding="utf-8",
        )
        client.ask("a", "help")
        await eventually(lambda: asking_in(tmp_path))
        os.kill(asking_in(tmp_path)[0], signal.SIGKILL)
        assert (await client.until("a"))["payload"]["plugins"] == {}
        gate.touch()
        client.run("b", "slow", "run")
        assert (await client.until("b"))["payload"] == "done"


@promise("plugins:asked-again")
async def test_a_plugin_that_could_not_be_loaded_is_asked_again_by_the_next_daemon(tmp_path, nursery):
    lay_out(tmp_path)
    needed, folder = tmp_path / "needed", tmp_path / "plugins/needy"
    folder.mkdir(parents=True)
    source = f"import argparse, sys\nsys.path.append({str(needed)!r})\nimport of_no_plugin\n"
    (folder / "cli.py").write_text(source + "argparse.ArgumentParser().parse_args()\nprint('done')\n", encoding="utf-8")
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("a", "needy", "run")
        assert "of_no_plugin" in (await client.until("a"))["payload"]["error"]
        await client.end()
    needed.mkdir()
    (needed / "of_no_plugin.py").touch()
    async with daemon(nursery, tmp_path, "--local") as client:
        client.run("b", "needy", "run")
        assert (await client.until("b"))["payload"] == "done"


@promise("plugins:relative-places")
async def test_variables_that_name_the_files_may_be_relative_to_the_folder_of_the_start(tmp_path, nursery, monkeypatch):
    monkeypatch.chdir(tmp_path)
    below = lay_out(tmp_path / "below", "demo", demo={"env": {"RAN": str(tmp_path / "ran")}})
    places = {"BACKSTAY_TOOLBOX": "below/toolbox.json", "BACKSTAY_HOME": "own", "cwd": tmp_path}
    async with daemon(nursery, below, "--local", **places) as client:
        client.run("a", "demo", "say", {"text": "a"})
        assert (await client.until("a"))["payload"] == "a"
    assert (tmp_path / "ran").exists()
    assert (tmp_path / "own/plugins-help.json").exists()
    assert not (below / "own").exists()


@promise("plugins:unusable-settings")
async def test_a_job_is_told_what_is_wrong_with_settings_that_cannot_be_loaded(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with daemon(nursery, tmp_path, "--local") as client:
        (tmp_path / ".env").write_text("BACKSTAY_SETTEL_AFTER_SECONDS=1\n", encoding="utf-8")
        client.run("a", "demo", "say", {"text": "a"})
        assert "BACKSTAY_SETTEL_AFTER_SECONDS" in (await client.until("a"))["payload"]["error"]
        (tmp_path / ".env").unlink()
        client.run("b", "demo", "say", {"text": "b"})
        assert (await client.until("b"))["payload"] == "b"


def asking_in(folder):
    """Return the processes that ask plugins what they do for a daemon in this folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"--describe" in (place / "cmdline").read_bytes() and (place / "cwd").readlink() == folder:
                found.append(int(place.name))
    return found
