"""The example's tools, tested as its owner would: without an engine."""

import pytest

from backstay.testing import TestContext, run_tool
from examples.billing import billing
from tests.requirements import promise

ANA = "ana@example.com"


@pytest.fixture(autouse=True)
def book(tmp_path, monkeypatch):
    monkeypatch.setattr(billing, "BOOK", tmp_path / "charges")


def context(*answers):
    return TestContext(secrets={"signature": "s" * 12}, answers=answers)


@promise("python:example")
async def test_a_charge_is_made_found_and_undone():
    made = await run_tool(billing.charge, {"customer": ANA, "cents": 500}, context())
    assert (made.outcome, made.data["cents"]) == ("succeeded", 500)
    assert (await run_tool(billing.total, {"customer": ANA})).data == 500
    assert (await made.verify()).data == made.data

    undone = await made.undo()

    assert (undone.outcome, undone.data) == ("succeeded", {"voided": made.data["number"]})
    assert (await run_tool(billing.total, {"customer": ANA})).data == 0
    assert (await made.verify()).data is False


@promise("python:example")
async def test_a_large_charge_asks_a_person_first():
    large = {"customer": ANA, "cents": 250_000}
    asked = await run_tool(billing.charge, large, context())
    assert (asked.outcome, asked.question) == ("asked", "Charge ana@example.com 2500.00?")
    refused = await run_tool(billing.charge, large, context(False))
    assert (refused.outcome, refused.error) == ("failed", "the charge is too large")
    allowed = await run_tool(billing.charge, large, context(True))
    assert (allowed.outcome, allowed.context.asked) == ("succeeded", [asked.question])


@promise("python:example")
@pytest.mark.parametrize(
    ("arguments", "outcome", "said"),
    [
        ({"customer": "Ana", "cents": 5}, "retry", "call it again in another way: give the customer's address"),
        ({"customer": ANA, "cents": 0}, "failed", "arguments: cents: Input should be greater than or equal to 1"),
        ({"customer": ANA, "cents": 5, "context": 1}, "failed", "arguments: context: Extra inputs are not permitted"),
    ],
)
async def test_what_the_example_refuses_the_model_reads(arguments, outcome, said):
    ran = await run_tool(billing.charge, arguments, context())
    assert (ran.outcome, ran.error[: len(said)]) == (outcome, said)


@promise("python:example")
async def test_a_secret_that_nobody_gave_is_named():
    ran = await run_tool(billing.charge, {"customer": ANA, "cents": 5})
    assert ran.outcome == "failed"
    assert "there is no secret 'signature' (known: none); add it to `secrets`" in ran.error
