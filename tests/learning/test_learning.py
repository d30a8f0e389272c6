"""What counts as evidence, how far a line goes, and what attacks on the learning come to."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.errors import PolicyInvalid
from backstay.policies.accepted import AcceptedLine
from backstay.policies.learning import evidence
from backstay.policies.learning.case import Case
from backstay.policies.learning.evidence import gather
from backstay.policies.learning.learning import learn
from backstay.policies.policy import Policy, rule
from backstay.policies.rule import Rule
from backstay.provenance.source import ArgumentSources, Source
from backstay.tools.tool import Safety, Tool
from backstay.yaml_text import read_yaml, written
from tests.requirements import promise
from tests.sizes import sized

TASK = (Source(kind="task"),)
TODAY = "2026-06-01"


def said(arguments, by="ana", verdict="approve", run=None, tool="mail.send", at=0.0, **more):
    """A decision that is evidence, unless something else is said of it."""
    said.count += 1
    told = {
        "request": "r1", "starters": frozenset({"zoe"}), "verified": True, "asked_at": at, "decided_at": at + 60,
        "sources": {"to": TASK, "url": TASK, "path": TASK, "iban": TASK},
    }  # fmt: skip
    run = run or f"run-{said.count}"
    return Case(run=run, tool=tool, arguments=arguments, by=by, said=verdict, **{**told, **more})


said.count = 0


def approved(*every, tool="mail.send", **more):
    """Three approvals of each of these arguments, by two people."""
    return [said(arguments, by, tool=tool, **more) for arguments in every for by in ("ana", "bo", "ana")]


def lines(*cases):
    return [line.rule for line in learn(gather(cases)).proposed]


def allows(rules, arguments, tool="mail.send", codes=("task",), today=TODAY):
    """Whether a policy with these lines lets a call go whose arguments all come from one place."""
    facts = Tool(name=tool, definition="d", safety=Safety.WRITE_SAFE)
    sources = ArgumentSources(by={"": (tuple(codes),)})
    return rule(Policy(allow=tuple(rules)), facts, arguments, sources=sources, today=today).verdict == "allow"


def mail(to, **more):
    return {"to": to, "body": f"text {said.count}"} | more


@promise("learning:narrowest")
def test_a_line_goes_no_further_than_what_was_approved_again_and_again():
    (same,) = lines(*approved(mail("a@corp.example")))
    assert same.when == {"to": {"equals": "a@corp.example", "from": ["task"]}}
    assert same.only == ("body", "to")
    (listed,) = lines(*approved(mail("a@corp.example"), mail("b@corp.example")))
    assert listed.when["to"] == {"in": ["a@corp.example", "b@corp.example"], "from": ["task"]}
    once = [said(mail(f"{name}@corp.example"), by) for name, by in zip("cdefg", ["ana", "bo"] * 3, strict=False)]
    (domain,) = lines(*once)
    assert domain.when["to"] == {"ends_with": "@corp.example", "from": ["task"]}
    assert lines(*once[:4]) == []
    paths = [said({"path": f"/srv/a/{n}.md", "content": "x"}, by, tool="files.write") for n, by in enumerate("abcde")]
    (folder,) = lines(*paths)
    assert folder.when["path"]["starts_with"] == "/srv/a/"
    urls = [
        said({"url": f"https://h.example/{n}/x", "payload": "p"}, by, tool="hooks.post") for n, by in enumerate("abcde")
    ]
    (host,) = lines(*urls)
    assert host.when["url"]["starts_with"] == "https://h.example/"
    # What is called so at these belongs to nobody in particular.
    for shared in ("gmail.com", "pages.github.io"):
        assert lines(*(said(mail(f"{name}@{shared}"), by) for name, by in zip("cdefg", "ababa", strict=True))) == []
    assert lines(*(said({"path": f"/{n}.md"}, by, tool="files.write") for n, by in enumerate("abcde"))) == []


@promise("learning:bounds")
def test_amounts_have_bounds_and_what_says_where_a_call_goes_is_never_any():
    amounts = (10, 40, 70, 900)
    cases = [
        said({"iban": "DE02120300000000202051", "amount": amount}, by, tool="bank.pay")
        for amount, by in zip(amounts, ("ana", "bo", "ana", "bo"), strict=True)
    ]
    (line,) = lines(*cases)
    assert line.when["amount"] == {"gte": 10, "lte": 70}
    pay = {"iban": "DE02120300000000202051", "tool": "bank.pay"}
    for amount, passes in ((70, True), (71, False), (9, False), (-5, False), ("50", False), (True, False)):
        assert allows([line], {"iban": pay["iban"], "amount": amount}, tool="bank.pay") is passes, amount
    assert not allows([line], {"iban": "DE500105170137075030", "amount": 50}, tool="bank.pay")
    for name, values in {
        "amount": ("10 EUR", "20 EUR", "30 EUR", "40 EUR", "50 EUR"),
        "command": ("ls /a", "ls /b", "ls /c", "ls /d", "ls /e"),
        "query": ("select 1", "select 2", "select 3", "select 4", "select 5"),
        "branch": ("one", "two", "three", "four", "five"),
        "phone": ("+491701111111", "+491701111112", "+491701111113", "+491701111114", "+491701111115"),
    }.items():
        assert lines(*(said({name: value}, by, tool="x.y") for value, by in zip(values, "ababa", strict=True))) == []
    assert lines(*approved({}, tool="x.y")) == []


@promise("learning:evidence")
@pytest.mark.parametrize(
    ("why", "more"),
    [
        ("not verified", {"verified": False}),
        ("nobody proved", {"starters": frozenset()}),
        ("who started", {"starters": frozenset({"ana", "bo"})}),
        ("a rule asked", {"by_default": False}),
        ("only reads", {"reads": True}),
        ("described otherwise", {"current": False}),
        ("had changed", {"was_edited": True}),
        ("others wrote", {"sources": {"to": (Source(kind="tool", tool="mail.read", content="others"),)}}),
        ("a program", {"sources": {"to": (Source(kind="program", content="own"),)}}),
        ("others wrote", {"sources": {"to": (Source(kind="tool", tool="crm.find", content="own", why="doubt"),)}}),
        ("not all", {"unseen": frozenset({"to"})}),
        ("not all", {"incomplete": True}),
        ("within 2 seconds", {"asked_at": 58.5}),
    ],
)
def test_what_says_little_is_no_evidence_and_is_counted(why, more):
    cases = approved(mail("a@corp.example"), **more)
    learned = learn(gather(cases))
    assert learned.proposed == ()
    ((told, count),) = learned.evidence.reasons.items()
    assert (why in told, count) == (True, 3)


@promise("learning:once")
def test_retries_and_one_person_alone_teach_nothing():
    again = {"by": "ana", "run": "one"}
    assert lines(*(said(mail("a@corp.example"), args_digest="d", **again) for _ in range(9))) == []
    alone = [said(mail("a@corp.example")) for _ in range(9)]
    other = approved(mail("b@corp.example"))
    assert len(lines(*alone)) == 1
    assert [line.when["to"]["equals"] for line in lines(*alone, *other)] == ["b@corp.example"]
    # Whoever approves whatever comes speaks for nothing, once somebody else has rejected something.
    all_alike = [said(mail("c@corp.example"), "gus") for _ in range(25)]
    refused = said(mail("x@other.example"), "bo", "reject")
    assert lines(*all_alike, *[said(mail("c@corp.example"), "ana")], refused) == []


@promise("learning:rejected")
def test_a_rejection_stands_unless_the_same_person_takes_it_back_soon():
    good, refused = approved(mail("a@corp.example")), {"verdict": "reject", "args_digest": "d"}
    again = {"args_digest": "d"}
    to = mail("a@corp.example")
    for verified in (True, False):
        assert lines(*good, said(to, "cy", at=0, verified=verified, **refused)) == []
    slip = said(to, "bo", at=0, **refused)
    assert len(lines(*good, slip, said(to, "bo", at=600, **again))) == 1
    for overturned in (
        said(to, "ana", at=600, **again),
        said(to, "bo", at=6000, **again),
        said(to, "bo", at=600, starters=frozenset({"bo"}), **again),
        said(to, "bo", at=600, verified=False, **again),
    ):
        assert lines(*good, slip, overturned) == []
    # Where people reject what is beside, a place is in dispute.
    assert lines(*good, said(mail("b@corp.example"), "cy", "reject")) == []
    assert len(lines(*good, said(mail("b@other.example"), "cy", "reject"))) == 1
    widely = [said(mail(f"{name}@corp.example"), by) for name, by in zip("cdefg", "ababa", strict=True)]
    assert lines(*widely, said(mail("x@corp.example"), "cy", "reject")) == []


@promise("learning:edits")
def test_a_change_of_the_place_is_a_rejection_of_it_and_a_change_of_a_text_is_counted():
    good = approved(mail("a@corp.example"))
    assert lines(*good, said(mail("a@corp.example"), "cy", "modify", edited=frozenset({"to"}))) == []
    (line,) = learn(gather([*good, said(mail("a@corp.example"), "cy", "modify", edited=frozenset({"body"}))])).proposed
    assert (line.allowed, line.changed) == (4, 1)


@promise("learning:look-alikes")
def test_approvals_of_what_looks_alike_teach_nothing_about_the_other():
    hosts = ("example.com.evil.test", "evil-example.com", "\u0435\u0445ample.com", "example.com", "EXAMPLE.com")
    spread = [
        said({"url": f"https://{host}/in/{n}", "note": "x"}, "ab"[n % 2], tool="h.post")
        for host in hosts
        for n in range(3)
    ]
    assert lines(*spread) == []
    five = [
        said({"url": f"https://example.com/in/{n}", "note": "x"}, by, tool="h.post") for n, by in enumerate("ababa")
    ]
    rules = lines(*five)
    good = "https://example.com/in/9"
    assert allows(rules, {"url": good, "note": "x"}, tool="h.post")
    for url in (
        "https://example.com.evil.test/in/9", "https://example.com@evil.test/in/9", "https://evil.test/https://example.com/in/",
        "https://example.com/in/../admin", "https://example.com/in/%2e%2e/admin", "https://\u0435\u0445ample.com/in/9",
        "http://example.com/in/9", "https://example.com/inn", "//example.com/in/9", [good, "https://evil.test/"],
    ):  # fmt: skip
        assert not allows(rules, {"url": url, "note": "x"}, tool="h.post"), url
    assert not allows(rules, {"url": good, "note": "x", "proxy": "https://evil.test"}, tool="h.post")
    assert not allows(rules, {"url": good, "note": "x"}, tool="h.post", codes=("!mail.read",))
    paths = lines(*(said({"path": f"/home/a/n{n}.md"}, by, tool="f.write") for n, by in enumerate("ababa")))
    for path, passes in (("/home/a/x.md", True), ("/home/ab/x", False), ("/home/a/../b/x", False), ("/home/a", False)):
        assert allows(paths, {"path": path}, tool="f.write") is passes, path
    # A number is no text, and names of tools are no patterns.
    ids = lines(*approved({"account": 7730014482}, tool="b.pay"))
    assert allows(ids, {"account": 7730014482}, tool="b.pay", codes=("model",))
    assert not allows(ids, {"account": "7730014482"}, tool="b.pay", codes=("model",))
    assert lines(*approved(mail("a@corp.example"), tool="mail.*")) == []
    assert lines(*approved({"to.cc": "a@corp.example"})) == []


@promise("learning:unshown")
def test_a_rejection_of_what_was_not_shown_whole_stands_against_all_that_it_could_be():
    good = approved(mail("a@corp.example"), mail("b@else.example"))
    clipped = said(mail("a@corp.example"), "cy", "reject", unseen=frozenset({"body"}))
    assert [line.when["to"]["equals"] for line in lines(*good, clipped)] == ["b@else.example"]
    assert lines(*good, said(mail("<U+202E>"), "cy", "reject", unseen=frozenset({"to"}))) == []
    long = approved(mail("a@corp.example", body="x" * 150), unseen=frozenset({"body"}))
    assert len(lines(*long)) == 1


ODD = st.text(max_size=12) | st.sampled_from(
    ["\x7f", "\x85", "\u2028", "😀", '"\\', "# x", "a: b", "\ud800", "~", "null"]
)
VALUES = ODD.filter(bool) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none()


@promise("learning:written")
@settings(max_examples=sized(150, 40), deadline=None)
@given(
    st.lists(
        st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3)),
        max_size=4,
    )
)
def test_what_is_printed_is_read_as_the_very_same_values(values):
    text = written({"values": values})
    assert text.isascii()
    assert text.isprintable()
    assert repr(read_yaml(f"allow:\n  - {text}\n")) == repr({"allow": [{"values": values}]})


@promise("learning:ends")
def test_only_and_until_narrow_an_allow_line_and_stand_in_no_other():
    ended = Rule.admit({"tool": "mail.send", "when": {"to": {"equals": "a@x.example"}}, "until": "2026-06-01"})
    for today, passes in (("2026-06-01", True), ("2026-06-02", False), ("", False)):
        assert allows([ended], mail("a@x.example"), today=today) is passes
    only = Rule.admit({"tool": "mail.send", "only": ["to", "body"]})
    assert allows([only], mail("a@x.example"))
    assert not allows([only], mail("a@x.example", bcc="e@x.example"))
    assert Policy.admit(yaml.safe_load("allow: [{tool: a.b, until: 2027-02-28}]")).allow[0].until == "2027-02-28"
    for section in ("deny", "ask"):
        with pytest.raises(PolicyInvalid, match=rf"{section}\[0\]: a.b has only or until"):
            Policy.admit({section: [{"tool": "a.b", "until": "2027-02-28"}]})
    with pytest.raises(PolicyInvalid, match="is not a day; write it as 2027-02-28"):
        Policy.admit({"allow": [{"tool": "a.b", "until": "next year"}]})


@promise("learning:accepted")
def test_an_accepted_line_decides_as_the_proposal_and_overrules_only_the_default():
    (proposed,) = lines(*approved(mail("a@corp.example")))
    known = {"verdict": "allow", "scope": "always", "tool": "mail.send", "definition": "d", "by": "ana"}
    line = AcceptedLine(**known, when=proposed.when, only=proposed.only).identified()
    assert AcceptedLine.model_validate(line.plain()).identified() == line
    facts = Tool(name="mail.send", definition="d", safety=Safety.WRITE_SAFE)

    def ruled(policy, arguments, codes=("task",)):
        return rule(Policy.admit(policy), facts, arguments, sources=ArgumentSources(by={"": (codes,)}), lines=[line])

    to = mail("a@corp.example")
    assert ruled({}, to).verdict == "allow"
    assert 'arguments when to equals "a@corp.example" and to from ["task"]' in ruled({}, to).rule
    assert ruled({"ask": ["mail.*"]}, to).verdict == "ask"
    assert ruled({"default": {"write_safe": "deny"}}, to).verdict == "deny"
    assert ruled({}, to, codes=("!mail.read",)).verdict == "ask"
    assert ruled({}, mail("a@corp.example", cc="e@x.example")).verdict == "ask"
    for odd in ({"verdict": "deny"}, {"args_digest": "d"}):
        with pytest.raises(ValueError, match="when, only"):
            AcceptedLine(**{**known, **odd}, when=proposed.when)


@promise("learning:flood")
def test_of_too_many_decisions_no_rejection_is_overlooked(monkeypatch):
    monkeypatch.setattr(evidence, "MOST_CASES", 3)
    good = approved(mail("a@corp.example"))
    more = learn(gather([*good, *approved(mail("b@corp.example"))]))
    assert ([line.rule.when["to"]["equals"] for line in more.proposed], more.evidence.left_out) == (
        ["a@corp.example"],
        3,
    )
    assert lines(*good, said(mail("a@corp.example"), "cy", "reject")) == []
    others = [said(mail(f"x{n}@other.example"), "cy", "reject") for n in range(4)]
    assert len(lines(*good, *others[:3])) == 1
    assert lines(*good, *others) == []


@promise("learning:unsafe")
def test_haste_edits_failed_undos_and_what_is_never_rejected_are_named():
    hasty = [said(mail("a@corp.example"), "gus", asked_at=0, decided_at=1) for _ in range(20)]
    edits = [said(mail("b@corp.example"), "bo", "modify", tool="m.s", edited=frozenset({"body"})) for _ in range(3)]
    learned = learn(gather([*hasty, *edits]), {"crm.add": (5, 2), "crm.drop": (3, 0)})
    assert [(each.kind, each.about, each.times, each.of) for each in learned.patterns] == [
        ("edited", "m.s", 3, 3),
        ("hasty", "gus", 20, 20),
        ("never_rejected", "mail.send", 20, 20),
        ("never_rejects", "gus", 20, 20),
        ("undo_fails", "crm.add", 2, 5),
    ]
    assert learned.patterns[0].arguments == ("body",)
