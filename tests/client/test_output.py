"""Typed output for users of pydantic: a model class goes in with the task, and a value of it comes out."""

from datetime import date

import pytest
import pytest_asyncio
from pydantic import BaseModel, ConfigDict, Field

from backstay import Task
from backstay.client import Backstay
from backstay.errors import BudgetExceeded, OutputInvalid, TaskInvalid, Unfinished
from backstay.testing import Reply
from tests.cli.commands import environment_of
from tests.engine import Scripts, engine
from tests.requirements import promise


class Invoice(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: int = Field(alias="no")
    due: date
    parts: list["Invoice"] = []


WRITTEN = {"no": 7, "due": "2026-03-01", "parts": [{"no": 8, "due": "2026-04-01"}]}
READ = Invoice.model_validate(WRITTEN)


def finish(output, **more):
    return Reply(calls=[("finish", {"summary": "done", "output": output, **more})])


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    scripts = Scripts()
    async with engine(temporal, tmp_path_factory.mktemp("typed"), scripts, max_completion_tokens=20_000) as opened:
        yield opened, scripts, Backstay(temporal, task_queue=opened.settings.task_queue)


async def started(office, *replies, schema=Invoice, **fields):
    _, scripts, backstay = office
    return await backstay.start(Task(**scripts.task(*replies), output_schema=schema, **fields))


@promise("models:client")
async def test_a_class_of_pydantic_goes_in_and_a_value_of_it_comes_out(office):
    run = await started(office, finish({**WRITTEN, "due": 3}), finish(WRITTEN))
    assert await run.result(Invoice) == READ
    result = await run.result()
    assert result.output == WRITTEN
    assert result.usage["steps"] == 2


@promise("models:client")
async def test_any_type_that_pydantic_knows_may_be_asked_for(office):
    run = await started(office, finish([WRITTEN, WRITTEN]), schema={"type": "array"})
    assert await run.result(list[Invoice]) == [READ, READ]
    assert await (await started(office, finish(None), schema={"type": "null"})).result(type(None)) is None


@promise("models:large")
async def test_a_value_too_large_for_the_result_is_read_from_the_store(office, monkeypatch):
    for name, value in environment_of(office[0]).items():
        monkeypatch.setenv(name, value)
    many = {**WRITTEN, "parts": [{"no": n, "due": "2026-04-01"} for n in range(1000)]}
    run = await started(office, finish(many))
    assert await run.result(Invoice) == Invoice.model_validate(many)
    result = await run.result()
    assert result.output == {"ref": result.output_ref, "note": "larger than 16384 bytes; stored whole under ref"}


@promise("models:error")
async def test_a_run_that_did_not_complete_raises_its_error_instead(office):
    run = await started(office, finish({"no": "x"}))
    with pytest.raises(OutputInvalid, match=r"asked 3 times more: output.*is required"):
        await run.result(Invoice)
    with pytest.raises(Unfinished, match="done"):
        await (await started(office, finish(WRITTEN, success=False))).result(Invoice)
    with pytest.raises(BudgetExceeded):
        await (await started(office, finish({}), budget={"max_steps": 1})).result(Invoice)


@promise("models:other-type")
async def test_another_type_than_the_runs_own_is_an_error_that_quotes_no_value(office):
    run = await started(office, finish({"secret plan": 1}), schema={"type": "object"})
    with pytest.raises(OutputInvalid, match=r"^output.no: Field required; the task has another output_schema$"):
        await run.result(Invoice)
    with pytest.raises(OutputInvalid, match="the run has no output; give its task an output_schema"):
        await (await started(office, Reply(calls=[("finish", {"summary": "done"})]), schema=None)).result(Invoice)


@promise("models:no-schema")
async def test_a_schema_that_is_none_is_refused_before_anything_is_sent(office):
    for given in ("object", 7, ["object"], int):
        with pytest.raises(TaskInvalid, match="output_schema: must be a JSON Schema, which is an object, or a class"):
            await office[2].start({"text": "x", "output_schema": given})
    deep = {}
    for _ in range(500):
        deep = {"properties": {"a": deep}}
    with pytest.raises(TaskInvalid, match="nested deeper than 200 levels"):
        await office[2].start({"text": "x", "output_schema": deep})
