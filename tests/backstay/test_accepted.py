"""Accepted lines overrule the default, and nothing else, whatever else is true of a call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.canonical import digest_of
from backstay.errors import PolicyInvalid
from backstay.policies.accepted import AcceptedLine
from backstay.policies.policy import Policy, rule, rule_on_repeat
from backstay.policies.ruling import rule_on_change
from backstay.provenance.source import ArgumentSources
from backstay.redaction.handles import handle_for
from backstay.tools.tool import Safety, Tool
from tests.requirements import promise

SEND = Tool(name="mail.send_email", definition="d1", safety=Safety.WRITE_SAFE)
TO = {"to": "ana@example.com"}


def line(verdict="allow", **fields):
    about = {"scope": "always", "tool": SEND.name, "definition": "d1", "by": "ana", "at": "2026-01-01T00:00:00+00:00"}
    return AcceptedLine(verdict=verdict, **{**about, **fields}).identified()


def exactly(arguments, **fields):
    return line(args_digest=digest_of(arguments), **fields)


def ruled(policy=None, tool=SEND, arguments=TO, lines=(), **more):
    return rule(Policy.admit(policy or {}), tool, arguments, lines=lines, **more)


@promise("policy:accepted-lines")
def test_a_line_stands_in_for_the_default_and_the_ruling_names_it():
    ruling = ruled(lines=[line()])

    assert ruling.verdict == "allow"
    assert ruling.rule == (
        "accepted: mail.send_email by ana on 2026-01-01T00:00:00+00:00, any arguments (line " + line().id + ")"
    )
    assert ruling.line == line().id
    assert ruled(lines=[line("deny")]).verdict == "deny"
    assert ruled({"default": {"write_safe": "allow"}}, lines=[line("deny")]).rule.startswith("never: mail.send_email")


@promise("policy:accepted-deny")
def test_of_two_lines_the_one_that_denies_wins():
    for lines in ([line(), line("deny")], [line("deny"), exactly(TO)]):
        assert ruled(lines=lines).verdict == "deny"


@promise("policy:accepted-exact")
def test_exact_arguments_another_tool_and_another_definition_are_told_apart():
    assert ruled(lines=[exactly(TO)]).verdict == "allow"
    assert ruled(lines=[exactly({"to": "eve@example.com"})]).verdict == "ask"
    assert ruled(lines=[line(definition="d2")]).verdict == "ask"
    earlier = SEND.model_copy(update={"definition": "d2", "earlier_definition": "d1"})
    assert ruled(tool=earlier, lines=[line()]).verdict == "allow"
    assert ruled(tool=earlier, lines=[line(definition="d3")]).verdict == "ask"
    assert ruled(lines=[line(tool="mail.send_emails")]).verdict == "ask"
    assert ruled(lines=[line(tool="*")]).verdict == "ask"


@promise("policy:accepted-rules")
@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_where_a_rule_decides_a_line_says_nothing(verdict):
    for policy in (
        {"deny": ["mail.*"]},
        {"ask": ["mail.*"]},
        {"allow": ["mail.*"]},
        {"default": {"write_safe": "deny"}},
    ):
        assert ruled(policy, lines=[line(verdict)]) == ruled(policy)


@promise("policy:accepted-asks-anyway")
def test_a_secret_strict_provenance_a_repeat_and_a_change_ask_in_spite_of_a_line():
    own, foreign = (handle_for(b"k" * 32, provider, "token", "v" * 20) for provider in ("mail", "crm"))
    for handle in (own, foreign):
        arguments = {"to": handle}
        assert ruled(arguments=arguments, lines=[line(), exactly(arguments)]).verdict == "ask"
    strict = {"provenance": "strict"}
    assert ruled(strict, lines=[line()]).verdict == "ask"
    assert ruled(strict, lines=[line()], sources=ArgumentSources(foreign=("/to",))).verdict == "ask"
    assert ruled(strict, lines=[line()], sources=ArgumentSources(by={"": (("task",),)})).verdict == "allow"
    allowed = ruled(lines=[line()])
    assert rule_on_repeat(Policy(), allowed, "effect 1").verdict == "ask"
    assert rule_on_change(allowed, SEND.name).verdict == "ask"


@promise("policy:accepted-egress")
def test_a_read_that_reaches_out_is_accepted_with_its_very_arguments_only():
    fetch = Tool(name="web.fetch", definition="d1", safety=Safety.READ_ONLY, egress=True)
    there = {"url": "https://example.com"}
    for lines, verdict in (([line(tool="web.fetch")], "ask"), ([exactly(there, tool="web.fetch")], "allow")):
        assert ruled(tool=fetch, arguments=there, lines=lines).verdict == verdict
    assert ruled(tool=fetch, arguments=there, lines=[line("deny", tool="web.fetch")]).verdict == "deny"


@promise("policy:accepted-task")
def test_what_a_tasks_own_policy_asks_no_line_permits_and_compensations_have_no_lines():
    policy = Policy().tightened_by({"default": {"write_safe": "ask"}})
    assert rule(policy, SEND, TO, lines=[line()]).verdict == "ask"
    open_to_lines = Policy().tightened_by({"deny": ["shell.*"]})
    assert rule(open_to_lines, SEND, TO, lines=[line()]).verdict == "allow"
    assert ruled({"undo": {"default": "ask"}}, lines=[line()], purpose="undo").verdict == "ask"


@promise("policy:accepted-lines")
@given(
    st.sampled_from(["allow", "ask", "deny"]),
    st.lists(st.sampled_from(["deny", "ask", "allow"]), unique=True),
    st.lists(st.sampled_from(["allow", "deny"]), max_size=3),
)
def test_lines_change_a_ruling_only_where_the_default_asks_or_allows(default, sections, verdicts):
    policy = {"default": {"write_safe": default}} | {section: ["mail.*"] for section in sections}
    before, after = ruled(policy), ruled(policy, lines=[line(verdict) for verdict in verdicts])

    if sections or default == "deny" or not verdicts:
        assert after == before
    else:
        assert after.verdict == ("deny" if "deny" in verdicts else "allow")


@promise("approvals:remember-invalid")
@pytest.mark.parametrize(
    ("accepting", "fault"),
    [
        ({}, "accepting.approvers: required field is missing"),
        ({"approvers": []}, "accepting.approvers"),
        ({"approvers": ["@nobody"]}, "accepting.approvers: unknown group '@nobody'"),
        ({"approvers": ["ana"], "quorum": 2}, "accepting.quorum: 2 of 1 approvers"),
        ({"approvers": ["ana"], "scope": "always"}, "accepting.scope: unknown field"),
    ],
)
def test_an_accepting_that_cannot_work_is_refused_by_field(accepting, fault):
    with pytest.raises(PolicyInvalid) as caught:
        Policy.admit({"accepting": accepting})
    assert fault in str(caught.value)


@promise("approvals:remember-task")
def test_a_task_says_nothing_about_who_accepts():
    with pytest.raises(PolicyInvalid, match="accepting: only the operator's policy"):
        Policy().tightened_by({"accepting": {"approvers": ["eve"]}})
