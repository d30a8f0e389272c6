"""What a model says reaches those who watch while it says it, without secrets, and nobody pays for that."""

import asyncio
import sqlite3
from contextlib import aclosing

import opening
from backstay.testing import Conversation, Reply
from tests.engine import assert_no_task_failure
from tests.requirements import promise

KEY = "test-key-of-the-scripted-model"
TOKEN = "sk-" + "Zx9q7W" * 6
WORDS = "I have looked at all of them, and three are overdue. "
SAID = f"{WORDS}The key is {KEY}, and the other one {TOKEN}. That is all."


class Watched:
    """A model that waits with its first answer until somebody watches the run."""

    def __init__(self, *replies, how=lambda talk, reply: reply):
        self.replies = (Reply(calls=[("search_tools", {"query": "mail"})]), *replies)
        self.how = how
        self.gate = asyncio.Event()

    async def __call__(self, talk: Conversation):
        made = len([message for message in talk.messages if message["role"] == "assistant"])
        await self.gate.wait()
        return self.how(talk, self.replies[made])


def finish(summary):
    return [("finish", {"summary": summary, "outputs": {}, "success": True})]


async def watched(engine, model, task="Look at the invoices"):
    """Run a task, watched from its second step on; return its result, history, deltas, and what is left of them."""
    handle = await engine.start(task)
    run, found = f"{handle.id}/{handle.first_execution_run_id}", []
    async with opening.open_store(engine.settings) as store:

        async def read():
            async with aclosing(store.deltas.after(run)) as deltas:
                async for delta in deltas:
                    found.append(delta)  # noqa: PERF401  # what was read by the time of the cancellation counts

        await store.deltas.watch(run, "the first look of the reader")
        reading = asyncio.create_task(read())
        try:
            model.gate.set()
            async with asyncio.timeout(150):
                result = await handle.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        return result, await handle.fetch_history(), found, await store.deltas.of_run(run)


@promise("models:deltas")
async def test_what_a_model_says_is_read_along_without_secrets_and_is_kept_nowhere(open_engine):
    model = Watched(
        Reply(text=SAID, calls=[("search_tools", {"query": "mail"})], piece=7, pause_s=0.05),
        Reply(text=WORDS, calls=finish(f"Done with {KEY}."), piece=7, pause_s=0.05),
    )
    async with open_engine(model, cached=10) as engine:
        result, history, deltas, left = await watched(engine, model)
        requests, billed = engine.model.requests, engine.model.billed_micro({"scripted": (1.0, 0.1, 4.0)})
    assert result["outcome"] == "completed"
    assert_no_task_failure(history)
    texts = {step: "".join(delta.text for delta in deltas if delta.step == step) for step in (2, 3)}
    hidden = SAID.replace(KEY, "[REDACTED:known]").replace(TOKEN, "[REDACTED:openai_key]")
    assert texts[2].startswith(WORDS)
    assert texts[2] in hidden
    assert len([delta for delta in deltas if delta.text and delta.step == 2]) > 2
    # A run that ends takes the rest with it.
    assert f"{WORDS}\nDone with [REDACTED:known].".startswith(texts[3])
    for piece in (KEY[:8], KEY[-8:], TOKEN[:8], TOKEN[-8:]):
        assert all(piece not in text for text in texts.values())
    assert left == []
    assert "model.delta" not in str(history.to_json())
    assert ["stream" in request for request in requests[-2:]] == [True, True]
    # Each call is rounded up to a millionth of a dollar.
    assert 0 <= round(result["usage"]["llm_cost_usd"] * 1e6) - billed <= 3


@promise("models:deltas-unread")
async def test_nobody_pays_for_streams_that_nobody_reads(open_engine):
    model = Watched(Reply(text=WORDS, calls=finish("done")))
    model.gate.set()
    async with open_engine(model, cached=10) as engine:
        handle = await engine.start("Look at the invoices")
        assert (await handle.result())["outcome"] == "completed"
        assert not any("stream" in request for request in engine.model.requests)


@promise("models:deltas-billed")
async def test_an_endpoint_that_takes_no_stream_is_asked_without_and_billed_as_always(open_engine):
    def unstreamed(talk, reply):
        return Reply(status=400) if talk.body.get("stream") else reply

    model = Watched(Reply(calls=[("search_tools", {"query": "a"})]), Reply(calls=finish("ok")), how=unstreamed)
    async with open_engine(model, cached=10) as engine:
        result, _, _, _ = await watched(engine, model)
        requests, billed = engine.model.requests, engine.model.billed_micro({"scripted": (1.0, 0.1, 4.0)})
    assert result["outcome"] == "completed"
    # It is found out once; functions are still what it is asked for.
    assert len([request for request in requests if request.get("stream")]) == 1
    assert all("tools" in request for request in requests)
    # Each call is rounded up to a millionth of a dollar.
    assert 0 <= round(result["usage"]["llm_cost_usd"] * 1e6) - billed <= 3


@promise("models:deltas-charged")
async def test_a_stream_that_does_not_say_what_it_used_is_charged_the_most_and_then_no_longer_asked_for(open_engine):
    def silent(talk, reply):
        return reply.model_copy(update={"reports_usage": not talk.body.get("stream")})

    model = Watched(Reply(calls=[("search_tools", {"query": "a"})]), Reply(calls=finish("ok")), how=silent)
    async with open_engine(model, cached=10) as engine:
        result, _, _, _ = await watched(engine, model)
        requests, billed = engine.model.requests, engine.model.billed_micro({"scripted": (1.0, 0.1, 4.0)})
    assert result["outcome"] == "completed"
    assert len([request for request in requests if request.get("stream")]) == 1
    assert round(result["usage"]["llm_cost_usd"] * 1e6) > billed


@promise("models:deltas-options")
async def test_an_endpoint_that_refuses_to_be_asked_what_a_stream_used_is_asked_for_the_stream_alone(open_engine):
    def unasked(talk, reply):
        refusal = Reply(status=422, text="body.stream_options.include_usage: Extra inputs are not permitted")
        return refusal if "stream_options" in talk.body else reply

    model = Watched(Reply(text=WORDS, calls=[("search_tools", {"query": "a"})]), Reply(calls=finish("ok")), how=unasked)
    async with open_engine(model, cached=10) as engine:
        result, _, _, _ = await watched(engine, model)
        requests = engine.model.requests
    assert result["outcome"] == "completed"
    assert ["stream" in request for request in requests[:2]] == [True, True]
    assert ["stream_options" in request for request in requests] == [True, False, False, False]


STREAMS_ONLY = Reply(status=400, text="This model only supports streaming, so that it must have stream=true")


@promise("models:streams-watched")
async def test_what_a_model_says_that_answers_in_streams_only_is_read_along_though_it_tells_no_usage(open_engine):
    def streaming(talk, reply):
        return reply.model_copy(update={"reports_usage": False}) if talk.body.get("stream") else STREAMS_ONLY

    slow = Reply(text=SAID, piece=7, pause_s=0.05)
    model = Watched(
        *(slow.model_copy(update={"calls": calls}) for calls in ([("search_tools", {"query": "a"})], finish("ok"))),
        how=streaming,
    )
    async with open_engine(model, cached=10) as engine:
        result, _, deltas, _ = await watched(engine, model)
    assert result["outcome"] == "completed"
    texts = {step: "".join(delta.text for delta in deltas if delta.step == step) for step in (2, 3)}
    assert [texts[2][:20], texts[3][:20]] == [WORDS[:20], WORDS[:20]]


@promise("models:streams-watched")
async def test_a_refusal_of_both_forms_of_an_answer_teaches_that_it_has_to_be_a_stream(open_engine):
    def picky(talk, reply):
        if not talk.body.get("stream"):
            return STREAMS_ONLY
        blank = any(message["role"] == "assistant" and message["content"] is None for message in talk.messages)
        return Reply(status=400) if blank else reply

    model = Watched(Reply(calls=[("search_tools", {"query": "a"})]), Reply(calls=finish("ok")))
    # The first answer is a whole one; after that the endpoint is another one.
    model.how = lambda talk, reply: picky(talk, reply) if len(talk.messages) > 2 else reply
    async with open_engine(model, cached=10) as engine:
        result, _, _, _ = await watched(engine, model)
        requests = engine.model.requests
    assert result["outcome"] == "completed"
    assert all("tools" in request for request in requests)
    assert [request.get("stream", False) for request in requests[-2:]] == [True, True]


@promise("models:streams-unlearned")
async def test_a_gateway_that_leads_to_an_endpoint_without_streams_is_asked_for_none_any_more(open_engine):
    def changing(talk, reply):
        if not any(message["role"] == "tool" for message in talk.messages):
            return reply if talk.body.get("stream") else STREAMS_ONLY
        return Reply(status=400, text="stream: not supported by this model") if talk.body.get("stream") else reply

    model = Watched(Reply(calls=[("search_tools", {"query": "a"})]), Reply(calls=finish("ok")), how=changing)
    model.gate.set()
    async with open_engine(model, cached=10) as engine:
        handle = await engine.start("Look at the invoices")
        assert (await handle.result())["outcome"] == "completed"
        requests = engine.model.requests
    assert [request.get("stream", False) for request in requests] == [False, True, True, False, False]


@promise("models:deltas-options")
async def test_a_stream_that_its_endpoint_breaks_off_is_no_reason_to_ask_for_no_other_one(open_engine):
    broken = Reply(text=WORDS, finish_reason="insufficient_system_resource", reports_usage=False)
    model = Watched(broken, Reply(calls=finish("ok")))
    async with open_engine(model, cached=10) as engine:
        result, _, _, _ = await watched(engine, model)
        requests = engine.model.requests
    assert result["outcome"] == "completed"
    assert [request.get("stream", False) for request in requests[-2:]] == [True, True]


@promise("models:deltas-store")
async def test_a_store_that_cannot_pass_on_what_is_said_stops_no_run(open_engine):
    model = Watched(Reply(text=WORDS, calls=finish("ok"), piece=7))
    async with open_engine(model, cached=10) as engine:
        handle = await engine.start("Look at the invoices")
        async with opening.open_store(engine.settings) as store:
            await store.deltas.watch(f"{handle.id}/{handle.first_execution_run_id}", "a reader")
        with sqlite3.connect(engine.settings.home / "backstay.db", timeout=10) as connection:
            connection.execute("CREATE TRIGGER full BEFORE INSERT ON deltas BEGIN SELECT RAISE(ABORT, 'full'); END")
        model.gate.set()
        assert (await handle.result())["outcome"] == "completed"
