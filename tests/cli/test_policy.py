"""Remembered decisions at the terminal: `policy list`, `why`, `accept` and `remove`, and what the prompt offers."""

import json

import pytest
import pytest_asyncio

from backstay.client import Backstay
from backstay.policies.accepted import AcceptedLine
from backstay.settings import Settings
from backstay.testing import Reply
from gateways.terminal.policy import accept_here
from store.opening import open_store
from tests.cli.commands import BACKSTAY, at_terminal, environment_of, forked
from tests.requirements import promise


def mails(*recipients):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"}) for to in recipients])


def sent(opened, domain):
    return sorted(to for to in opened.mailbox.sent() if to.endswith(domain))


@pytest.fixture
def person(opened, nursery):
    def person(*arguments, **more):
        return at_terminal(*BACKSTAY, *arguments, environment=environment_of(opened, **more), nursery=nursery)

    return person


@pytest_asyncio.fixture
async def command(opened, nursery, tmp_path):
    async def command(*arguments, **more):
        return await forked(nursery, *arguments, environment=environment_of(opened, **more), folder=tmp_path)

    return command


def line(**fields):
    about = {"verdict": "allow", "scope": "always", "tool": "mail.send_email", "definition": "d", "by": "eve"}
    return AcceptedLine(**{**about, "at": "2026-01-01T00:00:00+00:00", "request": "w r1", **fields}).identified()


async def remembered_by(opened, scripts, user, **said):
    """Have one decision about a mail remembered, and return what the run answered."""
    backstay = Backstay(opened.client, task_queue=opened.settings.task_queue)
    run = await backstay.start(scripts.task(mails(f"a@{user}.example"), user_id=user))
    while not (found := await run.pending()):
        pass
    answer = await run.approve(found[0].id, by="ana", **said)
    await run.result()
    return answer["remembered"][0]["line"]


@promise("policy:commands")
@pytest.mark.thorough
async def test_always_at_the_prompt_of_somebody_who_can_write_the_policy_holds_at_once(person, scripts, opened):
    first = scripts.task(mails("a@prompt.example"), mails("b@prompt.example"))["text"]
    later = scripts.task(mails("c@prompt.example"))["text"]

    async with person("run", first, "--by", "ana", "--user", "prompt") as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("l")
        await terminal.shows("for a[n]y arguments of mail.send_email, or for [t]hese only?")
        terminal.type("n")
        await terminal.shows("accepted here, so it is remembered for every run of this user: mail.send_email (line ")
        code, _ = await terminal.ended()
    assert (code, sent(opened, "@prompt.example")) == (0, ["a@prompt.example", "b@prompt.example"])

    async with person("run", later, "--user", "prompt") as terminal:
        shown = await terminal.shows("accepted: mail.send_email by ana on ")
        code, _ = await terminal.ended()
    assert (code, "[d]etach?" in shown) == (0, False)


@promise("learning:alike-offered")
async def test_at_the_prompt_such_calls_are_told_with_their_bounds_and_no_others_go_unasked(person, scripts, opened):
    first, other = (scripts.task(mails(to))["text"] for to in ("a@alike.example", "b@alike.example"))
    call = ("mail__send_email", {"to": "a@alike.example", "subject": "another", "body": "text"})
    later = scripts.task(Reply(calls=[call]))["text"]

    async with person("run", first, "--by", "ana", "--user", "alike") as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("l")
        await terminal.shows(
            '[s]uch calls are those where to is "a@alike.example", from model; any text as body, subject'
        )
        await terminal.shows("[t]hese only?")
        terminal.type("s")
        await terminal.shows("accepted here, so it is remembered for every run of this user: mail.send_email (line ")
        await terminal.ended()
    async with person("run", later, "--user", "alike") as terminal:
        await terminal.shows(
            'arguments when to equals "a@alike.example" and to from ["model"] with no argument but body'
        )
        await terminal.ended()
    assert sent(opened, "@alike.example") == ["a@alike.example"] * 2
    async with person("run", other, "--user", "alike") as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("r")
        await terminal.shows("why?")
        terminal.type("")
        await terminal.ended()
    assert len(sent(opened, "@alike.example")) == 2


@promise("policy:commands")
@pytest.mark.thorough
async def test_for_this_run_at_the_prompt_and_never_and_a_slip_decides_nothing(person, scripts, opened):
    text = scripts.task(mails("a@turns.example"), mails("b@turns.example"))["text"]
    async with person("run", text, "--user", "turns") as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("u")
        await terminal.shows("[t]hese only?")
        terminal.type("x")
        await terminal.shows("nothing was decided")
        terminal.type("u")
        await terminal.shows("[t]hese only?")
        terminal.type("n")
        await terminal.shows("remembered for this run: mail.send_email")
        await terminal.ended()
    assert sent(opened, "@turns.example") == ["a@turns.example", "b@turns.example"]

    text = scripts.task(mails("c@turns.example"), mails("d@turns.example"))["text"]
    async with person("run", text, "--user", "turns") as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("v")
        await terminal.shows("[t]hese only?")
        terminal.type("n")
        await terminal.shows("why?")
        terminal.type("not today")
        await terminal.shows("accepted here, so it is remembered for every run of this user: mail.send_email")
        await terminal.shows("never: mail.send_email by")
        await terminal.ended()
    assert len(sent(opened, "@turns.example")) == 2


@promise("policy:commands")
@pytest.mark.thorough
async def test_a_line_waits_until_an_operator_accepts_it_and_is_explained_and_removed(command, scripts, opened):
    waiting = await remembered_by(opened, scripts, "waiting", remember="always", remember_arguments="any")
    why = ("policy", "why", "mail.send_email", '{"to": "x@waiting.example"}', "--user", "waiting")

    listed = await command("policy", "list", "--user", "waiting", "--output", "json")
    assert [(row["line"], row["state"], row["arguments"]) for row in json.loads(listed.out)] == [
        (waiting, "waits", "any")
    ]
    before = json.loads((await command(*why, "--output", "json")).out)
    assert (before["verdict"], before["lines"][0]["here"]) == ("ask", "not obeyed: waits")

    accepted = await command("policy", "accept", waiting[:6], "--by", "olga", "--expires", "30d")
    assert (accepted.code, f"{waiting}   holds" in accepted.out) == (0, True)
    after = json.loads((await command(*why, "--output", "json")).out)
    assert (after["verdict"], after["lines"][0]["here"]) == ("allow", "decides")
    assert after["rule"].startswith("accepted: mail.send_email by olga on ")
    free = await command("policy", "why", "mail.send_email", '{"to": "x@free.example"}', "--user", "waiting")
    assert "rule: allow[0]: mail.send_email" in free.out
    assert "fits, but lines overrule only the default: allow[0]" in free.out

    removed = await command("policy", "remove", waiting, "--output", "ndjson")
    assert json.loads(removed.out)["state"] == "removed"
    assert json.loads((await command(*why, "--output", "ndjson")).out)["verdict"] == "ask"


@promise("policy:commands")
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("accept",), "LINES: name the lines by id"),
        (("accept", "zzzz"), "LINES: no line begins with 'zzzz'"),
        (("remove", ""), "LINES: no line begins with ''"),
        (("why", "mail.send"), "TOOL: there is no tool 'mail.send'; the closest are mail."),
        (("why", "mail.send_email", "[]"), "ARGUMENTS: expected a JSON object"),
        (("accept", "a", "--expires", "soon"), "--expires: 'soon' is not a duration"),
    ],
)
async def test_what_cannot_be_done_is_said_in_one_line(command, arguments, fault):
    done = await command("policy", *arguments)

    assert (done.code, done.out) == (2, "")
    assert fault in done.err


@promise("policy:commands")
async def test_who_cannot_write_the_policy_accepts_nothing(command, opened, scripts, tmp_path):
    waiting = await remembered_by(opened, scripts, "unwritable", remember="always")
    nowhere = {"BACKSTAY_POLICY": "/no-such-folder/policy.yaml"}

    done = await command("policy", "accept", waiting, **nowhere)

    assert done.code != 0
    assert "cannot be written" in done.err
    settings = Settings.load(None, home=opened.settings.home, policy="/no-such-folder/policy.yaml")
    assert not await accept_here(settings, [waiting], "ana", lambda line: True)


@promise("policy:commands")
async def test_the_prompt_accepts_only_a_line_that_says_what_the_person_said(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("{}", encoding="utf-8")
    settings = Settings.load(None, home=tmp_path / "home", policy=policy)
    strangers = line(tool="mail.delete_message")
    async with open_store(database_url=None, home=tmp_path / "home") as store:
        await store.accepted_lines.keep([strangers])

    asked = [strangers.id]
    assert not await accept_here(settings, asked, "ana", lambda found: found.tool == "mail.send_email")
    async with open_store(database_url=None, home=tmp_path / "home") as store:
        assert [row.holds for row in await store.accepted_lines.every()] == [False]
    assert await accept_here(settings, asked, "ana", lambda found: found.tool == "mail.delete_message")
    assert not await accept_here(settings, ["unknown"], "ana", lambda found: True)


@promise("policy:check")
@pytest.mark.thorough
async def test_a_rule_for_a_tool_that_is_not_there_is_named_by_check_and_doctor(command, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "deny: [mail.recal_email, {tool: mail.later, optional: true}, 'crm.*']\n"
        "ask: [{tool: mail.send_email, approvers: [Ana@example.com, ana@example.com]}]\n"
        "allow: [{tool: mail.send_email, when: {to: {ends_with: example.com}}}]\n"
    )
    done = await command("policy", "check", BACKSTAY_POLICY=str(policy))
    assert done.code == 1, done
    lines = [line.split(maxsplit=2) for line in done.out.splitlines()]
    assert [line[:2] for line in lines] == [
        ["error", "people:"],
        ["error", "deny[0]:"],
        ["warning", "deny[2]:"],
        ["warning", "allow[0]:"],
        ["warning", "allow[0]:"],
    ]
    assert "allow[0]: mail.send_email: never decides, because ask[0] comes first" in done.out
    assert "did you mean 'mail.recall_email'?" in done.out
    profiles = tmp_path / "careful.yaml"
    profiles.write_text("careful: {budget: {quotas: {mail.send_mial: 0}}}\n", encoding="utf-8")
    files = {"BACKSTAY_POLICY": str(policy), "BACKSTAY_PROFILES": str(profiles)}
    doctor = await command("doctor", **files, BACKSTAY_NSJAIL="/none")
    assert doctor.code == 1
    assert "careful: quotas: mail.send_mial: mail has no such tool; did you mean 'mail.send_email'?" in doctor.out
    assert "deny[0]: mail.recal_email: mail has no such tool; did you mean 'mail.recall_email'?" in doctor.out

    policy.write_text("deny: [mail.recall_email, '*.send_*']\n")
    done = await command("policy", "check", "--output", "json", BACKSTAY_POLICY=str(policy))
    assert (done.code, json.loads(done.out or "[]")) == (0, [])


@promise("policy:check")
async def test_a_provider_that_is_down_is_a_warning_and_no_error(command, tmp_path):
    policy, toolbox = tmp_path / "policy.yaml", tmp_path / "toolbox.json"
    toolbox.write_text(
        '{"mcpServers": {"crm": {"command": "no-such-program"}, "off": {"command": "x", "disabled": true}}}'
    )
    policy.write_text("deny: [crm.delete, off.delete]\n")
    files = {"BACKSTAY_POLICY": str(policy), "BACKSTAY_TOOLBOX": str(toolbox)}
    done = await command("policy", "check", **files)
    assert (done.code, [line.split()[0] for line in done.out.splitlines()]) == (0, ["warning", "warning"])
    assert "disabled" in done.out


@promise("policy:check")
async def test_a_typing_error_in_the_policy_names_file_and_field(command, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("defualt: {read_only: allow}\n")
    for words in (("policy", "check"), ("policy", "why", "mail.send_email")):
        done = await command(*words, BACKSTAY_POLICY=str(policy))
        assert done.code == 2
        assert f"{policy}: defualt: unknown field; did you mean 'default'?" in done.err


@promise("policy:emptied")
@pytest.mark.parametrize("where", ["allow[0].when", "deny[0].unless", "undo.ask[0].when"])
async def test_a_condition_of_which_nothing_is_left_is_refused(command, tmp_path, where):
    policy = tmp_path / "policy.yaml"
    *above, section, field = where.replace("[0]", "").split(".")
    written = f"{section}:\n- tool: mail.send_email\n  {field}:\n  # to: {{ends_with: example.com}}\n"
    policy.write_text("".join([f"{above[0]}:\n  ", written.replace("\n", "\n  ")]) if above else written)

    done = await command("policy", "why", "mail.send_email", BACKSTAY_POLICY=str(policy))

    assert (done.code, done.out) == (2, "")
    assert f"{policy}: {where}: empty, so the rule would have no such condition; write one, or remove" in done.err
