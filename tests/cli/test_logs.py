"""The logs of `backstay dev` at a terminal, and what shells complete."""

import asyncio
import json
import subprocess

import pytest

from gateways.terminal.logs import LogFile, told
from tests.cli.commands import bare, forked
from tests.requirements import promise

EVENT = {
    "timestamp": "2026-11-20T12:00:00Z",
    "level": "info",
    "event": "store.opened",
    "logger": "store",
    "database": "x",
}


@pytest.fixture
def home(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path


@pytest.fixture
def command(nursery, tmp_path):
    """Return what runs one command with the logs of the test."""

    async def run(*arguments):
        return await forked(nursery, *arguments, environment=bare(BACKSTAY_HOME=str(tmp_path)), folder=tmp_path)

    return run


@promise("clients:logs")
async def test_the_last_lines_of_a_log_are_told_in_the_order_of_when_and_what(command, home):
    lines = [json.dumps({**EVENT, "event": f"number.{number}"}) for number in range(100)]
    (home / "logs/worker.log").write_text("\n".join([*lines, "plain \x1b[2J words"]) + "\n", encoding="utf-8")

    done = await command("logs", "--lines", "2")
    raw = await command("logs", "--lines", "2", "--raw")

    assert done.code == 0
    assert done.out.splitlines() == [
        "2026-11-20T12:00:00Z  info  number.99  database=x",
        "plain <U+001B>[2J words",
    ]
    assert json.loads(raw.out.splitlines()[0])["event"] == "number.99"


@promise("clients:logs")
async def test_a_log_that_does_not_exist_and_a_number_that_cannot_be_are_refused_with_the_way_on(command, home):
    missing, few = await command("logs", "temporal"), await command("logs", "--lines", "-1")

    assert (missing.code, few.code) == (2, 2)
    assert "temporal.log: there is no such log; `backstay dev`, started in this folder, writes it" in missing.err
    assert "--lines" in few.err


@promise("clients:logs-followed")
def test_a_log_is_followed_over_half_lines_and_over_a_new_file_in_its_place(tmp_path):
    file = tmp_path / "worker.log"
    file.write_bytes(b"x" * 200_000 + b"\none\ntwo\nhal")
    log = LogFile(file)
    assert log.last(2) == ["one", "two"]

    with file.open("ab") as stream:
        stream.write(b"f\nthree\n")
    assert list(log.new()) == ["half", "three"]

    file.rename(tmp_path / "worker.log.1")
    assert list(log.new()) == []
    file.write_bytes(b"four\n")
    assert [*log.new(), *log.new()] == ["four"]

    file.write_bytes(b"5\n")
    assert [*log.new(), *log.new()] == ["5"]


@promise("clients:logs")
@pytest.mark.parametrize("line", ["[1]", "{", "", '"text"'])
def test_a_line_that_is_no_event_stays_as_it_is(line):
    assert told(line) == line


@promise("clients:logs-nested")
@pytest.mark.parametrize("name", ["timestamp", "level", "event", "name", "text"])
@pytest.mark.parametrize("value", [["a", 1], {"a": 1}, [], {}])
async def test_a_line_whose_words_are_lists_or_objects_is_told_with_the_others(command, home, name, value):
    line = json.dumps({**EVENT, name: value})
    (home / "logs/worker.log").write_text(f"{line}\nafter\n", encoding="utf-8")

    done = await command("logs")

    assert done.code == 0, done.err
    told_line, after = done.out.splitlines()
    assert f"{name}={json.dumps(value)}" in told_line
    assert ("store.opened" in told_line, after) == (name != "event", "after")


@promise("clients:command-list")
@pytest.mark.thorough
async def test_shells_are_given_scripts_that_complete_commands_and_their_flags(command):
    scripts = {shell: (await command("completion", shell)).out for shell in ("bash", "zsh", "fish")}

    typed = 'COMP_WORDS=(backstay und); COMP_CWORD=1; _backstay; printf "%s\\n" "${COMPREPLY[@]}"'
    completed = await asyncio.create_subprocess_exec(
        "bash", "-c", f"{scripts['bash']}\n{typed}", stdout=subprocess.PIPE
    )
    out, _ = await completed.communicate()
    assert out.split() == [b"undo"]
    assert "#compdef backstay" in scripts["zsh"]
    assert "complete -c backstay" in scripts["fish"]
