"""Bad input: exit code 2 and one line that names field, value and fix, before anything is started."""

import asyncio
import socket

import pytest

from gateways.terminal.app import run
from tests.cli.commands import bare, command, forked
from tests.requirements import promise

NOWHERE = bare(TEMPORAL_ADDRESS="127.0.0.1:9")


@promise("clients:exit-2")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", ""], ["text: empty", "say in a sentence"]),
        (["run", "x", "--budget.max-steps", "0"], ["--budget.max-steps", "'0'", "greater than or equal to 1"]),
        (["run", "x", "--budget.max-stepps", "3"], ["--budget.max-stepps"]),
        (["run", "x", "--output", "xml"], ["xml", "text", "json"]),
        (["run", "x", "--input", "{"], ["--input", "invalid JSON"]),
        (["run", "x", "--input", "[1]"], ["input", "[1]"]),
        (["run", "--plan", "missing.yaml"], ["--plan", "missing.yaml"]),
        (["run", "--plan", "plan.yaml"], ["plan.steps.0.tool", "missing"]),
        (["run", "x", "--policy", "plan.txt"], ["--policy", "plan.txt", "not a mapping"]),
        (["run", "--plan", "date.yaml"], ["--plan", "2026-02-30", "day is out of range", "quotes", "line 1"]),
        (["run", "--plan", "bool.yaml"], ["--plan", "line 2", "maybe: not of the type that its tag !!bool says"]),
        (["run", "--plan", "int.yaml"], ["--plan", "line 1", ": not of the type that its tag !!int says"]),
        (["run", "--plan", "time.yaml"], ["--plan", "line 1", "soon: not of the type that its tag !!timestamp says"]),
        (["run", "--plan", "key.yaml"], ["--plan", "key.yaml", "quotes"]),
        (["run", "x", "--policy", "emptied.yaml"], ["allow[0].when: empty", "remove the key"]),
        (["run", "--plan", "itself.yaml"], ["--plan", "itself.yaml"]),
        (["run", "x", "--policy", "deep.yaml"], ["--policy", "nested too deeply"]),
        (["run", "x", "--output-schema", "missing.yaml"], ["--output-schema", "missing.yaml"]),
        (["run", "x", "--output-schema", "plan.txt"], ["--output-schema", "plan.txt", "not a mapping"]),
        (["top-up", "w"], ["limits", "--max-steps 5"]),
        (["top-up", "w", "--max-steps", "-1"], ["--max-steps", "'-1'"]),
        (["answer", "w", "r1"], ["--answer", "--verdict"]),
        (["approve", "w", "r1", "--calls", "{"], ["--calls", "invalid JSON"]),
        (["approve", "w"], ["--request"]),
        (["list", "--limit", "0"], ["--limit: must be 1 or more"]),
        (["list", "--words", "x", "--limit", "-1"], ["--limit: must be 1 or more"]),
        (["tools", "search", "x", "--limit", "0"], ["--limit: must be 1 or more"]),
        (["memory", "search", "x", "--limit", "-1"], ["--limit: must be 1 or more"]),
        (["logs", "--lines", "-1"], ["--lines: must be 0 or more"]),
        (["no-such-command"], ["no-such-command"]),
        (["dev", "--port", "70000"], ["--port", "70000"]),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
async def test_what_is_wrong_is_named_in_one_line(tmp_path, monkeypatch, capsys, arguments, named):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:9")
    (tmp_path / "plan.yaml").write_text("steps: [{arguments: {}}]", encoding="utf-8")
    (tmp_path / "date.yaml").write_text("due: !!timestamp 2026-02-30", encoding="utf-8")
    (tmp_path / "bool.yaml").write_text("title: x\nyes: !!bool maybe", encoding="utf-8")
    (tmp_path / "int.yaml").write_text("steps: !!int", encoding="utf-8")
    (tmp_path / "time.yaml").write_text("due: !!timestamp soon", encoding="utf-8")
    (tmp_path / "key.yaml").write_text("!!timestamp 2026-02-03: x", encoding="utf-8")
    (tmp_path / "itself.yaml").write_text("steps: &a [*a]", encoding="utf-8")
    (tmp_path / "emptied.yaml").write_text("allow: [{tool: mail.*, when: }]", encoding="utf-8")
    (tmp_path / "deep.yaml").write_text("[" * 3000 + "]" * 3000, encoding="utf-8")
    (tmp_path / "plan.txt").write_text("just words", encoding="utf-8")

    code = await asyncio.to_thread(run, arguments)

    out, err = capsys.readouterr()
    assert (code, out, len(err.splitlines())) == (2, "", 1), err
    assert err.startswith("backstay: ")
    assert [word for word in named if word not in err] == []


@promise("clients:other-locales")
async def test_what_a_locale_cannot_show_is_written_as_its_code(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "worker.log").write_text("└─ caf\u00e9 漢\n", encoding="utf-8")
    where = bare(BACKSTAY_HOME=str(tmp_path), PYTHONIOENCODING="ascii")

    done = await command("logs", "--raw", environment=where, folder=tmp_path)

    assert (done.code, done.out, done.err) == (0, "\\u2514\\u2500 caf\\xe9 \\u6f22\n", "")


@promise("clients:temporal")
@pytest.mark.parametrize("arguments", [["run", "x"], ["list"], ["approve", "w", "r1", "--by", "ana"], ["show", "w"]])
async def test_without_temporal_the_address_and_the_remedy_are_named(nursery, tmp_path, arguments):
    done = await forked(nursery, *arguments, environment=NOWHERE, folder=tmp_path)

    assert done.code == 2
    assert done.err == (
        "backstay: Temporal cannot be reached at 127.0.0.1:9; start one with `backstay dev`, or set TEMPORAL_ADDRESS\n"
    )
    assert list(tmp_path.iterdir()) == []


@promise("clients:temporal")
async def test_an_address_that_answers_something_else_ends_in_the_same_words(nursery, tmp_path):
    # The kernel takes connections, and nobody ever says a word.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = await forked(nursery, "list", environment=bare(TEMPORAL_ADDRESS=address), folder=tmp_path)

    assert done.code == 2
    assert f"Temporal cannot be reached at {address}" in done.err


@promise("clients:temporal")
async def test_a_namespace_that_does_not_exist_is_named(temporal, nursery, tmp_path):
    address = temporal.service_client.config.target_host

    done = await forked(
        nursery, "list", environment=bare(TEMPORAL_ADDRESS=address, TEMPORAL_NAMESPACE="nowhere"), folder=tmp_path
    )

    assert done.code == 2
    assert "TEMPORAL_NAMESPACE" in done.err
    assert "'nowhere'" in done.err


@promise("clients:exit-2")
async def test_a_run_that_does_not_exist_is_named(temporal, nursery, tmp_path):
    address = temporal.service_client.config.target_host

    done = await forked(
        nursery, "approve", "no-such-run", "r1", environment=bare(TEMPORAL_ADDRESS=address), folder=tmp_path
    )

    assert (done.code, done.out) == (2, "")
    assert "there is no run no-such-run" in done.err


@promise("clients:exit-2")
async def test_a_misspelt_setting_is_named_with_its_likely_name(nursery, tmp_path):
    done = await forked(nursery, "list", environment=bare(BACKSTAY_HOMME="x"), folder=tmp_path)

    assert done.code == 2
    assert "BACKSTAY_HOMME" in done.err
    assert "BACKSTAY_HOME" in done.err


@promise("operations:env-lines")
@pytest.mark.parametrize(
    "lost",
    ['BACKSTAY_APPROVER_KEY="0123456789', "A: 0123456789", "A:0123456789", "A='b' 0123456789", "a0123456789"],
)
async def test_a_line_of_the_env_file_that_cannot_be_read_is_named_and_not_quoted(nursery, tmp_path, lost):
    (tmp_path / ".env").write_text(f"# settings\nOTHER=1\n\n{lost}\nMORE=2\n", encoding="utf-8")

    done = await forked(nursery, "list", environment=bare(BACKSTAY_TRUSTED=str(tmp_path)), folder=tmp_path)

    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1), done.err
    assert done.err.startswith("backstay: .env: line 4: not a variable; write NAME=value")
    assert "0123456789" not in done.err


@promise("operations:home-unusable")
@pytest.mark.parametrize(
    ("home", "reason", "arguments"),
    [
        ("file/home", "Not a directory", ("dev", "--headless", "--no-page")),
        ("file/home", "Not a directory", ("image", "build")),
        ("long", "File name too long", ("list",)),
        ("long", "File name too long", ("logs",)),
        ("long", "File name too long", ("audit", "verify")),
    ],
)
async def test_a_home_that_cannot_be_used_is_named_in_one_line(nursery, tmp_path, home, reason, arguments):
    (tmp_path / "file").write_text("", encoding="utf-8")
    place = tmp_path / home.replace("long", "long" * 70)
    variables = bare(BACKSTAY_HOME=str(place))

    done = await forked(nursery, *arguments, environment=variables, folder=tmp_path)

    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1), done.err
    assert done.err.startswith(f"backstay: {place}")
    assert f": {reason}; give this user access to it" in done.err
    assert "set BACKSTAY_HOME to another folder" in done.err


@promise("operations:home-unusable")
@pytest.mark.parametrize("home", ["file/home", "long"])
async def test_doctor_makes_every_check_where_the_home_cannot_be_used(nursery, tmp_path, home):
    (tmp_path / "file").write_text("", encoding="utf-8")
    place = tmp_path / home.replace("long", "long" * 70)
    variables = bare(BACKSTAY_HOME=str(place), TEMPORAL_ADDRESS="127.0.0.1:9")

    done = await forked(nursery, "doctor", environment=variables, folder=tmp_path)

    assert (done.code, done.err) == (1, "")
    *findings, last = [line.split(maxsplit=2) for line in done.out.splitlines()]
    told = {part for state, part, said in findings if state == "missing" and "set BACKSTAY_HOME" in said}
    assert told == {"jails", "workspaces"}
    assert last[2].startswith("checks passed; 5 missing")
