"""The one mapping from errors of ours to what Temporal acts on."""

from functools import partial

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.model.completion import ContextTooLong
from activities.retrying import to_application_error
from activities.tools.effects import InFlight
from backstay.errors import ArgumentsInvalid, BackstayError, StoreUnavailable
from backstay.redaction.redactor import Redactor
from backstay.tools.trying import LONGEST_WAIT_S, retry_after
from store.database.faults import Collision
from tests.e2e.servers.spellings import token_of
from tests.requirements import promise

TOKEN = token_of(7)
REDACTOR = Redactor({"known-secret-value"})


def mapped(error: BackstayError, transient_s: float = 1e12) -> ApplicationError:
    return ActivityEnvironment().run(partial(to_application_error, final=error.final), error, transient_s, REDACTOR)


@promise("models:errors")
@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ContextTooLong("x"), "ModelRefused"),
        (InFlight("x"), "ToolUnavailable"),
        (Collision("x"), "StoreUnavailable"),
        (ArgumentsInvalid("x"), "ArgumentsInvalid"),
    ],
)
def test_an_error_of_a_bodys_own_goes_by_the_name_that_workflows_know(error, name):
    assert mapped(error).type == name


@promise("models:errors")
def test_a_final_error_is_not_tried_again_and_a_transient_one_is_until_it_has_lasted():
    assert mapped(ArgumentsInvalid("x")).non_retryable
    assert not mapped(StoreUnavailable("x")).non_retryable
    assert mapped(StoreUnavailable("x"), transient_s=0).non_retryable


@promise("models:errors")
def test_a_message_is_free_of_secrets_and_the_facts_of_what_cannot_be_kept():
    failure = mapped(StoreUnavailable("it said known-secret-value", retry_after=float("inf")))
    assert "known-secret-value" not in failure.message
    assert failure.details[0] == {"retry_after": LONGEST_WAIT_S}
    assert failure.next_retry_delay is not None
    assert failure.next_retry_delay.total_seconds() == LONGEST_WAIT_S


@promise("models:retry-after")
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (5, 5),
        (0.25, 0.25),
        (0, None),
        (-3, None),
        (float("nan"), None),
        (float("inf"), LONGEST_WAIT_S),
        (10**400, LONGEST_WAIT_S),
        ("7", None),
        (True, None),
        (None, None),
    ],
)
def test_a_wait_is_a_number_of_seconds_of_at_most_a_day(said, kept):
    assert retry_after(said) == kept


@promise("secrets:echoed-reason")
def test_a_message_that_was_clipped_amid_a_secret_holds_no_beginning_of_it():
    assert mapped(StoreUnavailable("it said known-sec… twice")).message == "it said [REDACTED:known]… twice"
    assert mapped(StoreUnavailable("it went on… and on")).message == "it went on… and on"


@promise("secrets:facts-of-errors")
def test_what_programs_read_of_an_error_is_free_of_secrets_and_its_numbers_stay():
    facts = {
        "cause": f"the server said known-secret-value and {TOKEN}",
        "fix": "it said known-sec… twice",
        "tried": [
            {"url": "https://ana:hunter2hunter2@db.example/", "password": "hunter2hunter2"},
            ["known-secret-value"],
        ],
        "asks_tokens": 1200,
        "unbilled": True,
        "call": None,
    }
    kept = mapped(StoreUnavailable("x", **facts)).details[0]
    for secret in ("known-sec", TOKEN, "hunter2"):
        assert secret not in str(kept)
    assert kept["cause"].startswith("the server said [REDACTED:")
    assert (kept["asks_tokens"], kept["unbilled"], kept["call"]) == (1200, True, None)


@promise("secrets:facts-of-errors")
def test_a_fact_that_is_no_json_is_kept_as_text_or_not_at_all():
    assert "known-secret-value" not in str(mapped(StoreUnavailable("x", cause=OSError("known-secret-value"))).details)
