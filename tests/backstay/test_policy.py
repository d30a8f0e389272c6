import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.errors import PolicyInvalid
from backstay.policies.operators import is_masked
from backstay.policies.policy import Policy, forbids, rule
from backstay.policies.ruling import Ruling, rule_on_change, stricter
from backstay.redaction.handles import handle_for
from backstay.tools.tool import Safety, Tool
from tests.requirements import promise
from tests.work import calls_in

PUBLISHED = {
    "default": {"read_only": "allow", "write_safe": "ask", "restricted_write": "ask"},
    "deny": ["shell.run", {"tool": "*.delete_*", "unless": {"path": {"starts_with": "/workspace/tmp/"}}}],
    "ask": [
        {
            "tool": "stripe.*",
            "when": {"amount": {"gt": 10000}},
            "approvers": ["ana@example.com", "@finance"],
            "quorum": 2,
            "timeout": "24h",
            "on_expiry": "reject",
            "no_self_approval": True,
        }
    ],
    "allow": [
        "gmail.search",
        "fs.read_*",
        {"tool": "mail.send_email", "when": {"to": {"ends_with": "@example.com"}}},
        "engine.run_program",
    ],
    "undo": {"default": "allow", "ask": ["stripe.refund"]},
    "groups": {"@finance": ["bo@example.com", "cy@example.com"]},
}


def ruled(policy, tool, arguments=None, **more):
    return rule(Policy.admit(policy), Tool(name=tool), arguments or {}, **more)


def verdict(policy, tool, arguments=None, **more):
    return ruled(policy, tool, arguments, **more).verdict


@promise("policy:published")
def test_the_published_policy_is_read_and_ruled_by():
    assert ruled(PUBLISHED, "stripe.pay", {"amount": 20000}) == Ruling(
        verdict="ask",
        rule="ask[0]: stripe.* when amount gt 10000",
        approvers=("ana@example.com", "bo@example.com", "cy@example.com"),
        quorum=2,
        timeout_s=86400,
        on_expiry="reject",
        no_self_approval=True,
    )
    assert verdict(PUBLISHED, "shell.run") == "deny"
    assert verdict(PUBLISHED, "fs.read_file") == "allow"
    assert verdict(PUBLISHED, "mail.send_email", {"to": "ana@example.com"}) == "allow"
    assert verdict(PUBLISHED, "mail.send_email", {"to": "eve@example.org"}) == "ask"
    assert verdict(PUBLISHED, "fs.delete_file", {"path": "/workspace/tmp/a"}) == "ask"
    assert verdict(PUBLISHED, "fs.delete_file", {"path": "/etc/passwd"}) == "deny"


@promise("policy:default")
def test_where_no_rule_applies_the_safety_of_the_tool_decides():
    policy = Policy()
    said = {s: rule(policy, Tool(name="a.b", safety=s), {}) for s in Safety}
    assert {s: r.verdict for s, r in said.items()} == {
        Safety.READ_ONLY: "allow",
        Safety.WRITE_SAFE: "ask",
        Safety.RESTRICTED_WRITE: "ask",
    }
    assert said[Safety.WRITE_SAFE].rule == "default: write_safe asks"


@promise("policy:order")
def test_deny_comes_before_ask_and_ask_before_allow():
    everything = {"deny": ["a.deny"], "ask": ["a.deny", "a.ask"], "allow": ["*"]}
    assert [verdict(everything, f"a.{name}") for name in ("deny", "ask", "other")] == ["deny", "ask", "allow"]


@promise("undo:policy")
def test_compensations_follow_their_own_section_and_are_allowed_by_default():
    assert verdict(PUBLISHED, "shell.run", purpose="undo") == "allow"
    assert ruled(PUBLISHED, "stripe.refund", purpose="undo").rule == "undo.ask[0]: stripe.refund"


@promise("policy:policy")
@pytest.mark.parametrize(
    ("policy", "field", "fix"),
    [
        ({"nope": 1}, "nope", "remove it"),
        ({"defualt": {}}, "defualt: unknown field", "did you mean 'default'?"),
        ({"deny": [{"tool": "a.b", "optional": "yes"}]}, "deny.0.optional", "boolean"),
        ({"ask": [{"tool": "a.b", "aprovers": ["x"]}]}, "ask.0.aprovers", "did you mean 'approvers'?"),
        ({"default": {"write": "ask"}}, "default.write", "did you mean 'write_safe'?"),
        ({"default": {"write_safe": "maybe"}}, "default.write_safe", "'ask'"),
        ({"undo": {"defalt": "ask"}}, "undo.defalt", "did you mean 'default'?"),
        ({"deny": [{"tool": "a.b", "when": {"x": {"greater": 3}}}]}, "greater", "gte"),
        ({"deny": [{"tool": "a.b", "when": {"x": {"gt": "3"}}}]}, "x.gt", "a number"),
        ({"deny": [{"tool": "a.b", "when": {"x": {"gt": True}}}]}, "x.gt", "a number"),
        ({"deny": [{"tool": "a.b", "when": {"x": {"in": []}}}]}, "x.in", "a list"),
        ({"deny": [{"tool": "a.b", "when": {"x": {"starts_with": ""}}}]}, "x.starts_with", "not empty"),
        ({"deny": [{"tool": "a.b", "when": {}}]}, "deny.0.when", "write one"),
        ({"deny": [{"tool": "a.b", "when": {"x": {}}}]}, "deny.0.when", "write one"),
        ({"ask": [{"tool": "a.b", "timeout": "1 day"}]}, "ask.0.timeout", "24h"),
        ({"ask": [{"tool": "a.b", "timeout": 0}]}, "ask.0.timeout", "24h"),
        ({"ask": [{"tool": "a.b", "quorum": "2"}]}, "ask.0.quorum", "integer"),
        ({"ask": [{"tool": "a.b", "approvers": ["@ops"]}]}, "ask[0].approvers", "groups"),
        ({"ask": [{"tool": "a.b", "approvers": ["ana"], "quorum": 2}]}, "ask[0].quorum", "lower it"),
        ({"deny": [{"tool": "a.b", "approvers": ["ana"]}]}, "deny[0]", "move the rule to ask"),
        ({"deny": "a.b"}, "deny", "write ["),
        ({"deny": ["gmail.search(*)"]}, "deny.0.tool", "only * and ?"),
        ({"deny": ["send_email"]}, "deny.0.tool", "*.send_email"),
        ({"groups": {"finance": ["ana"]}}, "groups", "@"),
        ({"groups": {"@finance": ["@ops"]}}, "groups.@finance", "persons"),
        ({"groups": {"@finance": []}}, "groups.@finance", "at least one"),
        ({"floor": {}}, "floor", "remove it"),
        (["a"], "Policy", "dictionary"),
    ],
)
def test_a_faulty_policy_is_refused_naming_field_and_fix(policy, field, fix):
    with pytest.raises(PolicyInvalid) as refused:
        Policy.admit(policy)
    assert field in str(refused.value)
    assert fix in str(refused.value)


@promise("policy:read")
@pytest.mark.parametrize(
    ("written", "seconds"), [("45s", 45), ("30m", 1800), ("24h", 86400), ("7d", 604800), (90, 90), (1.5, 1.5)]
)
def test_durations_are_read_in_seconds(written, seconds):
    assert ruled({"ask": [{"tool": "a.b", "timeout": written}]}, "a.b").timeout_s == seconds


@promise("policy:read")
def test_sections_whose_lines_are_commented_out_are_empty():
    assert Policy.admit({"deny": None, "undo": None, "groups": None, "default": None}) == Policy()
    assert Policy.admit(None) == Policy()


@promise("policy:history")
def test_a_policy_survives_history_with_the_same_hash():
    policy = Policy.admit(PUBLISHED).tightened_by({"deny": ["mail.*"]})
    again = Policy.model_validate(policy.plain())
    assert again == policy
    assert again.policy_hash == policy.policy_hash != Policy().policy_hash


HOLDING = [
    ("equals", 5, 5.0),
    ("equals", {"a": [1, True]}, {"a": [1, True]}),
    ("equals", None, None),
    ("in", ["a", 2], 2),
    ("starts_with", "/a/", "/a/b"),
    ("ends_with", "@example.com", "ana@example.com"),
    ("contains", "needle", "hay needle hay"),
    ("contains", 3, [1, 3]),
    ("lt", 5, 4.9),
    ("lte", 5, 5),
    ("gt", 5, 6),
    ("gte", 5, 5),
    ("max_items", 2, [1, 2]),
    ("max_bytes", 4, "éé"),
]
FAILING = [
    ("equals", 5, 6),
    ("equals", {"a": 1, "b": 2}, {"a": "1", "b": 3}),
    ("in", ["a", "b"], "c"),
    ("in", ["a", None], "c"),
    ("starts_with", "/a/", "/b"),
    ("ends_with", "@example.com", "ana@example.com.evil.example"),
    ("contains", "needle", "hay"),
    ("contains", 1, [2, 3]),
    ("contains", "needle", ["hay"]),
    ("lt", 5, 5),
    ("lte", 5, 5.1),
    ("gt", 5, 5),
    ("gte", 5, 4),
    ("max_items", 2, [1, 2, 3]),
    ("max_bytes", 4, "ééé"),
]
UNFIT = [
    ("equals", 10000, "10000"),
    ("equals", 1, True),
    ("equals", "a", None),
    ("equals", {"a": [1, 2]}, {"a": ["1", 2]}),
    ("equals", [1], ["1"]),
    ("in", ["a"], 1),
    ("in", [12345, "DE99"], "12345"),
    ("in", ["DE99", 12345], "12345"),
    ("in", [None, 12345], "12345"),
    ("in", ["12345", "DE99", None], 12345),
    ("in", [{"id": 5}, {"id": "6"}], {"id": "5"}),
    ("starts_with", "a", 5),
    ("contains", "a", {"a": 1}),
    ("contains", 5, ["5"]),
    ("contains", "a", [["a"]]),
    ("contains", "a", [{"b": "a"}]),
    ("gt", 10000, "20000"),
    ("gt", 0, True),
    ("gt", 0, float("nan")),
    ("lt", 0, float("nan")),
    ("max_items", 1, "text"),
]


def by_condition(operator, operand, value, section):
    rules = {section: [{"tool": "a.b", "when": {"x": {operator: operand}}}]}
    return verdict(
        {"default": {"restricted_write": "ask" if section != "ask" else "allow"}} | rules, "a.b", {"x": value}
    )


@promise("policy:mixed-lists")
def test_a_list_of_choices_of_several_types_lets_nothing_pass_that_it_cannot_judge():
    unless = {"allow": [{"tool": "a.b", "unless": {"x": {"in": [1, "y"]}}}]}
    assert verdict(unless, "a.b", {"x": "1"}) == "ask"
    assert verdict(unless, "a.b", {"x": 2}) == "ask"
    files = {"deny": [{"tool": "a.b", "when": {"x": {"in": ["notes", "/etc/passwd"]}}}], "allow": ["a.b"]}
    assert verdict(files, "a.b", {"x": "/tmp/../etc/passwd"}) == "deny"
    assert verdict(files, "a.b", {"x": "/tmp/notes"}) == "allow"


@promise("policy:conditions")
@pytest.mark.parametrize(("operator", "operand", "value"), HOLDING)
@pytest.mark.parametrize("section", ["deny", "ask", "allow"])
def test_a_condition_that_holds_makes_the_rule_apply(operator, operand, value, section):
    assert by_condition(operator, operand, value, section) == section


@promise("policy:conditions")
@pytest.mark.parametrize(("operator", "operand", "value"), FAILING)
@pytest.mark.parametrize("section", ["deny", "ask", "allow"])
def test_a_condition_that_fails_leaves_the_rule_aside(operator, operand, value, section):
    assert by_condition(operator, operand, value, section) != section


@promise("policy:conditions-against")
@pytest.mark.parametrize(("operator", "operand", "value"), UNFIT)
def test_a_value_of_another_type_counts_against_the_call(operator, operand, value):
    assert by_condition(operator, operand, value, "deny") == "deny"
    assert by_condition(operator, operand, value, "ask") == "ask"
    assert by_condition(operator, operand, value, "allow") != "allow"


@promise("policy:conditions-against")
def test_a_missing_argument_counts_against_the_call():
    condition = {"tool": "a.b", "when": {"to.address": {"ends_with": "@example.com"}}}
    for arguments in ({}, {"to": {}}, {"to": "ana@example.com"}, {"to.address": "ana@example.com"}):
        assert verdict({"deny": [condition]}, "a.b", arguments) == "deny"
        assert verdict({"allow": [condition]}, "a.b", arguments) == "ask"
    assert verdict({"allow": [condition]}, "a.b", {"to": {"address": "ana@example.com"}}) == "allow"


SECOND_NAMES = ["ispublic", "IS_PUBLIC", "is-public", "i\u017fPublic", "isPublic\0", "is\u200bPublic", "\uff49sPublic"]


@promise("policy:conditions-names")
@pytest.mark.parametrize("second", SECOND_NAMES)
def test_a_second_spelling_of_an_arguments_name_counts_against_the_call(second):
    private = {"isPublic": {"equals": False}}
    public = {"isPublic": {"equals": True}}
    both = {"isPublic": False, second: True}
    for arguments in (both, {second: True}, {"more": both}, {"more": [both]}):
        path = "more." if "more" in arguments else ""
        when, unless = ({f"{path}isPublic": way["isPublic"]} for way in (public, private))
        assert verdict({"deny": [{"tool": "a.b", "when": when}], "allow": ["a.*"]}, "a.b", arguments) == "deny"
        assert verdict({"deny": [{"tool": "a.b", "unless": unless}], "allow": ["a.*"]}, "a.b", arguments) == "deny"
        assert verdict({"allow": [{"tool": "a.b", "when": unless}]}, "a.b", arguments) == "ask"
    whole = {"deny": [{"tool": "a.b", "when": {"more": {"equals": {"isPublic": True}}}}], "allow": ["a.*"]}
    assert verdict(whole, "a.b", {"more": both}) == verdict(whole, "a.b", {"more": {second: True}}) == "deny"


@promise("policy:conditions-names")
@pytest.mark.parametrize("other", ["_isPublic", "isPublicly", "public", "$isPublic"])
def test_another_name_says_nothing_of_an_argument(other):
    public = {"deny": [{"tool": "a.b", "when": {"isPublic": {"equals": True}}}], "allow": ["a.*"]}
    assert verdict(public, "a.b", {"isPublic": False, other: True}) == "allow"
    assert verdict({"allow": public["deny"]}, "a.b", {"isPublic": True, other: False}) == "allow"


@promise("policy:long-choices")
def test_arguments_of_many_names_take_little_work():
    many = {f"name{number}": 1 for number in range(2000)} | {"isPublic": False}
    with_condition, without = (
        calls_in(lambda rule=rule: verdict({"deny": [rule], "allow": ["a.*"]}, "a.b", many))
        for rule in ({"tool": "a.b", "when": {"isPublic": {"equals": True}}}, {"tool": "a.c"})
    )
    assert with_condition - without < 4 * len(many)


@promise("policy:conditions-unless")
def test_an_exception_that_cannot_be_judged_exempts_nothing():
    unless = {"tool": "a.b", "unless": {"amount": {"lt": 10}}}
    assert verdict({"deny": [unless]}, "a.b", {}) == "deny"
    assert verdict({"deny": [unless]}, "a.b", {"amount": "5"}) == "deny"
    assert verdict({"deny": [unless]}, "a.b", {"amount": 5}) == "ask"
    limited = {"tool": "a.b", "unless": {"amount": {"gt": 1000}}}
    assert verdict({"allow": [limited]}, "a.b", {"amount": 5}) == "allow"
    assert verdict({"allow": [limited]}, "a.b", {"amount": "5000"}) == "ask"


@promise("policy:conditions")
def test_all_conditions_of_a_rule_must_hold():
    both = {"tool": "a.b", "when": {"x": {"gte": 1, "lte": 5}, "y": {"equals": "z"}}}
    assert verdict({"deny": [both]}, "a.b", {"x": 3, "y": "z"}) == "deny"
    assert verdict({"deny": [both]}, "a.b", {"x": 6, "y": "z"}) == "ask"
    assert verdict({"deny": [both]}, "a.b", {"x": 3, "y": "-"}) == "ask"


@promise("policy:lists")
def test_a_list_must_fit_whole_to_be_allowed_and_in_part_to_be_stopped():
    ours = {"tool": "a.b", "when": {"to": {"ends_with": "@example.com"}}}
    mixed = {"to": ["ana@example.com", "eve@example.org"]}
    assert verdict({"allow": [ours]}, "a.b", mixed) == "ask"
    assert verdict({"allow": [ours]}, "a.b", {"to": ["ana@example.com"]}) == "allow"
    assert verdict({"allow": [ours]}, "a.b", {"to": []}) == "ask"
    assert verdict({"deny": [ours]}, "a.b", mixed) == "deny"
    people = {"tool": "a.b", "when": {"to.address": {"ends_with": "@example.com"}}}
    assert verdict({"allow": [people]}, "a.b", {"to": [{"address": "ana@example.com"}]}) == "allow"
    assert verdict({"allow": [people]}, "a.b", {"to": [{"address": "ana@example.com"}, {"address": "eve@x"}]}) == "ask"


@promise("policy:lists")
def test_a_forbidden_word_is_found_inside_a_list_but_permits_nothing_there():
    word = {"tool": "a.b", "when": {"to": {"contains": "example.org"}}}
    assert verdict({"deny": [word]}, "a.b", {"to": ["eve@example.org"]}) == "deny"
    assert verdict({"allow": [word]}, "a.b", {"to": ["eve@example.org"]}) == "ask"


@promise("policy:lists")
@pytest.mark.parametrize("operator", ["contains", "equals", "starts_with", "ends_with"])
def test_a_list_too_long_to_be_looked_at_is_stopped(operator):
    word = {"tool": "a.b", "when": {"to": {operator: "eve@evil.test"}}}
    policy = {"default": {"restricted_write": "allow"}, "deny": [word]}
    assert verdict(policy, "a.b", {"to": ["a"] * 5_000}) == "allow"
    assert verdict(policy, "a.b", {"to": ["a"] * 5_001}) == "deny"


@promise("policy:paths")
@pytest.mark.parametrize(
    "detour", ["/tmp/../etc/x", "/tmp/..", "/tmp\\..\\etc", "/tmp/%2e%2e/etc", "/tmp/%252e%252e/etc", "/tmp/ .. /etc"]
)
def test_a_path_that_climbs_is_never_inside_an_allowed_place(detour):
    assert verdict({"allow": [{"tool": "a.b", "when": {"p": {"starts_with": "/tmp"}}}]}, "a.b", {"p": detour}) == "ask"
    assert (
        verdict({"deny": [{"tool": "a.b", "unless": {"p": {"starts_with": "/tmp"}}}]}, "a.b", {"p": detour}) == "deny"
    )


@promise("policy:paths")
@pytest.mark.parametrize("detour", ["/etc/x", "/tmp/../etc/x", "//etc/x", "/./etc/x", "/etc//x", "file:///etc/x"])
def test_a_forbidden_place_is_not_reached_by_a_detour(detour):
    for condition in ({"starts_with": "/etc/"}, {"equals": "/etc/x"}, {"in": ["/etc/x"]}):
        policy = {"deny": [{"tool": "a.b", "when": {"p": condition}}]}
        assert verdict(policy, "a.b", {"p": detour}) == "deny"


SECRET = handle_for(b"k", "a", "token", "value")
REF = "0" * 40
HIDDEN = [
    {"$ref": REF, "bytes": 5000},
    SECRET,
    "${steps.0.result.id}",
    "before ${input.x} after",
    [{"deep": {"$ref": REF, "bytes": 9}}],
]


@promise("policy:opaque")
@pytest.mark.parametrize("value", HIDDEN)
@pytest.mark.parametrize("section", ["deny", "ask", "allow"])
def test_a_condition_on_what_cannot_be_looked_into_asks_and_says_so(value, section):
    policy = {"default": {"restricted_write": "allow"}, section: [{"tool": "a.b", "when": {"x": {"equals": "v"}}}]}
    ruling = ruled(policy, "a.b", {"x": value})
    # What is hidden because it is a secret will never be seen by whoever decides.
    assert ruling.verdict == ("deny" if section == "deny" and is_masked(value) else "ask")
    assert "x is a secret, a stored value or a reference" in ruling.rule


MASKED = {
    "a handle": SECRET,
    "a text with a handle": f"https://a.example/?key={SECRET}",
    "a handle in a list": ["plain", SECRET],
    "a handle deep inside": [{"deep": {"token": SECRET}}],
    "a long text with a handle": {"$ref": REF, "bytes": 5000, "handles": [SECRET]},
    "a handle beside a stored text": [{"$ref": REF, "bytes": 5000}, SECRET],
}


@promise("policy:masked")
@pytest.mark.parametrize("masked", MASKED)
def test_a_condition_on_a_secret_decides_the_strict_way(masked):
    allowing = {"default": {"restricted_write": "allow"}}
    condition = {"tool": "a.b", "when": {"x": {"equals": "v"}}}
    arguments = {"x": MASKED[masked]}
    assert verdict(allowing | {"deny": [condition]}, "a.b", arguments) == "deny"
    assert verdict(allowing | {"deny": [{"tool": "a.b", "unless": condition["when"]}]}, "a.b", arguments) == "deny"
    assert verdict(allowing | {"allow": [condition]}, "a.b", arguments) == "ask"
    assert verdict({"default": {"restricted_write": "deny"}, "allow": [condition]}, "a.b", arguments) == "deny"
    both = {"x": {"equals": "v"}, "y": {"equals": 1}}
    for other, expected in ((1, "deny"), ({"$ref": REF, "bytes": 9}, "deny"), (2, "allow")):
        policy = Policy.admit(allowing | {"deny": [{"tool": "a.b", "when": both}]})
        tool = Tool(name="a.b", secret_arguments=("x",))
        assert rule(policy, tool, arguments | {"y": other}).verdict == expected


@promise("policy:opaque")
@pytest.mark.parametrize("value", [hidden for hidden in HIDDEN if hidden != SECRET])
def test_what_is_hidden_but_no_secret_still_asks_where_a_rule_denies(value):
    assert verdict({"deny": [{"tool": "a.b", "when": {"x": {"equals": "v"}}}]}, "a.b", {"x": value}) == "ask"


@promise("policy:secret-arguments")
def test_a_secret_in_an_argument_that_is_no_credential_is_asked_about():
    policy = Policy.admit({"allow": ["*"]})
    write = Tool(name="a.login", secret_arguments=("password", "/auth/token"))
    asked = {
        "an argument that is not declared": {"note": f"it is {SECRET}"},
        "beside one that is declared": {"password": SECRET, "user": SECRET},
        "beside a pointer that is declared": {"auth": {"token": SECRET, "name": SECRET}},
        "a name that only begins like one": {"password_hint": SECRET},
        "the name of an argument": {SECRET: 1},
        "a long text": {"note": {"$ref": REF, "bytes": 5000, "handles": [SECRET]}},
    }
    for case, arguments in asked.items():
        ruling = rule(policy, write, arguments)
        assert ruling.verdict == "ask", case
        assert "would take a secret" in ruling.rule
    for arguments in ({"password": SECRET}, {"password": [SECRET]}, {"auth": {"token": SECRET}}, {"user": "bo"}):
        assert rule(policy, write, arguments).verdict == "allow"
    assert rule(policy, Tool(name="a.page", safety=Safety.READ_ONLY), {"cursor": SECRET}).verdict == "allow"
    assert rule(policy, Tool(name="b.page", safety=Safety.READ_ONLY), {"cursor": SECRET}).verdict == "ask"
    # What takes an effect back was declared by the operator.
    assert rule(policy, write, {"undo": f"a.logout({SECRET})"}, purpose="undo").verdict == "allow"


@promise("policy:opaque")
def test_what_cannot_be_looked_into_does_not_save_a_call_that_another_rule_denies():
    policy = {"deny": [{"tool": "a.b", "when": {"x": {"equals": 1}}}, "a.*"]}
    assert verdict(policy, "a.b", {"x": "${input.x}"}) == "deny"


@promise("policy:strictest")
def test_a_rule_that_only_may_apply_does_not_stand_before_a_stricter_one():
    policy = {
        "ask": [
            {"tool": "pay.*", "when": {"amount": {"lt": 100}}},
            {"tool": "pay.*", "approvers": ["ana", "bo"], "quorum": 2},
        ]
    }
    assert ruled(policy, "pay.out", {"amount": 5}).approvers == ()
    for hidden in ({}, {"amount": "5"}, {"amount": "${input.x}"}):
        ruling = ruled(policy, "pay.out", hidden)
        assert (ruling.approvers, ruling.quorum) == (("ana", "bo"), 2)


@promise("secrets:elsewhere")
def test_a_secret_of_another_provider_is_asked_about():
    policy = Policy.admit({"allow": ["*"], "deny": ["mail.never"]})
    arguments = {"body": f"see {handle_for(b'k', 'crm', 'api_key', 'value')}"}
    ruling = rule(policy, Tool(name="mail.send"), arguments)
    assert ruling.verdict == "ask"
    assert "secret use: a secret of crm would be sent to mail" in ruling.rule
    assert rule(policy, Tool(name="crm.update", secret_arguments=("body",)), arguments).verdict == "allow"
    assert rule(policy, Tool(name="mail.never"), arguments).verdict == "deny"


@promise("policy:floor")
def test_a_task_can_only_tighten():
    floor = Policy.admit({"deny": ["a.deny"], "ask": ["a.ask"], "allow": ["a.*"]})
    loosened = floor.tightened_by({"allow": ["*"], "default": {"restricted_write": "allow"}})
    for name in ("deny", "ask", "other"):
        tool = Tool(name=f"a.{name}")
        assert rule(loosened, tool, {}).verdict == rule(floor, tool, {}).verdict
    tightened = floor.tightened_by({"deny": ["a.other"]})
    assert rule(tightened, Tool(name="a.other"), {}) == Ruling(verdict="deny", rule="task's own deny[0]: a.other")
    assert rule(tightened, Tool(name="a.more"), {}).verdict == "allow"
    assert floor.tightened_by(None) == floor


@promise("policy:floor")
def test_a_tightened_policy_can_be_tightened_again():
    policy = Policy.admit({"deny": ["a.one"]}).tightened_by({"deny": ["a.two"]}).tightened_by({"deny": ["a.three"]})
    assert [rule(policy, Tool(name=f"a.{n}"), {}).verdict for n in ("one", "two", "three", "four")] == [
        "deny",
        "deny",
        "deny",
        "ask",
    ]


@promise("policy:strictest-both")
def test_of_two_asking_rules_both_must_be_satisfied():
    floor = Policy.admit(
        {
            "ask": [
                {"tool": "pay.*", "approvers": ["@finance"], "quorum": 1, "timeout": "1h", "on_expiry": "escalate"}
            ],
            "groups": {"@finance": ["ana", "bo", "cy"]},
        }
    )
    own = {"ask": [{"tool": "*", "approvers": ["bo", "cy", "eve"], "quorum": 2, "no_self_approval": True}]}
    ruling = rule(floor.tightened_by(own), Tool(name="pay.out"), {})
    assert ruling == Ruling(
        verdict="ask",
        rule="ask[0]: pay.*; task's own ask[0]: *",
        approvers=("bo", "cy"),
        quorum=2,
        timeout_s=3600,
        on_expiry="reject",
        no_self_approval=True,
    )


@promise("policy:task-rules")
@pytest.mark.parametrize("own", [{"approvers": ["eve"]}, {"approvers": ["ana"], "quorum": 1}, {"quorum": 3}])
def test_a_task_that_leaves_too_few_approvers_is_refused(own):
    floor = Policy.admit({"ask": [{"tool": "pay.*", "approvers": ["ana", "bo"], "quorum": 2}]})
    with pytest.raises(PolicyInvalid, match=r"^ask\[0\].approvers"):
        floor.tightened_by({"ask": [{"tool": "*.out", **own}]})
    assert floor.tightened_by({"ask": [{"tool": "mail.*", **own}]})


@promise("policy:task-rules")
def test_a_task_may_use_but_not_redefine_the_operators_groups():
    floor = Policy.admit({"ask": ["pay.*"], "groups": {"@finance": ["ana"]}})
    assert rule(
        floor.tightened_by({"ask": [{"tool": "a.b", "approvers": ["@finance"]}]}), Tool(name="a.b"), {}
    ).approvers == ("ana",)
    with pytest.raises(PolicyInvalid, match="@finance"):
        floor.tightened_by({"groups": {"@finance": ["eve"]}})


@promise("policy:strictest-both")
def test_two_rulings_that_nobody_can_satisfy_are_a_denial():
    first, other = (Ruling(verdict="ask", rule=name, approvers=(name,)) for name in ("ana", "bo"))
    assert stricter(first, other).verdict == "deny"


@promise("policy:escalation")
@pytest.mark.parametrize(
    "own",
    [
        {"timeout": "1s", "on_expiry": "escalate"},
        {"timeout": "1s", "on_expiry": "escalate", "approvers": ["ana", "eve"], "escalate_to": ["boss", "eve"]},
        {"approvers": ["ana", "boss"], "timeout": "1s", "on_expiry": "escalate", "escalate_to": ["ana"]},
        {"timeout": "1h", "on_expiry": "escalate", "escalate_to": ["eve"]},
    ],
)
def test_a_task_cannot_let_anybody_decide_before_the_operator_would(own):
    theirs = {"tool": "pay.*", "approvers": ["ana"], "timeout": "24h", "on_expiry": "escalate", "escalate_to": ["boss"]}
    floor = Policy.admit({"ask": [theirs]})
    ruling = rule(floor.tightened_by({"ask": [{"tool": "pay.*", **own}]}), Tool(name="pay.out"), {})
    assert ruling.approvers == ("ana",)
    assert ruling.escalate_to == ()
    as_late = rule(floor.tightened_by({"ask": [{"tool": "pay.*", "timeout": "7d"}]}), Tool(name="pay.out"), {})
    assert (as_late.escalate_to, as_late.on_expiry) == (("boss",), "reject")


@promise("policy:escalation")
def test_a_rule_about_secrets_cannot_remind_anybody_of_a_request_that_there_is_not():
    with pytest.raises(PolicyInvalid, match="remind_after"):
        Policy.admit({"reveal": {"ask": [{"tool": "mail.*", "approvers": ["ana"], "remind_after": "1h"}]}})


@promise("policy:hostile")
def test_a_hostile_policy_of_a_task_is_shown_as_plain_ascii():
    own = {"ask": [{"tool": "a.*", "when": {"x": {"equals": "\u202e[link](x)\n"}}}]}
    line = rule(Policy().tightened_by(own), Tool(name="a.b"), {"x": "\u202e[link](x)\n"}).rule
    assert line.isascii()
    assert "\n" not in line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "$ref"]), inner, max_size=3),
    max_leaves=10,
)
CONDITIONS = st.sampled_from([(operator, operand) for operator, operand, _ in HOLDING + FAILING + UNFIT])
RULES = st.builds(
    lambda tool, path, condition, key: {"tool": tool, **({key: {path: dict([condition])}} if key else {})},
    st.sampled_from(["a.b", "a.*", "*", "b.*"]),
    st.sampled_from(["a", "a.b", "b.0"]),
    CONDITIONS,
    st.sampled_from(["when", "unless", None]),
)
POLICIES = st.fixed_dictionaries({section: st.lists(RULES, max_size=2) for section in ("deny", "ask", "allow")})
ORDER = {"allow": 0, "ask": 1, "deny": 2}


@promise("policy:total")
@given(POLICIES, POLICIES, st.dictionaries(st.sampled_from(["a", "b"]), JSON, max_size=2))
@settings(deadline=None)
def test_ruling_is_total_and_tightening_never_loosens(floor, own, arguments):
    policy = Policy.admit(floor)
    before = rule(policy, Tool(name="a.b"), arguments)
    after = rule(policy.tightened_by(own), Tool(name="a.b"), arguments)
    assert ORDER[after.verdict] >= ORDER[before.verdict]


@promise("tools:changed-definitions")
@pytest.mark.parametrize(
    ("tool", "quoted"),
    [
        ("mail.send_email", "mail.send_email"),
        ("mail.a b", "'mail.a b'"),
        ("mail.x; rm -r ~", "'mail.x; rm -r ~'"),
        ("mail.$(id)", "'mail.$(id)'"),
        ("mail.it's", """'mail.it'"'"'s'"""),
    ],
)
def test_a_changed_tool_asks_and_its_name_is_quoted_for_a_shell(tool, quoted):
    allowed = Ruling(verdict="allow", rule="allow[0]: *")
    changed = rule_on_change(allowed, tool)
    assert changed.verdict == "ask"
    assert changed.rule == (
        f"definition: {tool} has changed since it was last allowed; see backstay tools diff {quoted}"
    )
    asks = Ruling(verdict="ask", rule="ask[0]: mail.*", approvers=("ana",))
    assert rule_on_change(asks, tool) == asks.model_copy(update={"rule": f"{changed.rule}; ask[0]: mail.*"})
    denied = Ruling(verdict="deny", rule="deny[0]: *")
    assert rule_on_change(denied, tool) is denied


REMIND = Tool(name="billing.remind", safety=Safety.WRITE_SAFE, calls=("mail.find", "mail.send"))


@promise("python:one-path")
@pytest.mark.parametrize(
    ("policy", "verdict", "said"),
    [
        ({"allow": ["billing.*"]}, "allow", "allow[0]: billing.*"),
        ({"allow": ["billing.*"], "deny": ["mail.send"]}, "deny", "mail.send (billing.remind calls mail.send)"),
        (
            {"allow": ["billing.*"], "deny": [{"tool": "mail.send", "when": {"to": {"equals": "a"}}}]},
            "ask",
            "calls mail.send",
        ),
        ({"allow": ["billing.*"], "ask": [{"tool": "mail.*", "approvers": ["ana"]}]}, "ask", "calls mail.find"),
        ({"allow": ["billing.*", "mail.*"], "default": {"write_safe": "deny"}}, "allow", "allow[0]: billing.*"),
        ({"allow": ["billing.*"], "deny": [{"tool": "*", "when": {"to": {"equals": "a"}}}]}, "ask", "calls mail.find"),
        ({"deny": ["*.remind"]}, "deny", "deny[0]: *.remind"),
    ],
)
def test_a_ruling_on_a_tool_is_one_on_the_tools_that_it_calls(policy, verdict, said):
    found = rule(Policy.admit(policy), REMIND, {"to": "b"})
    assert found.verdict == verdict
    assert said in found.rule
    assert found.approvers == (("ana",) if "approvers" in str(policy) else ())


@promise("python:one-path")
def test_a_task_can_deny_a_tool_for_what_it_calls_and_every_reader_sees_it():
    policy = Policy.admit({"allow": ["billing.*"]}).tightened_by({"deny": ["mail.send"]})
    assert rule(policy, REMIND, {}).verdict == "deny"
    assert forbids(policy, REMIND) == "deny[0]: mail.send"
    assert rule(policy, REMIND, {}, purpose="undo").verdict == "allow"
