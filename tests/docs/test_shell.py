"""Every shell block of the documents names commands, flags and targets that exist."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from backstay.approvals.approval import ApprovalRequest, RequestKind, Verdict
from backstay.approvals.view import commands
from gateways.terminal.app import build
from tests.docs.blocks import HOUSE, blocks
from tests.requirements import promise

BLOCKS = blocks("bash")
LINES = [(block.place, line) for block in BLOCKS for line in block.text.splitlines() if line.strip()]
APP = build()
FREE = {"cd", "export", "source", "docker", "pip", "umask", "ls", "mkdir", "cp", "rm", "find", "tar"}
FREE |= {"pg_dump", "pg_restore"}


def command_line_accepts(tokens: list[str]) -> None:
    APP.parse_args(tokens, exit_on_error=False, print_error=False)


@promise("docs:commands")
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_a_shell_block_is_correct_shell(block):
    checked = subprocess.run(("bash", "-n", "-c", block.text), capture_output=True, check=False, timeout=150)

    assert (checked.returncode, checked.stderr) == (0, b"")


@promise("docs:commands")
@pytest.mark.parametrize(("place", "line"), LINES, ids=[f"{place} {line[:40]}" for place, line in LINES])
def test_a_command_exists_and_takes_these_flags(place, line):
    program, *rest = shlex.split(line)
    match program:
        case "backstay":
            command_line_accepts(rest)
        case "make":
            makefile = (HOUSE / "Makefile").read_text(encoding="utf-8")
            assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in rest), place
        case "python" if rest[0] == "-c":
            compile(rest[1], place, "exec")
        case "python":
            assert rest[0] != "-m" or (HOUSE / rest[1].replace(".", "/") / "__main__.py").is_file(), place
            assert rest[0] == "-m" or (HOUSE / rest[0]).is_file(), place
        case "sh":
            assert (HOUSE / rest[0]).is_file(), place
        case "npm":
            scripts = json.loads((HOUSE / "examples/typescript/package.json").read_text(encoding="utf-8"))["scripts"]
            assert rest[0] in {"ci", *scripts}, place
        case "uvicorn":
            folder, module = rest[rest.index("--app-dir") + 1], rest[-1].partition(":")[0]
            assert (HOUSE / folder / f"{module}.py").is_file(), place
        case _:
            assert program in FREE, f"{place}: {program}"


@promise("docs:commands")
def test_a_flag_that_does_not_exist_is_noticed():
    with pytest.raises(CycloptsError):
        command_line_accepts(["approve", "WORKFLOW", "r1", "--no-such-flag"])
    with pytest.raises(CycloptsError):
        command_line_accepts(["no-such-command"])


@promise("docs:cli")
def test_every_command_is_documented():
    documented = {shlex.split(line)[1] for _, line in LINES if line.startswith("backstay ")}

    assert {name for name in APP if not name.startswith("-")} - documented == set()


@promise("docs:view-commands")
@pytest.mark.parametrize("name", ["run", "-dash", "it's $(one) `id`"])
def test_the_commands_that_people_are_shown_are_commands(name):
    options = tuple(verdict.value for verdict in Verdict)
    request = ApprovalRequest(id="r1", kind=RequestKind.CALL, question="May it?", options=options, args_digest="0" * 64)
    lines = commands(name, request)

    assert len(lines) == len(set(options) - {"modify"})
    for line in lines:
        assert name in shlex.split(line)
        command_line_accepts(shlex.split(line)[1:])


@promise("docs:settings-named")
def test_settings_in_shell_blocks_exist():
    from backstay.settings import Settings

    known = {f"BACKSTAY_{name.upper()}" for name in Settings.model_fields}
    named = {
        name
        for page in {Path(HOUSE / block.place.partition(":")[0]) for block in BLOCKS}
        for name in re.findall(r"\bBACKSTAY_[A-Z_]+\b", page.read_text(encoding="utf-8"))
    }

    assert named - known - {"BACKSTAY_"} == set()
