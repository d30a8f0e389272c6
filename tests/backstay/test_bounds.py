"""What people send is bounded in bytes, and what cannot be carried is refused by field."""

import pytest

from backstay.approvals.admission import DecisionInvalid, admit, readable
from backstay.bounds import ARGUMENTS, REFERENCES
from backstay.budgets.budget import Budget
from backstay.errors import ArgumentsInvalid, TaskInvalid
from backstay.task.plan import references_in, resolve
from backstay.task.task import Task, too_long
from tests.requirements import promise

SAID = {"request_id": "r1", "verdict": "answer", "answer": "this"}
SIGNS = ['"', "\x01", "中", "🦉"]


@promise("runs:bounds-in-bytes")
@pytest.mark.parametrize("sign", SIGNS)
def test_a_field_longer_than_its_bound_is_refused_by_name_whatever_fills_it(sign):
    decision = {"request_id": "r1", "verdict": "answer", "by": "ana"}
    assert admit({**decision, "answer": sign * 5_000}).answer == sign * 5_000
    with pytest.raises(DecisionInvalid, match=r"answer: .* bytes"):
        admit({**decision, "answer": sign * 66_000})
    with pytest.raises(DecisionInvalid, match="decision: larger than"):
        admit({**decision, "calls": {"0": {"verdict": "modify", "arguments": {"a": sign * 1_000_000}}}})
    with pytest.raises(TaskInvalid, match=r"session_id: .* bytes"):
        Task.admit({"text": "t", "session_id": sign * 1_300})
    with pytest.raises(TaskInvalid, match=r"quotas: .* bytes"):
        Budget().raised({"quotas": {sign * 33_000: 1}})
    assert too_long({"text": "t", "input": {"a": sign * 1_000_000}}) is not None


@promise("runs:long-answers")
@pytest.mark.parametrize("sign", SIGNS)
def test_only_a_text_that_nobody_signed_is_cut(sign):
    long = {"request_id": "r1", "verdict": "answer", "by": "ana", "answer": "first " + sign * 300_000}
    cut = admit(readable(long)).answer

    assert cut.startswith(f"first {sign}")
    assert cut.endswith("(cut; all of it had 300,006 characters)")
    for other in ({"proof": "x"}, {"answer": {"a": sign * 300_000}}, {"verdict": "approve"}, {"answer": "short"}):
        assert readable(long | other) == long | other
    assert readable(["list"]) == ["list"]


@promise("runs:short-refusals")
def test_a_refusal_names_few_faults_in_short_and_quotes_no_secret():
    with pytest.raises(TaskInvalid) as refused:
        Task.admit({"text": "t", "x" * 900_000: 1, **{f"unknown {n}": "s3cr3t-0123456789" for n in range(20_000)}})

    assert len(str(refused.value)) < 2_000
    assert "and 19,996 more faults" in str(refused.value)
    assert "s3cr3t" not in str(refused.value)


@promise("plans:references-bounded")
def test_what_references_bring_is_counted_before_it_is_joined():
    scope = {"steps": [{"result": {"x": "y" * (ARGUMENTS // 3)}}]}
    part = "${steps.0.result.x}"

    assert len(resolve({"a": part + part}, scope)["a"]) == 2 * (ARGUMENTS // 3)
    for given in ({"a": part * 4}, {"a": [part] * 4}, {"a": "-" + "${steps.0.result}" * 4}):
        with pytest.raises(ArgumentsInvalid, match="larger than"):
            resolve(given, scope)
    with pytest.raises(ArgumentsInvalid, match="references"):
        resolve({"a": "${a}" * (REFERENCES + 1)}, {})


@promise("plans:references-found")
def test_references_are_found_in_order_also_beside_what_is_not_closed():
    assert references_in({"a": "x${a} ${ b.c }}", "b": ["${d"]}) == ["a", "b.c"]
    assert references_in("${" * 300_000 + "}${e}")[-1] == "e"
    assert references_in("${" * 300_000) == []


@promise("plans:input-bounded")
def test_a_plan_that_would_be_too_large_with_its_input_is_refused_before_it_is_sent():
    def task(text, steps, **given):
        return {"input": given, "plan": {"steps": [{"tool": "a.b", "arguments": {"x": text}}] * steps}}

    large = "x" * 300_000
    assert Task.admit(task("${input.a}" * 3, 5, a=large)).plan is not None
    assert Task.admit(task("${input.b}", 5, a=large)).plan is not None
    for given, said in (
        (task("${input.a}" * 4, 1, a=large), r"plan\.steps\.0\.arguments: .*input\.a.*; refer to less"),
        (task("${input.a}", 30, a=large), r"plan\.steps\.26\.arguments: larger than 8,000,000 bytes"),
        (task("${input.a}" * 1001, 1, a="x"), r"plan\.steps: .* references"),
        (task("-${input.a}", 1, a=["\u200b"] * 120_000), r"plan\.steps\.0\.arguments: larger"),
        (task("${input.a}", 1, a=object()), "plan: a value is none that JSON"),
    ):
        with pytest.raises(TaskInvalid, match=said):
            Task.admit(given)


@promise("plans:references-bounded")
def test_references_lead_no_deeper_than_history_can_hold():
    deep: object = "end"
    for _ in range(150):
        deep = {"a": deep}
    held: object = "${input.x}"
    for _ in range(60):
        held = [held]

    with pytest.raises(ArgumentsInvalid, match="nested deeper than 200"):
        resolve({"x": held}, {"input": {"x": deep}})


@promise("runs:read-again")
def test_a_name_that_is_accepted_is_accepted_again_in_the_form_in_which_history_holds_it():
    for name, accepted in (("\u200b" * 25, True), ("中" * 200, True), ("\u200b" * 26, False), ("x" * 201, False)):
        for door in (lambda n: Task.admit({"text": "t", "user_id": n}).user_id, lambda n: admit({**SAID, "by": n}).by):
            if not accepted:
                with pytest.raises((TaskInvalid, DecisionInvalid), match="longer than 200 characters"):
                    door(name)
            else:
                assert door(door(name)) == door(name)
