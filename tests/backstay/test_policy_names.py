import pytest

from backstay.policies.names import ProviderTools, findings, quota_findings, twins
from backstay.policies.policy import Policy, forbids
from backstay.tools.tool import Tool
from tests.requirements import promise

OFFERED = {
    "crm": ProviderTools(tools=frozenset({"delete", "search", "get_customer"})),
    "mail": ProviderTools(tools=frozenset({"send_email"})),
    "down": ProviderTools(unread="down is not available: connection refused"),
}


def found(**policy):
    return [(finding.state, finding.where, finding.said) for finding in findings(Policy.admit(policy), OFFERED)]


@promise("policy:names")
@pytest.mark.parametrize("section", ["deny", "ask", "allow"])
@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("crm.delte", "crm has no such tool; did you mean 'crm.delete'?"),
        ("cmr.delete", "no provider of the toolbox is named 'cmr'; did you mean 'crm.delete'?"),
        ("zzz.qqq", "no provider of the toolbox is named 'zzz'; correct the name"),
        ("engine.run_programm", "engine has no such tool; did you mean 'engine.run_program'?"),
    ],
)
def test_a_name_that_is_not_there_is_an_error_with_the_nearest_one(section, pattern, said):
    ((state, where, line),) = found(**{section: ["crm.search", pattern]})
    assert (state, where) == ("error", f"{section}[1]")
    assert said in line
    ((state, where, line),) = found(undo={section: [pattern]})
    assert (state, where) == ("error", f"undo.{section}[0]")


@promise("budget:quota-names")
@pytest.mark.parametrize(
    ("tool", "state", "said"),
    [
        ("crm.delte", "error", "crm.delte: crm has no such tool; did you mean 'crm.delete'?"),
        ("zzz.qqq", "error", "zzz.qqq: no provider of the toolbox is named 'zzz'; correct the name"),
        ("crm.*", "error", "crm.*: a quota counts the calls of one tool; name each tool by itself"),
        ("crm.delet?", "error", "crm.delet?: a quota counts the calls of one tool; name each tool by itself"),
        ("down.anything", "warning", "down.anything: cannot be compared, down is not available: connection refused"),
    ],
)
def test_a_quota_of_no_tool_or_of_several_is_an_error_with_the_nearest_name(tool, state, said):
    (finding,) = quota_findings("quotas", [tool, "crm.search"], OFFERED)
    assert (finding.state, finding.where, finding.said.removesuffix("; the line is in force")) == (
        state,
        "quotas",
        said,
    )


@promise("policy:names-in-doubt")
@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("down.anything", "cannot be compared, down is not available: connection refused; the line is in force"),
        ("crm.delte_*", "fits no tool that is known; the tools of down are not known now; the line is in force"),
        ("cmr.*", "fits no tool that is known"),
    ],
)
def test_what_cannot_be_compared_and_a_glob_without_a_match_is_a_warning(pattern, said):
    ((state, _, line),) = found(deny=[pattern])
    assert state == "warning"
    assert said in line


@promise("policy:names-in-doubt")
def test_a_name_that_is_there_or_may_be_missing_says_nothing():
    optional = {"tool": "crm.later", "optional": True}
    assert (
        found(
            deny=["crm.delete", "*.send_*", "engine.run_program", "engine.delegate", optional],
            reveal={"deny": ["crm.token"]},
        )
        == []
    )
    later = Policy.admit({"deny": [optional]})
    assert "deny[0]" in forbids(later, Tool(name="crm.later"))
    assert Policy.admit(later.plain()) == later


@promise("policy:written")
@pytest.mark.parametrize(
    ("condition", "how"),
    [
        ({"url": {"starts_with": "https://example.com"}}, 'write starts_with: "https://example.com/"'),
        ({"url": {"starts_with": "https://example.com/own"}}, 'write starts_with: "https://example.com/own/"'),
        ({"url": {"contains": "https://example.com"}}, 'write starts_with: "https://example.com/"'),
        ({"to": {"ends_with": "example.com"}}, 'for an address ends_with: "@example.com"'),
        ({"to": {"starts_with": "bo@example.com"}}, 'write equals: "bo@example.com"'),
        ({"to": {"contains": "@example.com"}}, 'write ends_with: "@example.com"'),
    ],
)
def test_a_condition_that_permits_less_than_it_seems_to_is_named_with_how_to_write_it(condition, how):
    for policy in (
        {"allow": [{"tool": "mail.send_email", "when": condition}]},
        {"ask": [{"tool": "mail.send_email", "unless": condition}]},
    ):
        ((state, _, line),) = found(**policy)
        assert state == "warning"
        assert how in line
    assert found(deny=[{"tool": "mail.send_email", "when": condition}]) == []


@promise("policy:written")
def test_a_condition_that_is_written_as_it_holds_says_nothing():
    for condition in (
        {"url": {"starts_with": "https://example.com/"}},
        {"to": {"ends_with": "@example.com"}},
        {"to": {"in": ["bo@example.com"]}},
        {"host": {"ends_with": ".example.com"}},
        {"path": {"starts_with": "/work/"}},
    ):
        assert found(allow=[{"tool": "mail.send_email", "when": condition}]) == []


@promise("policy:twins")
def test_one_person_in_two_spellings_is_an_error_wherever_the_policy_names_people():
    rule = {"tool": "a.b", "approvers": ["Ana@example.com"], "escalate_to": ["bo"]}
    data = {"ask": [rule], "groups": {"@ops": ["ana@Example.com ", "Bo"]}}
    ((state, where, said),) = twins(data)
    assert (state, where) == ("error", "people")
    assert "'Ana@example.com' and 'ana@Example.com '" in said
    composed = {"accepting": {"approvers": ["Jos\u00e9", "bo"]}, "ask": [{"tool": "a.b", "approvers": ["Jose\u0301"]}]}
    assert "are one person" in twins(composed)[0].said
    assert twins({"ask": [{"tool": "a.b", "approvers": ["bo", "Bo", "bo"]}]}) == []


@promise("policy:names-own")
def test_a_rule_for_servers_of_users_is_no_mistake_since_only_their_runs_know_them():
    assert found(ask=["own-crm-*.find", "own-*"]) == []
    ((state, _, said),) = found(allow=["own-crm-3f9a1c42.find"])
    assert (state, "not compared" in said) == ("warning", True)


@promise("policy:covered")
def test_a_rule_that_never_decides_because_another_comes_first_is_a_warning():
    to = {"tool": "mail.send_email", "when": {"to": {"equals": "ana@example.com"}}}
    assert found(ask=["mail.send_email"], allow=[to]) == [
        (
            "warning",
            "allow[0]",
            (
                "mail.send_email: never decides, because ask[0] comes first and has no conditions; "
                "give that one `when` or `unless`, or remove this line"
            ),
        )
    ]
    assert [where for _, where, _ in found(deny=["crm.*"], ask=["crm.delete", to], allow=["crm.search", to])] == [
        "ask[0]",
        "allow[0]",
    ]
    unless = {"tool": "mail.send_email", "unless": to["when"]}
    assert found(ask=[unless], allow=[to]) == []
    assert found(allow=[to, "mail.send_email"], ask=["crm.delete"]) == []
