"""What a person types at a prompt, and where it goes."""

import json

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


@promise("clients:prompt-as-typed")
async def test_a_free_answer_reaches_the_model_as_it_was_typed(scripts, opened, nursery):
    questions = [Reply(calls=[("ask_person", {"question": f"Which version, {n}?"})]) for n in range(3)]
    text = scripts.task(*questions)["text"]

    async with at_terminal(*BACKSTAY, "run", text, environment=environment_of(opened), nursery=nursery) as terminal:
        await terminal.shows("your answer (press Enter alone for other choices):")
        terminal.type("1.10")
        await terminal.shows("your answer (press Enter alone for other choices):")
        terminal.type("7E400")
        await terminal.shows("your answer (press Enter alone for other choices):", 60)
        terminal.type("")
        await terminal.shows("[d]etach?")
        terminal.type("a")
        await terminal.shows("answer:")
        terminal.type("1E10")
        await terminal.shows("decided: answered")
        await terminal.ended()

    told = json.dumps(opened.model.requests[-1]["messages"])
    assert [answer for answer in ("1.10", "7E400", "1E10") if answer not in told] == []
