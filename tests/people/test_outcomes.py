"""What people are told after they have decided, in the same words at every door."""

import pytest

from people.decide.deciding import ASKED_AGAIN, outcome_words, state_words
from tests.requirements import promise

BY = "ana@example.com"


@promise("approvals:outcome-words")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"state": "decided", "verdict": "approve"}, ["decided: approved by ana@example.com"]),
        ({"verdict": "reject"}, ["decided: rejected by ana@example.com"]),
        (
            {"state": "recorded", "verdict": "approve"},
            ["recorded; it waits for others: approved by ana@example.com"],
        ),
        (
            {"state": "decided", "verdict": "modify", "asked_again": True},
            ["decided: changed by ana@example.com", ASKED_AGAIN],
        ),
    ],
)
def test_a_person_is_told_whether_a_decision_decides_counts_or_is_asked_about_again(answer, said):
    assert outcome_words(answer, BY) == said


@promise("approvals:outcome-words")
def test_a_state_that_is_not_known_here_is_told_as_one_line():
    assert state_words({"state": "odd\nstate"}) == "odd⏎state"
