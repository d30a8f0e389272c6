"""A sub-run asks in Slack as any run does, below the line of the run that delegated."""

from tests.e2e.subruns.family import PROFILES, begun, delegate
from tests.engine import ended, pending
from tests.requirements import promise
from tests.slack.workspace import ANA, FINISH, POLICY, U1, decisions, mail, open_office


@promise("subruns:slack")
async def test_the_request_of_a_sub_run_is_decided_from_slack_where_the_line_of_the_run_stands_above_its_own(
    temporal, tmp_path
):
    policy = POLICY + 'allow: ["engine.delegate"]\n'
    async with open_office(temporal, tmp_path, "http", policy=policy, profiles=PROFILES) as office:
        part = office.scripts.task(mail("a@x.example"), FINISH)
        root = office.scripts.task(delegate(part), FINISH)
        root["text"] += ": remind all"
        handle = await office.engine.start(root)
        (name,) = await begun(handle)
        child = office.engine.client.get_workflow_handle(name)
        await pending(child)
        message = await office.message(part["text"])
        await office.slack.press(message, "backstay.approve", user=U1)
        await ended(handle)
        theirs = await child.result()

    assert message.shown.index(f"Part of: {root['text']}") < message.shown.index(f"Task: {part['text']}")
    assert decisions(theirs) == [("approve", ANA, True)]
    assert theirs["outcome"] == "completed"


@promise("subruns:slack-undo")
async def test_whoever_names_the_last_run_or_the_beginning_of_its_id_means_the_run_and_not_its_sub_runs(
    temporal, tmp_path
):
    policy = POLICY + 'allow: ["engine.delegate", "mail.send_email"]\nundo: {default: allow}\n'
    async with open_office(temporal, tmp_path, "http", policy=policy, profiles=PROFILES) as office:
        part = office.scripts.task(mail("a@x.example"), FINISH)
        handle = await office.engine.start(office.scripts.task(delegate(part), FINISH, user_id=ANA))
        (name,) = await begun(handle)
        await ended(handle)
        await office.slack.command("list", user=U1)
        listed = await office.whisper(handle.id)
        told = []
        for named in ("last", handle.id[:20]):
            before = office.whispers()
            await office.slack.command(f"undo {named}", user=U1)
            told.append((await office.whisper("ndo", after=before)).text)
        sub = office.whispers()
        await office.slack.command(f"undo {name[:-1]}", user=U1)
        by_name = await office.whisper("ndo", after=sub)

    assert name not in listed.text
    assert [f"Undoing {handle.id};" in text for text in told] == [True, True]
    assert f"Undoing {name};" in by_name.text
