"""Files and shell in the toolbox: who sees them, what is declared of them, which commands the lists let through."""

import json
import random
import subprocess

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


SIGNS = [";", "&", "&&", "|", "||", "|&", ";;", ";&", "!", "(", ")", "{", "}", "((", "))", "if ", "then ", "A=1 "]
SIGNS += ["time "]
REDIRECTIONS = [
    ">",
    ">>",
    "<",
    "<>",
    ">|",
    "&>",
    "&>>",
    ">&",
    "<&",
    "<<<",
    "<<",
    "<<-",
    "2>",
    "2>&1 ",
    ">(",
    "<(",
    ">&-",
    "<&-",
    ">& -",
]
TEXTS = ["ls ", "rm ", "f", "f ", "x", " ", "\n", "\\\n", "'", '"', "#", " #", "\\", "$", "]", "$[", "''", "'>'", "';'"]
BASH = """
command_not_found_handle() { echo "$1" >> "$LOG"; return "$ANSWER"; }
while IFS= read -r -d "" -u 8 line; do
    : > f
    for ANSWER in 0 1; do (eval "$line"; wait) > /dev/null 2>&1 < /dev/null; done
    echo "= end" >> "$LOG"
done 8< lines
"""


def run_by_bash(lines, folder):
    """Return the names of the programs that bash would start for each line; it finds none of them."""
    (folder / "work").mkdir()
    (folder / "work" / "lines").write_text("".join(f"{line}\0" for line in lines))
    environment = {"PATH": "/nowhere", "LOG": str(folder / "log")}
    subprocess.run(["/bin/bash", "-c", BASH], check=True, cwd=folder / "work", env=environment, timeout=200)
    started = [set(part.split("\n")) - {""} for part in (folder / "log").read_text().split("= end\n")]
    assert len(started) == len(lines) + 1
    return started


@promise("workspaces:lists-as-bash")
def test_with_a_list_of_allowed_commands_bash_starts_no_other_however_signs_and_redirections_meet(tmp_path):
    met = [f"ls{sign}{more}{to}{space}f rm x"
           for sign in SIGNS for more in ("", " ", "\\\n") for to in REDIRECTIONS for space in ("", " ")]  # fmt: skip
    chance = random.Random(4)
    pieces = [*SIGNS, *REDIRECTIONS, *TEXTS]
    drawn = ["ls " + "".join(chance.choices(pieces, k=chance.randint(2, 9))) for _ in range(1500)]
    hidden = [
        "ls |&>| fi rm x",
        "ls # it's\nrm x #'",
        "cat <<f\n'\nf\nrm x #'",
        "ls $[1 #] ; rm x",
        "((A=1 #)); rm x",
        "A=1 if ls",
        ">&-rm ls f",
        "ls | time cat",
        "ls |&\n\ntime cat",
        "ls |\\\n time cat",
        "ls | ! time cat",
        "ls | { time cat; }",
        "time -p -p ls",
        "ls | time -p cat",
        "time 2>f -p ls",
        "time A=1 -p ls",
    ]
    lines = [*met, *drawn, *hidden, "cat <\\\n<f\n'\nf\nrm x #'", "(\\\n(A=1 #)); rm x", "cat <<''\n'\n\nrm x #'"]
    lists = CommandLists(allow=("ls", "cat"), deny=())
    started = run_by_bash(lines, tmp_path)
    allowed = [(line, names) for line, names in zip(lines, started, strict=False) if lists.refusal(line) is None]
    assert [line for line, names in allowed if not names <= {"ls", "cat"}] == []
    # Neither side is empty: some lines pass, and bash would have started what is refused.
    assert sum(bool(names) for _, names in allowed) > 50
    assert sum("rm" in names for names in started) > 100


@promise("workspaces:lists-as-bash")
@pytest.mark.parametrize(
    "command",
    ["ls>f;cat<f", "ls&>f&&cat<f", "ls 2>f >&2;cat", "ls ';' '>' rm", "cat <<<rm", "{ ls; } | cat", "! ls",
     "time ls | cat", "time -p ls", "ls && time cat", "ls | { time cat; }", "ls | ! time cat",
     "ls \\\n -l", "ls &&\\\ncat", 'ls "a\nrm"', "ls >f x 2>&1"],
)  # fmt: skip
def test_with_a_list_of_allowed_commands_lines_of_these_alone_pass(command):
    assert CommandLists(allow=("ls", "cat"), deny=()).refusal(command) is None


@promise("workspaces:lists-as-bash")
@pytest.mark.parametrize(
    ("command", "passes"),
    [
        ("ls # it's a list", True),
        ("cat > a <<'EOF'\nit's here\nEOF\nls", True),
        ("cat > a <<EOF\nit's here\nEOF\nrm a", False),
        ("sh <<EOF\ntrue;rm a\nEOF", False),
        ("ls # it's\nrm a # '", False),
    ],
)
def test_comments_and_here_documents_are_read_as_bash_reads_them(command, passes):
    assert (CommandLists(deny=("rm",)).refusal(command) is None) is passes


@promise("workspaces:lists-inside")
@pytest.mark.parametrize(
    "command",
    ['echo "$(rm x)"', 'x="$(rm x)"; echo $x', "echo `rm x`", 'echo "a `rm x` b"', "x=`rm x`", 'echo "${x:-$(rm x)}"',
     'echo "$(echo "$(rm x)")"', r"echo `echo \`rm x\``", r'echo "`echo \"$(rm x)\"`"', 'echo "$(echo ")"; rm x)"',
     'echo "$(case $x in (a) ls;; b) rm x;; esac)"', 'echo "$( (ls); rm x)"', "cat <<EOF\n`rm x`\nEOF",
     'echo "$(cat <<EOF\n$(rm x)\nEOF\n)"', 'echo "$(ls # "\nrm x)"'],
)  # fmt: skip
def test_a_denied_command_is_found_inside_of_quotes_and_assignments_too(command):
    assert "'rm' is on the list" in (CommandLists(deny=("rm",)).refusal(command) or "")


@promise("workspaces:lists-inside")
@pytest.mark.parametrize(
    "command",
    ['echo "$(ls) rm"', r'echo "\$(rm x)"', "echo '$(rm x)' '`rm x`'", 'x="$(grep \'"\' f)"',
     'echo "$((1 << 2)) $5"', 'echo "$(case x in a) ls;; esac)"', 'echo "$(ls # it\'s)\n)"',
     "git commit -m \"$(cat <<'EOF'\nDon't cut 5\" off\nEOF\n)\""],
)  # fmt: skip
def test_what_only_looks_like_a_denied_command_inside_of_quotes_passes(command):
    assert CommandLists(deny=("rm",)).refusal(command) is None


@promise("workspaces:lists-unreadable")
@pytest.mark.parametrize(
    "command", [r"echo $'it\'s'", r"echo $'\'' '$(rm x)'", 'echo "${x#\'"\'}"', "echo 'unclosed", 'echo "$(']
)
def test_a_line_that_is_valid_or_for_bash_to_refuse_passes_a_list_of_denied_commands(command):
    assert CommandLists(deny=("rm",)).refusal(command) is None
    assert "not allowed" in (CommandLists(allow=("echo",), deny=()).refusal(command) or "")


@promise("workspaces:lists-unreadable")
@pytest.mark.parametrize(
    "command",
    [r"echo $'it\'s'; rm x", r"$'rm' x", 'echo "${x#\'"\'}"; rm x', "ls 'unclosed\nrm x",
     "\\rm x\necho 'it", "r''m x\necho 'it", 'r"m" x\necho \'it', "r$'m' x\necho 'it", "r\\\nm x\necho 'it",
     '\\rm x; echo "${x#\'"\'}"'],
)  # fmt: skip
def test_a_denied_command_is_found_in_a_line_that_cannot_be_read(command):
    assert "'rm' is on the list" in (CommandLists(deny=("rm",)).refusal(command) or "")


@promise("workspaces:lists-unreadable")
@pytest.mark.parametrize("command", ["git \\\n push\necho 'x", "git 'push'\necho 'x", "g\\it push\necho 'x"])
def test_denied_words_are_found_in_a_line_that_cannot_be_read(command):
    assert "'git push' is on the list" in (CommandLists(deny=("git push",)).refusal(command) or "")


@promise("workspaces:denied-before")
def test_a_line_of_very_many_words_is_looked_at_word_by_word():
    assert CommandLists(deny=("rm -r *",)).refusal("ls " * 300_000) is None


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
