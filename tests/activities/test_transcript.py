"""The transcript is an append-only chain: the same from memory and from disk, and it never loses a called tool."""

from dataclasses import replace

from activities.model.request import messages_of
from activities.model.transcript import MOST_PIECES, MOST_VISIBLE, Said, Transcript, Transcripts
from backstay.task.context import BYTES_PER_TOKEN, ContextItem, trim
from tests.requirements import promise

RUN = "workflow/run"


@promise("context:addressed")
async def test_a_chain_reads_the_same_from_disk_as_from_memory(opened):
    async with opened() as (_, records, transcripts):
        first = await transcripts.begin(RUN, [{"kind": "task", "text": "t"}])
        transcript = await transcripts.load(RUN, first)
        for number in range(5):
            transcript = await transcripts.extend(RUN, transcript, [{"kind": "note", "text": str(number)}])
        fresh = await Transcripts(records).load(RUN, transcript.ref)
        assert fresh == transcript
        assert [item["text"] for item in fresh.items] == ["t", "0", "1", "2", "3", "4"]


@promise("context:addressed")
async def test_extending_by_nothing_writes_nothing(opened):
    async with opened() as (_, _, transcripts):
        transcript = await transcripts.load(RUN, await transcripts.begin(RUN, [{"kind": "task", "text": "t"}]))
        assert await transcripts.extend(RUN, transcript, []) is transcript


@promise("context:shown")
async def test_the_model_is_shown_the_digest_of_a_result_and_never_the_sealed_form(opened):
    async with opened() as (_, records, transcripts):
        ref = (await records.keep(RUN, "desk.look", {"password": "opensesame-opensesame"}, "desk")).ref
        (item,) = await transcripts.items_of(RUN, (ContextItem(kind="answer", call_id="c1", ref=ref),))
        assert item["call_id"] == "c1"
        assert "opensesame" not in item["text"]
        assert ref in item["text"]
        (message,) = messages_of([item], "system")
        assert message == {"role": "tool", "tool_call_id": "c1", "content": item["text"]}


@promise("runs:visible-full")
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


@promise("context:bounded")
async def test_a_very_long_chain_is_cut_at_its_beginning_and_shows_the_model_the_same_tools(opened):
    async with opened() as (_, records, transcripts):
        transcripts.context_tokens = 1000
        first = await transcripts.begin(
            RUN, [{"kind": "task", "text": "t"}, {"kind": "tools", "tools": ["a.b", "a.c"]}]
        )
        transcript = await transcripts.load(RUN, first)
        most = 0
        for number in range(300):
            said = {"kind": "said", "text": f"step {number}", "tools_called": ["a.b"], "calls": [{"id": f"c{number}"}]}
            answer = {"kind": "answer", "call_id": f"c{number}", "text": "x" * 100}
            fact = [{"kind": "fact", "text": "stays"}] if number == 0 else []
            transcript = await transcripts.extend(RUN, transcript, [said, answer, *fact])
            most = max(most, transcript.weight)
        fresh = await Transcripts(records).load(RUN, transcript.ref)
        assert fresh == transcript
        assert most < 5 * 1000 * BYTES_PER_TOKEN
        assert transcript.visible() == ["a.b", "a.c"]
        kinds = [item["kind"] for item in transcript.items]
        assert kinds[:4] == ["task", "fact", "tools", "said"]
        assert transcript.forgotten >= 600 - kinds.count("said") - kinds.count("answer") > 0
        assert transcript.items[-2]["text"] == "step 299"
        items, dropped = trim(list(transcript.items), 1000, total=transcript.weight, forgotten=transcript.forgotten)
        assert dropped > transcript.forgotten
        assert f"{dropped} older items were dropped" in str(items)


@promise("sessions:tools")
async def test_a_run_of_many_pieces_is_followed_from_one_piece_with_the_same_tools_and_sources(opened):
    async with opened() as (_, records, transcripts):
        store = records.store
        first = [{"kind": "system", "text": "old"}, {"kind": "task", "text": "t"}, {"kind": "tools", "tools": ["a.b"]}]
        transcript = await transcripts.load(RUN, await transcripts.begin(RUN, first, [Said("task", None, "t")]))
        for number in range(MOST_PIECES):
            said = {"kind": "said", "text": f"step {number}", "tools_called": ["a.b"]}
            transcript = await transcripts.extend(RUN, transcript.with_items([said], [Said("model", None, "s")]), [])
        assert transcript.pieces == MOST_PIECES + 1
        new = [{"kind": "system", "text": "new"}, {"kind": "task", "text": "more"}]
        shown = {}
        for name, follower in (("read", "workflow/second"), ("one piece", "workflow/third")):
            await store.blobs.of(follower).follow(RUN)
            older = transcript if name == "one piece" else replace(transcript, pieces=1)
            transcripts.recent[follower, transcript.ref] = older
            ref = await transcripts.follow(follower, transcript.ref, new, [Said("task", None, "more")])
            shown[name] = await Transcripts(records).load(follower, ref)
        for found in shown.values():
            assert found.items == shown["read"].items
            assert found.visible() == ["a.b"]
            assert [item["text"] for item in (*found.items[:2], found.items[-1])] == ["new", "t", "more"]
        assert shown["one piece"].pieces == 1
        assert shown["one piece"].said == (Said("task", None, "more"),)
        before = await store.blobs.of("workflow/third").get_json(shown["one piece"].before)
        assert [tuple(said) for said in before["said"]] == list(transcript.said)
