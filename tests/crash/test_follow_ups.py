"""Ten follow-ups in one session, and before each of them, or of the sample, the worker is killed."""

import asyncio
import json

import pytest

from backstay.client import Backstay
from backstay.redaction.handles import handles_in
from backstay.testing import Conversation, Reply
from tests.cli.commands import bare
from tests.cli.commands import forked as commanded
from tests.crash.case import open_case
from tests.e2e.scripted_server import toolbox_of_servers
from tests.e2e.sessions.test_follow_ups import ANSWERS, BOOK, LOOK, POLICY, REPORT, ROWS, TOKEN, desk
from tests.requirements import promise
from tests.sizes import sized
from tests.turns import assert_well_formed, calls, finished, turn_of

TURNS = 11
SMALL, LARGE = ANSWERS["look"]["data"]["code"], ROWS[377]["code"]
DYING = {4: "after:open_run:1", 9: "before:runs.closed:1", 10: "after:runs.opened:1", 11: "after:runs.closed:1"}
"""In these turns the next worker dies, too, while it opens or closes the run."""
EVERY = sized(1, 5)
PAID = {6: "INV-2041", 7: "INV-9999", 8: "INV-2041"}


def recalled(talk: Conversation, number: int) -> Reply:
    """Answer from what turn 1 was answered: from the context in even turns, and by the ref in odd ones."""
    if number % 2 == 0:
        return finished(f"turn {number}: {talk.answers('desk__look')[0]['data']['code']}")
    read = [call.answer for call in talk.calls("read_result") if call.answered]
    return finished(f"turn {number}: {read[-1]['data']}")


def rules(talk: Conversation) -> Reply:
    """Turn 1 reads, 2 opens the vault, 3 books, 5 uses what the vault gave, 6 to 8 pay; each recalls turn 1."""
    if "finish" not in talk.tools:
        return Reply(text="closing words")
    text, said = turn_of(talk)
    number = int(text.split()[1])
    steps: list[Reply] = []
    if number == 1:
        steps = [calls(LOOK, REPORT)]
    elif number % 2:
        ref = talk.answers("desk__report")[0]["storage_ref"]
        steps = [calls(("read_result", {"ref": ref, "path": "rows.377.code"}))]
    if number == 2:
        steps.append(calls(("desk__open", {})))
    if number == 3:
        steps.append(calls(BOOK))
    if number == 5:
        (handle,) = handles_in(talk.answers("desk__open")[0])
        steps.append(calls(("desk__look", {"page": handle})))
    if number in PAID:
        steps.append(calls(("desk__pay", {"invoice": PAID[number]})))
    if said < len(steps):
        return steps[said]
    return finished("turn 1: read") if number == 1 else recalled(talk, number)


@promise("sessions:survives")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_ten_follow_ups_survive_the_death_of_the_worker_before_each(temporal, nursery, tmp_path):
    server = desk(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    named = {"BACKSTAY_TOOLBOX": str(toolbox_of_servers(tmp_path, desk=server)), "BACKSTAY_POLICY": str(policy)}
    async with open_case(temporal, nursery, tmp_path / "case", rules=rules, **named) as case:
        backstay = Backstay(case.client, task_queue=case.environment["BACKSTAY_TASK_QUEUE"])
        worker = await case.worker()
        turns = [await backstay.start({"text": "turn 0001", "session_id": "s1"})]
        await turns[0].result()
        for number in range(2, TURNS + 1):
            if number in DYING or number % EVERY == 0:
                worker.kill()
                assert await asyncio.wait_for(asyncio.shield(worker.died), 150) == -9
            turns.append(await turns[-1].follow_up(f"turn {number:04}"))
            if number in DYING:
                doomed = await case.worker(DYING[number])
                assert await asyncio.wait_for(asyncio.shield(doomed.died), 150) == -9, doomed.said()
            if worker.died.done():
                worker = await case.worker()
            async with asyncio.timeout(150):
                result = await turns[-1].result()
            # Only who still knows what turn 1 was answered can say this.
            assert result.final_summary == f"turn {number}: {LARGE if number % 2 else SMALL}", result
            shown = json.dumps(case.model.requests[-1]["messages"])
            assert (LARGE if number % 2 else SMALL) in shown
        for request in case.model.requests:
            assert_well_formed(request)
        # Turn 5 used the handle of turn 2: the server got the secret, and the model never saw it.
        pages = [call["arguments"]["page"] for call in server.calls("look") if "page" in call["arguments"]]
        assert pages == [TOKEN]
        assert TOKEN not in json.dumps(case.model.requests)

        third = turns[2]
        done = await commanded(
            nursery, "undo", third.id, "--preview", environment=bare(**case.environment), folder=tmp_path
        )
        assert "later runs touched the same" in done.out, done.err
        (undone,) = await third.undo(by="ana@example.com")
        assert undone.state == "compensated"
        assert [touch.workflow_id for touch in undone.later] == [turns[5].id, turns[7].id]
        for touched in (turns[5].id, turns[7].id):
            assert touched in done.out
        assert turns[6].id not in done.out
