"""What is learned from three recorded weeks of an office is held against the fourth."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from backstay.policies.learning.evidence import gather
from backstay.policies.learning.learning import learn
from tests.learning.measured import cases, figures
from tests.learning.office import APPROVES_ALL, WEEKS, recorded_weeks
from tests.requirements import promise
from tests.sizes import sized


def fourth_week(seed, change=list):
    asks = change(recorded_weeks(seed))
    learned = learn(gather(cases(ask for ask in asks if ask.week < WEEKS)))
    return learned, figures([line.rule for line in learned.proposed], [ask for ask in asks if ask.week == WEEKS])


@promise("learning:office")
def test_three_weeks_teach_more_than_half_of_the_fourth_and_nothing_that_people_reject():
    learned, found = fourth_week(34)

    assert found["honest"] == (201, 246)
    assert found["rejected and meant"] == (0, 73)
    assert found["trainer"] == (0, 3)
    assert found["injected"] == (0, 60)
    assert found["wrong"] == (0, 26)
    # People took these back within the hour: the work had to be done.
    assert found["rejected by a slip"] == (17, 22)
    assert {(pattern.kind, pattern.about) for pattern in learned.patterns} == {
        ("hasty", APPROVES_ALL),
        ("never_rejects", APPROVES_ALL),
    }


@promise("learning:offices")
def test_other_offices_come_out_alike():
    let, every = Counter(), Counter()
    # In the last one, two payments of twenty times the usual amount were approved by a slip.
    for seed in (*range(100, sized(109, 104)), 139):
        for kind, (passed, count) in fourth_week(seed)[1].items():
            let[kind] += passed
            every[kind] += count

    assert let["injected"] == let["trainer"] == let["wrong"] == 0
    assert let["honest"] > 0.8 * every["honest"]
    assert let["rejected and meant"] <= 0.002 * every["rejected and meant"]


@promise("learning:accounts")
@pytest.mark.parametrize(("accounts", "share", "rejects"), [(3, 0.5, 0.02), (12, 1.0, 0.0)])
def test_a_trainer_with_several_accounts_and_who_hardly_ever_rejects_teach_nothing(accounts, share, rejects):
    dice = random.Random(accounts)
    names = [f"jo-{number}" for number in range(accounts)]

    def spread_out(ask):
        (said,) = ask.said
        if said.by == APPROVES_ALL and dice.random() < rejects:
            said = replace(said, verdict="reject")
        if ask.kind != "trainer" or ask.week == WEEKS:
            return replace(ask, said=(said,))
        starter, by = dice.sample(names, 2)
        if dice.random() < share:
            said = replace(said, by=by, verdict="approve", at=max(said.at, ask.at + 5))
        return replace(ask, starter=starter, said=(said,))

    learned, found = fourth_week(34, lambda asks: [spread_out(ask) for ask in asks])
    assert (found["trainer"], found["rejected and meant"][0]) == ((0, 3), 0)
    assert found["honest"][0] > 0.7 * found["honest"][1]
    assert learned.evidence.reasons["approved by who approves nearly everything, while others do not"] > 0
