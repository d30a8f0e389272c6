"""What a model says reaches those who watch whole, however fast it comes."""

import asyncio

import pytest

from activities.model.streaming import open_telling
from backstay.redaction.redactor import Redactor
from backstay.requests import AskModel
from store.opening import open_store
from tests.requirements import promise

ASK = AskModel(run="w/r", model="scripted", context="", step=2)


@promise("models:deltas-end")
@pytest.mark.parametrize("turns", range(4))
async def test_an_answer_that_ends_while_a_piece_of_it_is_passed_on_loses_none_of_it(tmp_path, turns):
    async with open_store(database_url=None, home=tmp_path) as store:
        await store.deltas.watch("w/r", "somebody")
        async with open_telling(store.deltas, ASK, Redactor([])) as telling:
            telling.say("It is yours to ")
            for _ in range(turns):
                await asyncio.sleep(0)
            telling.say("read.")
        assert "".join(delta.text for delta in await store.deltas.of_run("w/r")) == "It is yours to read."
