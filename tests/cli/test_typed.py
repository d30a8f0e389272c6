"""What a person types at a prompt, and where it goes."""

from backstay.testing import Reply
from tests.cli.commands import BACKSTAY, at_terminal, environment_of
from tests.requirements import promise


@promise("clients:prompt-cut")
async def test_a_cut_line_is_asked_for_again_and_the_rest_of_a_paste_goes_to_nobody(scripts, opened):
    text = scripts.task(Reply(calls=[("ask_person", {"question": "Which words?"})]))["text"]
    # As a shell does, bash reads on when the command has ended.
    shell = '"$@"; IFS= read -r -t 2 left; echo "left: [$left]" >&2'
    command = ("/bin/bash", "-c", shell, "bash", *BACKSTAY, "run", text)

    async with at_terminal(*command, environment=environment_of(opened)) as terminal:
        await terminal.shows("your answer (press Enter alone for other choices):")
        terminal.type("x" * 6003)
        await terminal.shows("not taken: a terminal cuts a line of 4,095 bytes or more")
        await terminal.shows("your answer (press Enter alone for other choices):")
        terminal.type("line one\nDROP everything\nDROP more")
        await terminal.shows("dropped, since an answer is one line: 2 more lines")
        await terminal.shows("decided: answered")
        terminal.type("DROP what came late")
        await terminal.shows("left: []")

    told = str(opened.model.requests[-1]["messages"])
    assert "line one" in told
    assert "xxx" not in told
