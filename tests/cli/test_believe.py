"""An operator clears what is held against a model whose endpoint billed more than was asked for."""

import pytest

from activities.endpoints.client import ModelClient
from activities.endpoints.endpoints import Target
from activities.model.bills import Bills
from activities.model.learned import ForgottenModels, LearnedDialects
from tests.cli.commands import bare, forked
from tests.requirements import promise

ENDPOINTS = ("https://one.example", "https://two.example")


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def doctor(nursery, tmp_path, home):
    async def doctor(*arguments):
        # Nothing answers there, and nothing is jailed, so that only what stands in the home is told.
        variables = bare(BACKSTAY_HOME=str(home), TEMPORAL_ADDRESS="127.0.0.1:9", BACKSTAY_NSJAIL="/none")
        return await forked(nursery, "doctor", *arguments, environment=variables, folder=tmp_path)

    return doctor


@promise("budget:doubt-believed")
async def test_an_operator_believes_a_model_again_at_all_its_endpoints_and_doubts_others_as_before(doctor, home):
    worker = Bills(home)
    for model, where in (*(("dear", where) for where in ENDPOINTS), ("other", ENDPOINTS[0])):
        worker.note(f"{where} {model}", model, where, billed=5_000_000, most=1_000_000)

    told = (await doctor()).out
    cleared = await doctor("--believe", "dear")
    left = (await doctor()).out

    for where in ENDPOINTS:
        assert f"dear at {where} billed 5 USD" in told
    assert "if that was a mistake: backstay doctor --believe dear" in told
    assert (cleared.code, cleared.err) == (0, "the bills of dear are believed again\n")
    assert ("dear at" in left, f"other at {ENDPOINTS[0]} billed 5 USD" in left) == (False, True)
    # A worker that lives reserves no more from then on.
    assert [worker.factor(f"{where} dear") for where in ENDPOINTS] == [1, 1]
    assert worker.factor(f"{ENDPOINTS[0]} other") > 4


@promise("budget:doubt-believed")
async def test_to_believe_a_model_that_nobody_doubts_changes_nothing_and_says_so(doctor, home):
    Bills(home).note("k", "dear", ENDPOINTS[0], billed=5_000_000, most=1_000_000)
    done = await doctor("--believe", "deer")

    assert (done.code, done.err) == (1, "no bill of deer is doubted here\n")
    assert Bills(home).factor("k") > 4


@promise("models:dialects-age")
async def test_an_operator_lets_a_model_be_asked_as_at_first_whatever_was_learned_of_it(doctor, home):
    for model in ("dear", "other"):
        target = Target(model, False, model, ENDPOINTS[0], ModelClient(), None)
        LearnedDialects(home).note(target, {"limit": "max_tokens"}, "")
    Bills(home).note("k", "dear", ENDPOINTS[0], billed=5_000_000, most=1_000_000)
    told = await doctor("--forget", "dear")
    unknown = await doctor("--forget", "deer")

    assert (told.code, told.err) == (
        0,
        "dear is asked as at first again; forgotten: what it refused and what it billed\n",
    )
    assert (unknown.code, unknown.err) == (
        1,
        "nothing is known of deer here, and models.yaml has no such entry\n",
    )
    assert [found.model for found in LearnedDialects(home).lately()] == ["other"]
    assert Bills(home).factor("k") == 1
    # Workers and runs forget what they keep themselves.
    assert (ForgottenModels(home).at("dear") > 0, ForgottenModels(home).at("deer")) == (True, 0)
