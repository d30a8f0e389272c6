"""Calls of plugins by a model: their arguments as a command line writes them, and a timeout for one call."""

import json

from backstay.testing import Reply
from tests.engine import ended, engine, pending
from tests.plugins.client import lay_out
from tests.requirements import promise

ASK = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"
OWN = """import argparse, time

parser = argparse.ArgumentParser()
parser.add_argument("--timeout", type=int, default=3)
print(parser.parse_args().timeout)
"""


def model(*made):
    """Make calls one after another, and finish with their answers."""

    def rules(talk):
        said = sum(1 for message in talk.messages if message["role"] == "assistant")
        if said < len(made):
            return Reply(calls=[made[said]])
        answers = [json.loads(message["content"]) for message in talk.messages if message["role"] == "tool"]
        return Reply(calls=[("finish", {"summary": "done", "outputs": {"answers": answers}})])

    return rules


async def deadlines_of(handle):
    """Return for how long each activity that calls a tool may take."""
    history = await handle.fetch_history()
    begun = [event.activity_task_scheduled_event_attributes for event in history.events]
    return [each.start_to_close_timeout.ToSeconds() for each in begun if each.activity_type.name == "call_tool"]


@promise("plugins:model-arguments")
async def test_a_model_writes_arguments_as_a_command_line_does_and_gives_a_timeout_which_is_approved(
    temporal, tmp_path
):
    lay_out(tmp_path, "demo", demo={"tools": {"wait": {"safety": "read_only"}}})
    (tmp_path / "plugins/own").mkdir()
    (tmp_path / "plugins/own/cli.py").write_text(OWN, encoding="utf-8")
    calls = [
        ("demo__click-button", {"button-text": "Pay", "--row": "3", "timeout": "120"}),
        ("demo__click-button", {"button_text": "Pay", "timeout": 601}),
        ("demo__wait", {"path": str(tmp_path / "never"), "timeout": 0.5}),
        ("own__run", {"timeout": 7}),
    ]
    options = {"policy": ASK, "toolbox": tmp_path / "toolbox.json"}
    async with engine(temporal, tmp_path, model(*calls), request_deadline_seconds=30, **options) as opened:
        handle = await opened.start({"text": "click"})
        shown = []
        for _ in range(2):
            (request,) = await pending(handle, within_s=40)
            shown.append(request["calls"][0]["arguments"])
            await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        result = await ended(handle)
        clicked, refused, waited, own = result["raw_outputs"]["answers"]
        given = await deadlines_of(handle)
    assert shown == [{"button_text": "Pay", "row": 3, "timeout": 120}, {"timeout": 7}]
    assert clicked == {"clicked": "Pay", "row": 3, "loud": False}
    assert "timeout" in refused["error"]
    assert "within 0.5 s" in waited["error"]
    assert own == "7"
    assert max(given) >= 120
