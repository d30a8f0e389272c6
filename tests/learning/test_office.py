"""What is learned from three recorded weeks of an office is held against the fourth."""

from collections import Counter

from backstay.policies.learning.evidence import gather
from backstay.policies.learning.learning import learn
from tests.learning.measured import cases, figures
from tests.learning.office import APPROVES_ALL, WEEKS, recorded_weeks
from tests.requirements import promise


def fourth_week(seed):
    asks = recorded_weeks(seed)
    learned = learn(gather(cases(ask for ask in asks if ask.week < WEEKS)))
    return learned, figures([line.rule for line in learned.proposed], [ask for ask in asks if ask.week == WEEKS])


@promise("learning:office")
def test_three_weeks_teach_more_than_half_of_the_fourth_and_nothing_that_people_reject():
    learned, found = fourth_week(34)

    assert found["honest"] == (208, 246)
    assert found["rejected and meant"] == (0, 73)
    assert found["trainer"] == (0, 3)
    assert found["injected"] == (0, 60)
    assert found["wrong"] == (0, 26)
    # People took these back within the hour: the work had to be done.
    assert found["rejected by a slip"] == (19, 22)
    assert {(pattern.kind, pattern.about) for pattern in learned.patterns} == {
        ("hasty", APPROVES_ALL),
        ("never_rejects", APPROVES_ALL),
    }


@promise("learning:offices")
def test_other_offices_come_out_alike():
    let, every = Counter(), Counter()
    for seed in range(100, 110):
        for kind, (passed, count) in fourth_week(seed)[1].items():
            let[kind] += passed
            every[kind] += count

    assert let["injected"] == let["trainer"] == 0
    assert let["honest"] > 0.8 * every["honest"]
    assert let["rejected and meant"] <= 0.002 * every["rejected and meant"]
