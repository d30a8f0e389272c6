"""`backstay audit` and `backstay ledger`: what workers recorded is verified by commands that hold no private key."""

import json
import sqlite3

import pytest
import pytest_asyncio

from backstay.task.ledger.keys import Signer
from backstay.testing import Reply
from tests.cli.commands import environment_of, forked
from tests.engine import Scripts, ended, pending
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow: [{tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}]
"""
KEY, SIGNER = Signer.make()


def mail(to):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"})])


@pytest_asyncio.fixture
async def recorded(open_engine):
    """An engine with the key, and a run in which one write was allowed, one approved and one rejected."""
    scripts = Scripts()
    async with open_engine(scripts, policy=POLICY, ledger_key=KEY) as opened:
        task = scripts.task(mail("a@free.example"), mail("b@x.example"), mail("c@x.example"), user_id="ana")
        handle = await opened.start(task, "audited")
        for verdict in ("approve", "reject"):
            (request,) = await pending(handle)
            said = {"request_id": request["id"], "verdict": verdict, "by": "ana", "comment": f"I {verdict} it"}
            await handle.execute_update("decide", said)
        yield opened, handle, await ended(handle)


@pytest.fixture
def command(recorded, nursery, tmp_path):
    listed = tmp_path / "keys.txt"
    listed.write_text(f"{SIGNER.public} 2020-01-01\n", encoding="utf-8")

    async def command(*arguments, code=0, **more):
        environment = environment_of(recorded[0]) | {"BACKSTAY_LEDGER_PUBLIC_KEYS": str(listed)} | more
        done = await forked(nursery, *arguments, environment=environment, folder=tmp_path)
        assert done.code == code, (done.out, done.err)
        return done.out + done.err

    return command


def in_store(opened, statement):
    with sqlite3.connect(opened.settings.home / "backstay.db", timeout=10) as connection:
        return connection.execute(statement).fetchall()


@promise("ledger:verify")
async def test_what_a_run_did_verifies_with_public_keys_and_a_changed_row_is_named(recorded, command, tmp_path):
    opened, handle, result = recorded
    nowhere = {"TEMPORAL_ADDRESS": "127.0.0.1:9"}
    told = json.loads(await command("audit", "verify", "--output", "json", **nowhere))
    assert (told["good"], told["runs"], told["faulty"], told["noted"]) == (True, 1, [], [])
    memo = await (await handle.describe()).memo()
    assert memo["BackstayLedgerHead"] == result["ledger_head"]
    for name, kept in (("memo", memo), ("result", result)):
        (tmp_path / name).write_text(json.dumps(kept), encoding="utf-8")
        assert "elsewhere is in it" in await command("audit", "verify", "audited", "--anchor", str(tmp_path / name))
    holding = "FROM ledger_rows WHERE body LIKE '%b@x.example%'"
    numbers = {n for (n,) in in_store(opened, f"SELECT n {holding}")}
    in_store(opened, f"UPDATE ledger_rows SET body = replace(body, 'b@x', 'z@x') WHERE n IN (SELECT n {holding})")
    changed = json.loads(await command("audit", "verify", "--since", "1d", "--output", "json", code=1))
    assert {fault["n"] for fault in changed["faulty"][0]["faults"]} == numbers
    in_store(opened, "DELETE FROM ledger_rows WHERE n IN (3, 4)")
    assert "rows 3 to 4: missing" in await command("audit", "verify", "audited", code=1)


@promise("ledger:report")
async def test_the_report_says_who_what_by_which_rule_and_the_evidence_verifies_by_itself(recorded, command, tmp_path):
    head = recorded[2]["ledger_head"]
    # Markdown shows what runs say literally.
    report = (await command("audit", "export", "audited")).replace("\\", "")
    for part in ("SafeNet", "ruling allow: ", "ruling ask: ", "ana (not verified): approve", "I reject it"):
        assert part in report, report
    assert "mail.send" in report
    assert f"Head {head}, signed at " in report
    evidence = tmp_path / "evidence.json"
    await command("audit", "export", "--from", "2020-01-01", "--to", "2099-01-01", "--format", "json",
                  "--output-file", str(evidence))  # fmt: skip
    verify = ("audit", "verify", "--evidence", str(evidence))
    alone = await command(*verify, BACKSTAY_LEDGER_PUBLIC_KEYS="", BACKSTAY_HOME="elsewhere")
    assert "nothing was changed" in alone
    assert "with the keys in the file itself, so compare them with yours" in alone
    text = evidence.read_text(encoding="utf-8")
    evidence.write_text(text.replace("I reject it", "I approve it"), encoding="utf-8")
    assert "what it says was changed" in await command(*verify, code=1)
    other = tmp_path / "other.txt"
    other.write_text(f"{Signer.make()[1].public} 2020-01-01", encoding="utf-8")
    evidence.write_text(text, encoding="utf-8")
    assert "not in the list" in await command(*verify, "--keys", str(other), code=1)
    evidence.write_text("{}", encoding="utf-8")
    assert "this is not evidence" in await command(*verify, code=2)
    assert "is not a day" in await command("audit", "export", "--from", "yesterday", code=2)
    assert "knows no run" in await command("audit", "verify", "another", code=2)


@promise("ledger:key")
async def test_a_key_that_is_made_fits_the_worker_and_the_list_and_every_other_text_is_refused(nursery, tmp_path):
    from backstay.errors import SettingsInvalid
    from backstay.task.ledger.keys import read_keys
    from tests.cli.commands import bare

    done = await forked(nursery, "ledger", "key", environment=bare(), folder=tmp_path)
    private, public = done.out.splitlines()
    signer = Signer(private.removeprefix("BACKSTAY_LEDGER_KEY="))
    held = {
        name: bare() | {"BACKSTAY_LEDGER_KEY": text} for name, text in (("set", private.partition("=")[2]), ("", ""))
    }
    asked = [
        await forked(nursery, "ledger", "key", "--public", environment=each, folder=tmp_path) for each in held.values()
    ]
    assert [(each.code, each.out.strip()) for each in asked] == [(0, public), (2, "")]
    assert "not set here" in asked[1].err
    signature = signer.sign(b"said")
    keys = read_keys(public, "the list")
    assert keys.fault(signer.id, b"said", signature, public.split()[1]) == ""
    assert "does not hold" in keys.fault(signer.id, b"else", signature, public.split()[1])
    assert "not written as" in keys.fault(signer.id, b"said", signature.upper(), public.split()[1])
    for text in ("", "secret", signer.public[:-8]):
        with pytest.raises(SettingsInvalid, match="backstay ledger key"):
            Signer(text)
    for line in ("abc 2026-01-01", signer.public, f"{signer.public} today", f"{signer.public} 2026-02-01 2026-01-01"):
        with pytest.raises(SettingsInvalid, match="the list: line 1"):
            read_keys(line, "the list")


@promise("ledger:try")
async def test_another_policy_is_tried_on_every_recorded_call_without_a_model(recorded, command, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(POLICY.replace("@free.example", "@x.example"), encoding="utf-8")
    asked = len(recorded[0].model.conversations) if hasattr(recorded[0].model, "conversations") else None
    told = json.loads(await command("policy", "try", str(other), "--output", "json"))
    assert (told["calls"], told["unknown"]) == (3, 0)
    assert [(row["was"], row["now"], row["rejected_by"]) for row in told["different"]] == [
        ("allow", "ask", ""),
        ("ask", "allow", ""),
        ("ask", "allow", "ana"),
    ]
    assert "arguments" not in told["different"][0]
    lines = await command("policy", "try", str(other))
    assert "3 calls: 2 now allowed, of which 1 were rejected by ana; 1 now asked" in lines
    same = await command("policy", "try", str(recorded[0].settings.policy))
    assert "3 calls: nothing is different" in same
    assert asked is None or asked == len(recorded[0].model.conversations)


@promise("ledger:cases")
async def test_a_policy_is_compared_with_the_cases_of_a_file(recorded, command, tmp_path):
    cases = tmp_path / "cases.yaml"
    free = '- {tool: mail.send_email, arguments: {to: a@free.example}, expected: allow, rule: "allow[0]"}\n'
    cases.write_text(f"{free}- {{tool: mail.send_email, arguments: {{to: a@x.example}}, expected: ask}}\n")
    assert "2 cases: 2 as expected, 0 not" in await command("policy", "test", str(cases))
    cases.write_text(free.replace("expected: allow", "expected: deny") + "- {tool: mail.nothing, expected: ask}\n")
    told = await command("policy", "test", str(cases), code=1)
    assert "expected deny by 'allow[0]', and it is allow" in told
    assert "it is unknown tool" in told
    for asked in (("try", "nowhere.yaml"), ("test", str(cases), "--policy", "nowhere.yaml")):
        assert "there is no file nowhere.yaml" in await command("policy", *asked, code=2)
    cases.write_text("- {tool: mail.send_email, expect: ask}\n")
    assert "case 1: " in await command("policy", "test", str(cases), code=2)


@promise("ledger:cases-engine")
async def test_the_engines_own_tools_are_in_cases_and_explained_as_any_other(recorded, command, tmp_path):
    policy, cases = tmp_path / "engine.yaml", tmp_path / "cases.yaml"
    policy.write_text(
        "deny:\n- {tool: engine.run_program, when: {source: {contains: eval}}}\n"
        "- {tool: engine.delegate, when: {task: {contains: evil}}}\n"
        "ask: [{tool: engine.propose_plan, when: {steps: {gt: 9}}}]\n"
        'allow: [{tool: engine.delegate, when: {task: {equals: "count"}}}]\n'
    )
    cases.write_text(
        "- {tool: engine.run_program, arguments: {source: eval(x)}, expected: deny, rule: 'deny[0]'}\n"
        "- {tool: engine.run_program, arguments: {source: return 1}, expected: allow}\n"
        "- {tool: engine.propose_plan, arguments: {tools: [mail.send_email], steps: 10}, expected: ask}\n"
        "- {tool: engine.propose_plan, arguments: {tools: [mail.send_email], steps: 2}, expected: allow}\n"
        "- {tool: engine.delegate, arguments: {task: count}, expected: allow, rule: 'allow[0]'}\n"
        "- {tool: engine.delegate, arguments: {task: send}, expected: ask}\n"
        "- {tool: engine.delegate, arguments: {task: 'evil ${x}'}, expected: deny, rule: 'deny[1]'}\n"
    )
    assert "7 cases: 7 as expected, 0 not" in await command("policy", "test", str(cases), "--policy", str(policy))
    told = json.loads(await command("policy", "why", "engine.run_program", "--output", "json"))
    assert (told["tool"], told["verdict"]) == ("engine.run_program", "allow")


@promise("ledger:cases-dates")
async def test_a_date_without_quotes_in_a_case_is_text_as_in_a_call(recorded, command, tmp_path):
    policy, cases = tmp_path / "dates.yaml", tmp_path / "cases.yaml"
    days = '["2026-01-01", "2026-01-01T10:00:00Z", "2026-01-01 10:00:00 +1", "10:30"]'
    policy.write_text(f"deny: [{{tool: mail.send_email, when: {{subject: {{in: {days}}}}}}}]\n")
    subjects = {
        "2026-01-01": "deny",
        "2026-01-01T10:00:00Z": "deny",
        "2026-01-01 10:00:00 +1": "deny",
        "10:30": "deny",
        "2026-02-02": "ask",
        "2026-01-01T10:00:00+00:00": "ask",
        "{2026-01-01: x}": "deny",
    }
    cases.write_text(
        "".join(
            f"- {{tool: mail.send_email, arguments: {{subject: {subject}}}, expected: {verdict}}}\n"
            for subject, verdict in subjects.items()
        )
    )
    assert "7 cases: 7 as expected, 0 not" in await command("policy", "test", str(cases), "--policy", str(policy))
    cases.write_text("- {tool: mail.send_email, arguments: {subject: {!!timestamp 2026-01-01: x}}, expected: ask}\n")
    told = await command("policy", "test", str(cases), "--policy", str(policy), code=2)
    assert "case 1: cannot be written as JSON" in told
