"""What counts as alike at "always": the same places with any texts, as it was shown."""

import pytest

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import Approval, ApprovalRequest, RequestedCall, RequestKind
from backstay.approvals.verdicts import unfit
from backstay.canonical import digest_of
from backstay.policies.accepted import AcceptedLine
from backstay.policies.learning.alike import Alike, alike
from backstay.policies.policy import Policy, rule
from backstay.provenance.source import ArgumentSources, Source
from backstay.tools.tool import Safety, Tool
from people.requests.entered import FormEntry
from people.requests.form import DecisionForm, decision_of
from tests.requirements import promise

PAY = {"iban": "DE02120300000000202051", "amount": 480.5, "reference": "2210", "urgent": False}


def form(arguments, *, sources=None, digest=None, count=1):
    known = {"tool": "bank.pay", "safety": Safety.WRITE_SAFE, "undoable": False, "sources": sources or {}}
    call = RequestedCall(index=0, arguments=arguments, args_digest=digest or digest_of(arguments), **known)
    options = ("approve", "modify", "reject")
    return DecisionForm.of(ApprovalRequest(kind=RequestKind.CALL, question="?", calls=(call,) * count, options=options))


@promise("learning:alike")
def test_alike_are_the_same_places_and_settings_and_no_greater_amounts():
    found = alike(PAY, {"/iban": (Source(kind="task"),)})
    assert isinstance(found, Alike)
    assert found.when == {
        "amount": {"gte": 0, "lte": 480.5},
        "iban": {"equals": PAY["iban"], "from": ["task"]},
        "reference": {"equals": "2210", "from": ["model"]},
        "urgent": {"equals": False},
    }
    assert found.only == ("amount", "iban", "reference", "urgent")
    assert found.words == (
        'amount from 0 to 480.5; iban is "DE02120300000000202051", from task; reference is "2210", from model; '
        "urgent is false; no other argument"
    )
    assert alike({"amount": -5}, {}).when == {"amount": {"gte": -5, "lte": 0}}
    for kind in ({"kind": "tool", "tool": "mail.read", "content": "others"}, {"kind": "program"}):
        assert "came from" in alike(PAY, {"/iban": (Source(**kind),)})
    for odd in ({}, {"a.b": "x"}, {"to": ["x" * 99] * 99}):
        assert isinstance(alike(odd, {}), str)


@promise("learning:alike")
@pytest.mark.parametrize(
    ("name", "seen", "later"),
    [
        ("attachment", "/home/me/report.pdf", "/home/me/.ssh/id_rsa"),
        ("attachments", "report.pdf", "/home/me/.ssh/id_rsa"),
        ("attached_file", "report", "file:///etc/passwd"),
        ("attachment", "", "report.pdf"),
        ("attachment", "The report of this week", "id_rsa"),
        ("type", "private", "public"),
        ("access_type", "only for me", "for all people"),
        ("scope", "me", "everyone"),
        ("publish", "no", "yes"),
        ("dry_run", "true", "false"),
        ("format", "text", "html"),
        ("category", "internal", "press"),
    ],
)
def test_another_attachment_or_setting_is_not_alike(name, seen, later):
    mail = {"to": "bo@example.com", "subject": "Hello", "body": "hi", name: seen}
    found = alike(mail, {})
    assert isinstance(found, Alike)
    line = AcceptedLine(
        verdict="allow", scope="always", tool="mail.send", definition="d", when=found.when, only=found.only
    ).identified()

    def verdict(arguments):
        tool, told = Tool(name="mail.send", definition="d"), ArgumentSources(by={"": (("model",),)})
        return rule(Policy(), tool, arguments, sources=told, lines=[line]).verdict

    assert verdict(mail | {"subject": "Bye", "body": "See you on Monday"}) == "allow"
    assert verdict(mail | {name: later}) == "ask"


@promise("learning:alike")
def test_a_decision_names_what_was_shown_and_else_nothing_is_remembered_so():
    entered = FormEntry("approve", remember="always", remember_arguments="alike")
    shown = form(PAY)
    said = decision_of(shown, entered)
    assert said["remember_like"] == shown.alike.like != form(PAY | {"amount": 500}).alike.like
    assert unfit(Approval(**said, request_id="r1", by="ana")) == ""
    for unclear in (form(PAY, digest="of longer ones"), form(PAY, count=2)):
        with pytest.raises(DecisionInvalid, match="no calls are like this one"):
            decision_of(unclear, entered)
    for more in ({"remember_like": None}, {"remember_arguments": "any"}):
        assert "give both or neither" in unfit(Approval(**{**said, **more}, request_id="r1", by="ana"))
    never = {**said, "verdict": "reject", "remember": "never"}
    assert "for these or for any" in unfit(Approval(**never, request_id="r1", by="ana"))
