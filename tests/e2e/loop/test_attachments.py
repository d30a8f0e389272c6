"""Pictures and PDFs that are attached to a task."""

import asyncio
import base64
import io
import json
import time

import pytest
import pytest_asyncio
import yaml
from PIL import Image
from temporalio.client import WorkflowFailureError

from backstay.task.attachment import ATTACHED
from backstay.testing import Reply, ScriptedModel
from opening import open_store
from store.blobs.shown import Missing
from tests.cli.commands import environment_of, forked
from tests.e2e.labelled import DONE
from tests.engine import engine
from tests.requirements import promise


def picture(size=(30, 20), color="red"):
    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(buffer, "PNG")
    return buffer.getvalue()


SMALL = picture()


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("attached")

    def script(talk):
        if "<twice>" in talk.task and not talk.calls():
            return Reply(calls=[("mail__list_customers", {"limit": 1})])
        return DONE

    async with ScriptedModel(script) as model:
        endpoint = {"base_url": model.base_url}
        models = {
            "seeing": {"endpoint": "a", "model": "gpt-5.4", "price": {"input": 1.0, "output": 4.0}},
            "blind": {"endpoint": "a", "model": "qwen3", "price": {"input": 1.0, "output": 4.0}},
        }
        path = folder / "models.yaml"
        said = yaml.safe_dump({"endpoints": {"a": endpoint}, "models": models})
        await asyncio.to_thread(path.write_text, said, encoding="utf-8")
        async with engine(temporal, folder, [], models=path) as made:
            yield made, model


async def ran(made, task, workflow_id=None):
    handle = await made.start({"budget": {"max_llm_cost_usd": 1.0}, **task}, workflow_id)
    return await asyncio.wait_for(handle.result(), 100)


async def refused(made, task, workflow_id=None):
    with pytest.raises(WorkflowFailureError) as raised:
        await ran(made, task, workflow_id)
    assert raised.value.cause.type == "TaskInvalid"
    return str(raised.value.cause)


def shown(model, label):
    """What the model was shown as parts, by request."""
    bodies = [body for body in model.requests if label in json.dumps(body)]
    contents = [[message["content"] for message in body["messages"]] for body in bodies]
    return [[part for content in found if isinstance(content, list) for part in content] for found in contents]


def data_in(parts):
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.partition(";base64,")[2]) for url in urls]


@promise("runs:attachments")
@pytest.mark.thorough
async def test_what_a_command_attaches_is_shown_at_each_step_and_stands_in_no_history(opened, nursery, tmp_path):
    made, model = opened
    data = picture((300, 200), "blue")
    (tmp_path / "bill.png").write_bytes(data)
    arguments = ("run", "<twice> What is this?", "--model", "seeing", "--attach", "bill.png", "--id", "attached")
    environment = environment_of(made, BACKSTAY_MODELS=str(made.settings.models))
    done = await forked(nursery, *arguments, environment=environment, folder=tmp_path)
    assert done.code == 0, done.err
    first, second = shown(model, "<twice>")
    assert data_in(first) == data_in(second) == [data]
    assert "bill.png (image/png, 300 by 200) of the task" in first[0]["text"]
    history = (await made.client.get_workflow_handle("attached").fetch_history()).to_json()
    assert base64.b64encode(data).decode()[40:80] not in history


@promise("runs:attachments")
async def test_a_program_without_the_store_gives_the_bytes_with_the_task(opened):
    made, model = opened
    given = [{"name": "a.png", "data": base64.b64encode(SMALL).decode()}]
    result = await ran(made, {"text": "<given> Look.", "model": "seeing", "attachments": given})
    assert result["outcome"] == "completed"
    assert data_in(shown(model, "<given>")[0]) == [SMALL]


@promise("runs:attachments-told")
async def test_a_model_that_takes_none_is_told_so(opened):
    made, model = opened
    given = [{"name": "a.png", "data": base64.b64encode(SMALL).decode()}]
    await ran(made, {"text": "<blind> Look.", "model": "blind", "attachments": given})
    (told,) = shown(model, "<blind>")[0]
    assert told["text"] == (
        "You do not see the picture a.png (image/png, 30 by 20) of the task: this model takes no pictures."
    )


WRONG = {
    "no base64": ([{"data": "no!"}], "is not base64"),
    "both places": ([{"data": "YQ==", "ref": "0" * 40}], "either `data`"),
    "neither place": ([{"name": "x"}], "either `data`"),
    "no such bytes": ([{"ref": "0" * 40}], "attachments.0: the worker's store has no such bytes"),
    "a ref that is a path": ([{"ref": "../../backstay.db"}], "ref"),
    "a text": ([{"data": "YQ=="}], "attachments.0: is not a picture or PDF"),
    "bytes that are not what they are said to be": (
        [{"data": "YQ==", "media_type": "image/png"}],
        "attachments.0: its bytes are no picture",
    ),
    "too many": ([{"data": "YQ=="}] * 11, "attachments"),
    "too much": ([{"data": "A" * 1_000_000}], "1,000,000 bytes"),
}


@promise("runs:attachments-refused")
@pytest.mark.parametrize("case", WRONG)
async def test_what_no_model_can_be_shown_is_refused_when_the_run_begins(opened, case):
    made, model = opened
    given, why = WRONG[case]
    asked = len(model.requests)
    assert why in await refused(made, {"text": "Look.", "model": "seeing", "attachments": given})
    assert len(model.requests) == asked


@promise("runs:attachments-refused")
async def test_what_one_run_was_attached_no_other_run_can_name(opened):
    made, _ = opened
    async with open_store(made.settings) as store:
        ref = await store.blobs.of(f"one/{ATTACHED}").seal(SMALL)
    task = {"text": "Look.", "model": "seeing", "attachments": [{"ref": ref, "name": "a.png"}]}
    assert "no such bytes for the run two" in await refused(made, task, "two")
    result = await ran(made, task, "one")
    assert result["outcome"] == "completed"


@promise("runs:attachments-refused")
async def test_a_file_that_cannot_be_attached_ends_the_command_with_its_fix(opened, nursery, tmp_path):
    made, _ = opened
    (tmp_path / "words.txt").write_text("words", encoding="utf-8")
    for name, why in (("words.txt", "is not a picture or PDF"), ("none.png", "cannot be read")):
        done = await forked(
            nursery, "run", "Look.", "--attach", name, environment=environment_of(made), folder=tmp_path
        )
        assert done.code == 2
        assert f"{name}" in done.err
        assert why in done.err


@promise("runs:attachments-pruned")
async def test_what_was_attached_is_pruned_with_its_run(opened):
    made, _ = opened
    async with open_store(made.settings) as store:
        large = SMALL + b"x" * 100_000
        kept = store.blobs.of(f"kept/{ATTACHED}")
        refs = [await store.blobs.of(f"gone/{ATTACHED}").seal(data) for data in (SMALL, large)]
        other = await kept.seal(SMALL)
        await store.pruning.free_payloads({"gone/first"})
        for ref in refs:
            with pytest.raises(Missing):
                await store.blobs.of(f"gone/{ATTACHED}").unseal(ref)
        assert await kept.unseal(other) == SMALL


@promise("runs:attachments-awaited")
async def test_a_run_finds_what_was_attached_to_it_though_an_earlier_one_of_its_id_was_pruned(opened):
    made, _ = opened
    large = SMALL + b"x" * 100_000
    task = {"text": "Look.", "model": "seeing"}

    async def attach(store, before):
        (ref,) = await store.blobs.attach("daily", [large], time.time() - before)
        return task | {"attachments": [{"ref": ref, "name": "a.png"}]}

    async with open_store(made.settings) as store:
        assert (await ran(made, await attach(store, 600), "daily"))["outcome"] == "completed"
        earlier = (await store.runs.get("daily")).run
        # Long after that run began.
        again = await attach(store, -600)
        await store.pruning.free_payloads({earlier})
        assert (await ran(made, again, "daily"))["outcome"] == "completed"
