"""Rules about where a value came from."""

import pytest

from backstay.errors import PolicyInvalid
from backstay.policies.policy import Policy, rule
from backstay.provenance.source import ArgumentSources
from backstay.tools.tool import Tool
from tests.requirements import promise

OPEN = {"read_only": "allow", "write_safe": "allow", "restricted_write": "allow"}
SEND = Tool(name="mail.send", safety="write_safe")
FETCH = Tool(name="web.fetch", safety="read_only", egress=True)
TASK, OWN, THEIRS, MODEL = (("task",),), (("crm.find",),), (("!mail.read",),), (("model",),)
BOTH = (("crm.find", "!mail.read"),)
PIECES = (("crm.find",), ("!mail.read",))


def came(parts, **more):
    return ArgumentSources(by={"/to": parts, "/body": (("model",),)}, **more)


def verdict(policy, sources, tool=SEND, arguments=None):
    given = {"to": "a@b.example", "body": "b"} if arguments is None else arguments
    return rule(Policy.admit({"default": OPEN} | policy), tool, given, sources=sources).verdict


ALLOW = {"default": {}, "allow": [{"tool": "mail.send", "when": {"to": {"from": ["task", "crm.*"]}}}]}
ASK = {"ask": [{"tool": "mail.send", "when": {"to": {"from": ["mail.*"]}}}]}
UNLESS = {"deny": [{"tool": "mail.send", "unless": {"to": {"from": ["task", "person", "crm.*"]}}}]}


@promise("policy:from")
@pytest.mark.parametrize(
    ("policy", "parts", "expected"),
    [
        (ALLOW, TASK, "allow"),
        (ALLOW, OWN, "allow"),
        (ALLOW, BOTH, "allow"),
        (ALLOW, PIECES, "ask"),
        (ALLOW, THEIRS, "ask"),
        (ALLOW, (("model",),), "ask"),
        (ALLOW, (("!person",),), "ask"),
        (ALLOW, ((">crm.find",),), "allow"),
        (ALLOW, ((">crm.find", ">!mail.read"),), "ask"),
        (ASK, TASK, "allow"),
        (ASK, THEIRS, "ask"),
        (ASK, BOTH, "ask"),
        (ASK, PIECES, "ask"),
        (ASK, ((">crm.find", ">!mail.read"),), "ask"),
        (UNLESS, TASK, "allow"),
        (UNLESS, PIECES, "deny"),
        (UNLESS, THEIRS, "deny"),
    ],
)  # fmt: skip
def test_all_of_a_value_must_come_from_there_to_permit_and_a_part_is_enough_to_stop(policy, parts, expected):
    assert verdict(policy, came(parts)) == expected


@promise("policy:from")
@pytest.mark.parametrize(("policy", "expected"), [(ALLOW, "ask"), (ASK, "ask"), (UNLESS, "deny")])
@pytest.mark.parametrize("sources", [None, ArgumentSources(by={"/body": TASK}, more=3)])
def test_not_knowing_where_a_value_came_from_counts_against_the_call(policy, expected, sources):
    assert verdict(policy, sources) == expected


@promise("policy:from")
def test_every_element_of_a_list_must_come_from_there():
    arguments = {"to": ["a@b.example", "c@d.example"]}
    mixed = ArgumentSources(by={"/to/0": TASK, "/to/1": THEIRS})

    assert verdict(ALLOW, ArgumentSources(by={"": TASK}), arguments=arguments) == "allow"
    assert verdict(ALLOW, mixed, arguments=arguments) == "ask"


@promise("policy:from-beside")
@pytest.mark.parametrize(("to", "expected"), [(["a@b.example", "c@d.example"], "ask"), (["a@b.example"], "allow")])
def test_what_a_model_wrote_beside_a_reference_counts_as_its_own_once_the_reference_is_known(to, expected):
    others = [f"/to/{at}" for at in range(1, len(to))] + ["/body"]
    proposed = ArgumentSources(by={"": MODEL})
    sources = proposed.once_known(ArgumentSources(by={"/to/0": OWN, "/body": MODEL}), ["/to/0"], others)

    assert verdict(ALLOW, sources, arguments={"to": to}) == expected


@promise("policy:from-beside")
def test_what_is_said_of_all_counts_for_the_elements_of_a_list_that_a_person_left_alone():
    given = ArgumentSources(by={"": MODEL}).given_by({"/to/0": "ann"})
    asked = ["/to/0", *(f"/to/{at}" for at in range(1, 40))]
    late = ArgumentSources(by={"": MODEL}).once_known(ArgumentSources(by={"/to/0": OWN}), ["/to/0"], asked[1:])

    allow = {"default": {}, "allow": [{"tool": "mail.send", "when": {"to": {"from": ["person", "crm.*"]}}}]}
    deny = {"deny": [{"tool": "mail.send", "when": {"to": {"from": ["model"]}}}]}
    for sources in (given, late):
        assert (verdict(allow, sources), verdict(deny, sources)) == ("ask", "deny")


@promise("policy:from")
@pytest.mark.parametrize("operand", ["task", [], ["nobody"], [1], ["task", ""]])
def test_an_operand_that_is_no_list_of_places_is_refused(operand):
    with pytest.raises(PolicyInvalid, match="from"):
        Policy.admit({"ask": [{"tool": "a.b", "when": {"to": {"from": operand}}}]})


@promise("policy:strict")
def test_the_strict_preset_asks_when_only_others_say_where_a_write_goes_and_names_them():
    strict = Policy.admit({"default": OPEN, "provenance": "strict"})
    asked = rule(strict, SEND, {"to": "a@b.example"}, sources=came(THEIRS, foreign=("/to",)))

    assert asked.verdict == "ask"
    assert asked.rule.endswith("provenance: to first seen in the answer of mail.read, which others write")
    assert rule(strict, SEND, {"to": "a@b.example"}, sources=came(OWN)).verdict == "allow"
    assert rule(strict, SEND, {"to": "a@b.example"}).verdict == "ask"
    assert rule(strict, SEND, {"undo": "x"}, purpose="undo").verdict == "allow"


@promise("policy:strict-task")
def test_a_task_can_make_provenance_strict_and_never_loosen_it():
    foreign = came(THEIRS, foreign=("/to",))
    loose, strict = Policy.admit({"default": OPEN}), Policy.admit({"default": OPEN, "provenance": "strict"})

    assert rule(loose, SEND, {}, sources=foreign).verdict == "allow"
    assert rule(loose.tightened_by({"provenance": "strict"}), SEND, {}, sources=foreign).verdict == "ask"
    assert rule(strict.tightened_by({"provenance": "off"}), SEND, {}, sources=foreign).verdict == "ask"
    assert rule(strict.tightened_by({"allow": ["mail.send"]}), SEND, {}, sources=foreign).verdict == "ask"


@promise("policy:provenance-egress")
@pytest.mark.parametrize(
    ("policy", "sources", "expected"),
    [
        ({}, ArgumentSources(by={"": TASK}), "allow"),
        ({}, ArgumentSources(by={"": THEIRS}, reaching=("/url",)), "ask"),
        ({}, None, "ask"),
        (
            {"default": OPEN | {"read_only_egress": "deny"}},
            ArgumentSources(by={"": THEIRS}, reaching=("/url",)),
            "deny",
        ),
        (
            {"default": OPEN | {"read_only_egress": "allow"}},
            ArgumentSources(by={"": THEIRS}, reaching=("/url",)),
            "allow",
        ),
        ({"allow": ["web.fetch"]}, ArgumentSources(by={"": THEIRS}, reaching=("/url",)), "allow"),
    ],
)
def test_reads_that_reach_out_have_a_class_of_their_own(policy, sources, expected):
    assert verdict(policy, sources, FETCH, {"url": "https://a.example"}) == expected
    assert verdict(policy, sources, Tool(name="web.fetch", safety="read_only"), {"url": "x"}) == "allow"


@promise("policy:provenance-egress")
def test_a_task_without_an_opinion_on_reads_that_reach_out_changes_nothing():
    floor = Policy.admit({"default": OPEN | {"read_only_egress": "allow"}})
    sources = ArgumentSources(by={"": THEIRS}, reaching=("/url",))

    assert rule(floor.tightened_by({"deny": ["a.b"]}), FETCH, {}, sources=sources).verdict == "allow"


@promise("policy:strict-person")
def test_what_a_person_changed_comes_from_that_person():
    sources = came(THEIRS, foreign=("/to",)).given_by({"/to": "ann"})

    assert (sources.by["/to"], sources.foreign) == ((("person",),), ())
