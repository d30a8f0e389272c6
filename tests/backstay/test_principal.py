"""The canonical form of a person's name: one person is one name, and nobody's name becomes another's."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.approvals.approval import Approval
from backstay.approvals.approvers import refused_person
from backstay.approvals.proof import Binding, sign, verify
from backstay.authority import Authority, is_plain, principal
from backstay.errors import PolicyInvalid
from backstay.policies.policy import Policy
from backstay.task.task import Task
from tests.requirements import promise

ANA = "ana@example.com"
SPELLINGS = ["Ana@Example.com", " ana@example.com\t", "ANA@EXAMPLE.COM", "\nana@EXAMPLE.com "]


@promise("approvals:one-person")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_an_address_is_one_person_wherever_names_are_read(spelling):
    assert principal(spelling) == ANA
    assert Approval(request_id="r1", verdict="approve", by=spelling).by == ANA
    assert (Task(text="t", by=spelling, user_id=spelling).by, Task(text="t", user_id=spelling).user_id) == (ANA, ANA)
    policy = Policy.admit(
        {
            "groups": {"@Finance": [spelling]},
            "ask": [{"tool": "a.b", "approvers": [spelling]}, {"tool": "a.c", "approvers": ["@Finance"]}],
            "accepting": {"approvers": [spelling]},
        }
    )
    assert [policy.persons(rule) for rule in policy.ask] == [(ANA,), (ANA,)]
    assert policy.persons(policy.accepting) == (ANA,)
    own = Authority(no_self_approval=True)
    assert "forbids approving" in str(refused_person(own, spelling, "proof", {ANA}))
    assert "forbids approving" in str(refused_person(own, ANA, "proof", {spelling}))
    assert refused_person(Authority(approvers=(ANA,)), spelling, "proof", ()) is None


@promise("approvals:one-person")
def test_two_spellings_are_not_two_of_the_people_who_must_agree():
    rule = {"tool": "a.b", "approvers": [ANA, "Ana@Example.com"], "quorum": 2}
    with pytest.raises(PolicyInvalid, match="can never agree"):
        Policy.admit({"ask": [rule]})


@promise("approvals:one-person")
def test_composed_and_decomposed_letters_are_one_name_and_names_that_are_no_addresses_keep_their_capitals():
    composed, decomposed = "José", unicodedata.normalize("NFD", "José")
    assert composed != decomposed
    assert principal(decomposed) == principal(composed) == composed
    assert principal(f"{decomposed}@Example.com") == "josé@example.com"
    assert principal("Ana") == "Ana" != principal("ana")
    assert principal("STRAẞE@x.example") == principal("straße@x.example")


@promise("approvals:nobody-else")
@pytest.mark.parametrize(
    "odd",
    [
        *("ana\u200b@example.com", "an\u0430@example.com", "ana@example.com\u202e", "ana@exam\u00adple.com"),
        *("\u212aim@x.example", "\u017fam@x.example", "ma\u0131l@x.example", "a\u0130@x.example"),
    ],
)
def test_a_sign_that_cannot_be_seen_or_passes_for_another_makes_nobody_elses_name(odd):
    plain = ("ana@example.com", "kim@x.example", "sam@x.example", "mail@x.example", "ai@x.example", "ai̇@x.example")
    assert principal(odd) not in plain
    assert refused_person(Authority(approvers=plain), odd, "proof", ()) is not None


@promise("approvals:nobody-else")
@pytest.mark.parametrize(
    "wide", ["ana\uff20example.com", "\uff41na@example.com", "ana@example\uff0ecom", "\u24d0na@x.com"]
)
def test_a_wide_or_circled_form_of_a_plain_sign_is_written_as_its_code_and_refused_in_a_policy(wide):
    assert "<U+" in principal(wide)
    assert not is_plain(wide)
    with pytest.raises(PolicyInvalid, match="signs that cannot be seen"):
        Policy.admit({"ask": [{"tool": "a.b", "approvers": [wide]}]})


@promise("approvals:nobody-else")
def test_a_policy_that_names_somebody_with_a_sign_that_cannot_be_seen_is_refused():
    with pytest.raises(PolicyInvalid, match="signs that cannot be seen"):
        Policy.admit({"ask": [{"tool": "a.b", "approvers": ["ana\u200b@example.com"]}]})


@promise("approvals:nobody-else")
@given(st.text(max_size=60))
def test_the_canonical_form_of_a_canonical_form_is_the_same_and_no_foreign_letter_becomes_a_plain_one(name):
    known = principal(name)
    assert principal(known) == known
    if is_plain(name) and known.isascii():
        assert name.strip().isascii()


@promise("approvals:one-person")
def test_a_proof_holds_for_the_name_as_it_was_sent_and_for_its_canonical_form():
    binding = Binding(namespace="n", workflow_id="w", run_id="r", update="decide")
    payload = {"verdict": "approve", "by": "Ana@Example.com"}
    made = sign(b"key", binding, 2000, payload, "0" * 32)
    for by in ("Ana@Example.com", ANA):
        assert verify(b"key", made, binding, {**payload, "by": by}, 1000) is None
    assert verify(b"key", made, binding, {**payload, "by": "bo@example.com"}, 1000) == "wrong"
