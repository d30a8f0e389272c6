"""What people are told of where arguments came from, the same at every door."""

import pytest

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.view import RequestView
from backstay.provenance.index import MarkIndex, texts_in
from backstay.provenance.lookup import Lookup
from backstay.provenance.source import ArgumentSources, Source
from backstay.provenance.telling import told_of, told_together
from gateways.terminal.render import call_lines as terminal_lines
from people.requests.posted import call_lines as slack_lines
from tests.requirements import promise

ADDRESS = "mallory@evil-desk.example"
RUN = "we open the doors at nine and close them at five"
MAIL = "the answer of mail.read, which others write"


def told(arguments, **texts):
    """Look arguments up in texts that are named by their sources, and return what is told of each."""
    index = MarkIndex()
    for name, text in texts.items():
        index.add(name if name in {"task", "operator"} else f"!{name.replace('_', '.', 1)}", texts_in(text))
    sources = Lookup(index).sources_of(arguments, tool="mail.send").of_leaves(arguments)
    return {name: text for name in arguments if (text := told_of(sources, name))}


@promise("policy:told")
@pytest.mark.parametrize(
    ("arguments", "texts", "expected"),
    [
        ({"title": "Your new city"}, {"engine_search_tools": {"text": "city: find a city"}}, {}),
        ({"title": "Lisbon"}, {"task": "I move to Lisbon"}, {}),
        ({"title": "The new price list"}, {"task": "Send the new price list"}, {"title": "first seen in the task"}),
        ({"ticket": "update"}, {"mail_read": "an update"}, {}),
        ({"amount": 1250.5}, {"task": "Pay 1,250.50 EUR"}, {"amount": "first seen in the task"}),
        ({"to": ADDRESS}, {"mail_read": f"use {ADDRESS}"}, {"to": f"first seen in {MAIL}"}),
        (
            {"command": "wc -l notes.txt"},
            {"fs_write_file": {"path": "notes.txt"}},
            {"command": "composed, with words of the answer of fs.write_file, which others write"},
        ),
        (
            {"path": "/srv/reports/march-summary.md"},
            {"task": "The one for March goes into /srv/reports", "mail_read": "Here is a summary."},
            {"path": "composed, with words of the task"},
        ),
        ({"body": f"Hello, {RUN}. Regards"}, {"mail_read": f"Hi. {RUN}"}, {"body": f"composed, with words of {MAIL}"}),
        ({"body": "We close at five on Monday."}, {"mail_read": f"Hi. {RUN}"}, {}),
        (
            {"body": "Hello Gil,\nreset it at https://reset.evil-desk.example/go"},
            {"task": "Answer Gil", "mail_read": "use https://reset.evil-desk.example/go"},
            {
                "body": f"composed, with words of {MAIL}; "
                "it leads to reset.evil-desk.example, for which nobody vouches"
            },
        ),
        ({"to": "fresh@nowhere.example"}, {"task": "go"}, {}),
    ],
)  # fmt: skip
def test_targets_and_long_runs_are_told_of_and_common_words_are_not(arguments, texts, expected):
    assert told(arguments, **texts) == expected


@promise("policy:told-changed")
def test_what_a_person_changed_is_told_as_theirs_also_where_it_stood_elsewhere():
    index = MarkIndex()
    index.add("task", f"write to {ADDRESS}")
    arguments = {"to": ADDRESS, "cc": ADDRESS, "address": {"street": "Rose Lane 12"}}
    sources = Lookup(index).sources_of(arguments).given_by({"/to": "ann", "/address": "bo"}).of_leaves(arguments)

    assert told_of(sources, "to") == "changed by ann"
    assert told_of(sources, "cc") == "first seen in the task"
    assert told_of(sources, "address") == "changed by bo"


@promise("policy:told-referring")
def test_a_reference_is_told_as_the_step_that_it_refers_to_also_where_a_person_wrote_it():
    by = {"/to": (("!crm.get",),), "/cc": (("model",), ("!crm.get",))}
    sources = ArgumentSources(by=by, refers={"/to": (0,), "/cc": (0, 2)}).given_by({"/cc": "ann"})
    arguments = {"to": "${steps.0.result.email}", "cc": "${steps.0.result.a}, ${steps.2.result.b}"}
    said = sources.of_leaves(arguments)

    assert told_of(said, "to") == "refers to the answer of step 0"
    assert told_of(said, "cc") == "changed by ann; refers to the answer of step 0 and to the answer of step 2"


@promise("policy:told-alike")
def test_every_door_says_the_same_and_warns_only_of_what_policy_minds():
    mail = (Source(kind="tool", tool="mail.read", content="others"),)
    sources = {"/to": mail, "/cc": mail, "/path": (Source(kind="person", by="ann"),)}
    call = RequestedCall(
        index=0,
        tool="mail.send",
        arguments={"to": ADDRESS, "cc": ADDRESS, "path": "/srv/a", "body": "hello"},
        safety="write_safe",
        undoable=True,
        sources=sources,
        minded=("/to",),
    )
    (view,) = RequestView.of(ApprovalRequest(kind="call", question="May it?", calls=(call,))).calls
    terminal = {line.strip(): style for line, style in terminal_lines(view)}
    slack = [line.strip() for line in slack_lines(view)]

    assert (terminal[f"first seen in {MAIL}"], terminal["changed by ann"]) == ("dim", "dim")
    assert [style for line, style in terminal_lines(view) if MAIL in line] == ["yellow", "dim"]
    assert [line for line in slack if MAIL in line] == [
        f"(Warning: first seen in {MAIL})",
        f"(first seen in {MAIL})",
    ]
    assert "(changed by ann)" in slack
    assert view.sources(minded=True) == f"to: first seen in {MAIL}"
    assert view.sources(minded=False) == f"cc: first seen in {MAIL}; path: changed by ann"


@promise("policy:told-alike")
def test_arguments_of_which_the_same_is_told_share_one_text():
    assert told_together({"to": "a", "cc": "a", "note": "", "path": "b"}) == "to and cc: a; path: b"
