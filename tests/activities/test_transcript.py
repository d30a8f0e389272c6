"""The transcript is an append-only chain: the same from memory and from disk, and it never loses a called tool."""

from activities.model.request import messages_of
from activities.model.transcript import MOST_VISIBLE, Transcript, Transcripts
from backstay.task.context import ContextItem

RUN = "workflow/run"


async def test_a_chain_reads_the_same_from_disk_as_from_memory(opened):
    async with opened() as (_, records, transcripts):
        first = await transcripts.begin(RUN, [{"kind": "task", "text": "t"}])
        transcript = await transcripts.load(RUN, first)
        for number in range(5):
            transcript = await transcripts.extend(RUN, transcript, [{"kind": "note", "text": str(number)}])
        fresh = await Transcripts(records).load(RUN, transcript.ref)
        assert fresh == transcript
        assert [item["text"] for item in fresh.items] == ["t", "0", "1", "2", "3", "4"]


async def test_extending_by_nothing_writes_nothing(opened):
    async with opened() as (_, _, transcripts):
        transcript = await transcripts.load(RUN, await transcripts.begin(RUN, [{"kind": "task", "text": "t"}]))
        assert await transcripts.extend(RUN, transcript, []) is transcript


async def test_the_model_is_shown_the_digest_of_a_result_and_never_the_sealed_form(opened):
    async with opened() as (_, records, transcripts):
        ref = await records.keep(RUN, "desk.look", {"password": "opensesame-opensesame"}, "desk")
        (item,) = await transcripts.items_of(RUN, (ContextItem(kind="answer", call_id="c1", ref=ref),))
        assert item["call_id"] == "c1"
        assert "opensesame" not in item["text"]
        assert ref in item["text"]
        (message,) = messages_of([item], "system")
        assert message == {"role": "tool", "tool_call_id": "c1", "content": item["text"]}


def test_when_the_list_is_full_the_oldest_tool_that_was_never_called_leaves():
    names = [f"desk.t{number}" for number in range(MOST_VISIBLE)]
    items = (
        {"kind": "tools", "tools": names},
        {"kind": "said", "text": "", "tools_called": [names[0]]},
        {"kind": "tools", "tools": [names[5], "desk.new"]},
    )
    visible = Transcript("ref", items).visible()
    assert len(visible) == MOST_VISIBLE
    assert visible == [names[0], *names[2:], "desk.new"]
