"""With default settings every fault has been closed, asked about or shown as a wait before a minute has passed.

The tests of faults shorten these figures by settings; here they are added up as they are shipped.
"""

from datetime import timedelta

import pytest

from backstay.settings import Settings
from backstay.tools.trying import LONGEST_PAUSE_S
from store.database.database import BUSY_TIMEOUT_S
from tests.requirements import promise
from toolbox.mcp import connection
from toolbox.mcp import provider as mcp_provider
from workflows.calls import model_calls, reconcile
from workflows.dispatch import options

MINUTE = 60
SLACK = 5
"""For the ways between worker and server."""
DEFAULTS = {name: field.default for name, field in Settings.model_fields.items()}


def asked_after(attempt_s: float) -> float:
    """Return when a fault that returns after so many seconds, each time, becomes a question."""
    patience, at, number = DEFAULTS["transient_seconds"], 0.0, 0
    while True:
        at, number = at + attempt_s, number + 1
        pause = min(2 ** (number - 1), LONGEST_PAUSE_S)
        if at + pause > patience:
            return at
        at += pause


@promise("recovery:bounded")
def test_the_pauses_between_attempts_are_those_of_the_retry_policy():
    assert options.PATIENT.initial_interval == timedelta(seconds=1)
    assert options.PATIENT.backoff_coefficient == 2
    assert options.PATIENT.maximum_interval == timedelta(seconds=LONGEST_PAUSE_S)


@promise("recovery:bounded")
@pytest.mark.parametrize("tenths", range(1, int(connection.CONNECT_S * 10) + 1))
def test_whatever_an_attempt_takes_a_lasting_fault_is_asked_about_within_a_minute(tenths):
    assert asked_after(tenths / 10) < MINUTE


@promise("recovery:bounded")
def test_a_locked_store_is_asked_about_within_a_minute():
    # An attempt waits for its turn to write, and then for the lock itself.
    assert asked_after(2 * BUSY_TIMEOUT_S) + SLACK < MINUTE
    # Around a model call the activity itself tries again, until the same patience ends.
    assert DEFAULTS["transient_seconds"] + 2 * BUSY_TIMEOUT_S < MINUTE


@promise("recovery:bounded")
def test_an_effect_that_hangs_is_asked_about_within_a_minute():
    sent = DEFAULTS["request_deadline_seconds"]
    settled = sent + DEFAULTS["settle_after_seconds"]
    assert settled + reconcile.VERIFY_TIMEOUT_S + SLACK < MINUTE


@promise("effects:deadline")
def test_a_request_ends_before_its_activity_does():
    call = options.options_for("call_tool", DEFAULTS["request_deadline_seconds"])
    assert call.start_to_close > timedelta(seconds=DEFAULTS["request_deadline_seconds"] + SLACK)
    assert options.options_for("call_tool", 600).start_to_close >= timedelta(seconds=610)


@promise("recovery:bounded")
def test_an_endpoint_that_cannot_be_reached_is_asked_about_within_a_minute():
    connect = 5
    pauses = sum(2**n for n in range(model_calls.TRIES - 1))
    assert model_calls.TRIES * connect + pauses + SLACK < MINUTE


@promise("recovery:bounded")
def test_another_store_is_asked_about_within_a_minute():
    # The last pause begins only when it ends within the patience.
    assert DEFAULTS["transient_seconds"] + SLACK < MINUTE


@promise("recovery:bounded")
def test_a_server_that_is_silent_at_its_start_is_given_up_within_a_minute():
    assert connection.CONNECT_S + mcp_provider._LIST_S + SLACK < MINUTE
    # A command that has never answered may be downloading.
    assert connection.FIRST_START_S + mcp_provider._LIST_S + SLACK < 2 * MINUTE
