"""Reviews: how they are declared, and how their checks are weighed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.errors import SettingsInvalid, TaskInvalid
from backstay.plans.review import CheckResult, CheckRule, Review, ReviewRules, check_of, judge_answer, score_of
from backstay.profile import Profiles
from backstay.task.decision import PlanVerdict
from backstay.tools.tool import Safety
from tests.requirements import promise

CUSTOM = {"name": "custom", "tool": "crm.count", "condition": {"result.open": {"equals": 0}}}


def rules(*checks, **fields):
    return ReviewRules.admit({"checks": list(checks), **fields})


@promise("plans:rules")
def test_rules_that_were_written_out_are_read_again_as_they_were():
    admitted = rules(
        {"name": "lint", "weight": 2, "critical": True},
        {"name": "schema", "paths": ["out/a.json"], "schema": {"type": "object"}},
        CUSTOM,
    )
    assert (admitted.threshold, admitted.max_corrections) == (0.8, 2)
    assert ReviewRules.admit(admitted.plain()) == admitted
    assert ReviewRules.model_validate_json(admitted.model_dump_json(by_alias=True, exclude_unset=True)) == admitted


@promise("plans:rules")
@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"checks": []}, "checks: 0 checks; write at least one"),
        ({"threshold": 0.9}, "checks: 0 checks; write at least one, or name a reviewer"),
        ({"checks": [{"name": "lint"}], "treshold": 1}, "treshold: unknown field"),
        ({"checks": [{"name": "lint"}], "threshold": 0}, "threshold: "),
        ({"checks": [{"name": "lint", "wait": 1}]}, "checks.0.wait: unknown field"),
        ({"checks": [{"name": "style"}]}, "checks.0.name: "),
        ({"checks": [{"name": "lint", "weight": 0}]}, "checks.0.weight: "),
        ({"checks": [{"name": "lint", "modules": ["a"]}]}, "modules: of no use for lint; remove it"),
        ({"checks": [{"name": "tests", "schema": {}}]}, "schema: of no use for tests; remove it"),
        ({"checks": [{"name": "tests", "paths": ["../x"]}]}, "checks.0.paths.0: write a path relative"),
        ({"checks": [{"name": "tests", "paths": ["/etc"]}]}, "checks.0.paths.0: write a path relative"),
        ({"checks": [{"name": "import", "modules": ["a-b"]}]}, "checks.0.modules.0: write the dotted name"),
        ({"checks": [{"name": "schema", "paths": ["a"]}]}, "needs paths and schema"),
        ({"checks": [{"name": "artifacts", "expected": [{"path": "a", "sha256": "x"}]}]}, "expected.0.sha256: "),
        ({"checks": [{"name": "custom", "tool": "crm.count"}]}, "needs condition, range or schema"),
        ({"checks": [CUSTOM | {"tool": "count"}]}, "'count' is not a tool; write provider.tool"),
        ({"checks": [CUSTOM | {"condition": {"open": {"equals": 0}}}]}, "write result.open"),
        ({"checks": [CUSTOM | {"condition": {"result.open": {"more": 0}}}]}, "unknown operator 'more'"),
        ({"checks": [CUSTOM | {"condition": {"result.to": {"from": ["task"]}}}]}, "`from` asks where"),
        ({"checks": [CUSTOM | {"range": {"path": "result.x"}}]}, "bounds nothing; give min, max or both"),
        ({"checks": [CUSTOM | {"range": {"path": "result.x", "min": 2, "max": 1}}]}, "min 2 is above max 1; swap them"),
    ],
)
def test_bad_rules_are_refused_with_the_field_and_the_fix(given_, told):
    with pytest.raises(TaskInvalid) as caught:
        ReviewRules.admit(given_)
    assert told in str(caught.value)


@promise("plans:custom")
def test_a_tool_that_does_more_than_read_is_refused():
    declared = rules(CUSTOM, {"name": "lint"}, CUSTOM | {"tool": "crm.gone"}, CUSTOM | {"tool": "crm.close"})
    safety = {"crm.count": Safety.READ_ONLY, "crm.close": Safety.WRITE_SAFE}
    assert declared.calls == {0: ("crm.count", {}), 2: ("crm.gone", {}), 3: ("crm.close", {})}
    assert declared.faults(safety) == [
        "review.checks.2.tool: crm.gone is not a tool that the run can call; correct its name",
        "review.checks.3.tool: crm.close is write_safe, and a check only reads; name a read_only tool",
    ]


@promise("plans:confidence")
@pytest.mark.parametrize(
    ("name", "counted", "failed", "score"),
    [
        ("lint", 3, 0, 1.0), ("lint", 3, 1, 0.95), ("lint", 3, 500, 0.0),
        ("types", 1, 3, 0.7), ("tests", 4, 1, 0.75), ("import", 2, 2, 0.0), ("artifacts", 3, 0, 1.0),
        ("schema", 0, 0, 0.0), ("custom", 1, 1, 0.0),
    ],
)  # fmt: skip
def test_a_check_loses_with_every_fault(name, counted, failed, score):
    assert score_of(name, counted, failed) == score


@promise("plans:confidence")
def test_the_confidence_is_the_weighted_mean_and_a_failed_critical_check_leaves_none():
    lint, tests = CheckResult(name="lint", score=0.5, weight=1), CheckResult(name="tests", score=1, weight=3)
    assert Review.of(0.8, [lint, tests]).confidence == 0.875
    assert Review.of(0.8, [lint, tests]).passed
    assert not Review.of(0.9, [lint, tests]).passed
    nearly = tests.model_copy(update={"score": 0.99, "critical": True})
    assert Review.of(0.8, [lint, nearly]).confidence == 0
    assert Review.of(0.8, [lint, tests.model_copy(update={"critical": True})]).confidence == 0.875


@promise("plans:confidence")
def test_a_verdict_lowers_the_confidence_and_never_lifts_it():
    lint = CheckResult(name="lint", score=0.5)
    assert Review.of(0.4, [lint, check_of(PlanVerdict(approved=True, confidence=1, problems=()))]).confidence == 0.5
    assert Review.of(0.4, [lint, check_of(PlanVerdict(approved=True, confidence=0.4, problems=()))]).confidence == 0.45
    assert Review.of(0.4, [lint, check_of(PlanVerdict(approved=False, confidence=1, problems=()))]).confidence == 0


@promise("plans:rules")
@pytest.mark.parametrize(
    ("reviewer", "told"),
    [("nobody", "a: review.reviewer: no profile 'nobody'; use one of b, "), ("a", "'a' cannot review its own plans")],
)
def test_a_reviewer_is_another_profile_that_there_is(reviewer, told):
    with pytest.raises(SettingsInvalid) as caught:
        Profiles.admit({"a": {"review": {"reviewer": reviewer}}, "b": None}, "profiles.yaml")
    assert told in str(caught.value)


checks = st.builds(
    CheckResult,
    name=st.just("lint"),
    weight=st.floats(0.001, 1000),
    score=st.floats(0, 1),
    critical=st.booleans(),
)


@promise("plans:confidence")
@given(st.lists(checks, min_size=1, max_size=20))
def test_no_check_lifts_the_confidence_above_the_best_or_below_the_worst(found):
    confidence = Review.of(0.8, found).confidence
    if any(check.critical and check.score < 1 for check in found):
        assert confidence == 0
    else:
        scores = [check.score for check in found]
        assert min(scores) - 1e-6 <= confidence <= max(scores) + 1e-6


@promise("plans:custom")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"open": 0, "coverage": 0.9}, ""),
        ({"open": 1, "coverage": 0.9}, "condition: it does not apply to the answer"),
        ({"open": 0, "coverage": 0.7}, "range: it does not apply to the answer"),
        ({"open": 0, "coverage": "0.9"}, "range: it does not apply to the answer"),
        ({"open": 0}, "range: it does not apply to the answer"),
        ("open", "condition: it does not apply to the answer"),
        ({"open": "${input.x}", "coverage": 0.9}, "condition: result.open is a secret or a reference"),
    ],
)
def test_an_answer_counts_only_when_condition_and_range_hold_beyond_doubt(answer, told):
    rule = CheckRule.admit(CUSTOM | {"range": {"path": "result.coverage", "min": 0.8, "max": 1}})
    holds, why = judge_answer(rule, answer)
    assert holds == (not told)
    assert told in why
