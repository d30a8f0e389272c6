"""Mail: whoever may decide gets a link to what is asked; the mail decides nothing and holds no arguments."""

import asyncio
import re
import socket
import sqlite3
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default

import pytest
from aiosmtpd.controller import UnthreadedController
from aiosmtpd.smtp import SMTP
from structlog.testing import capture_logs

from backstay.approvals.approval import Links, RequestedCall
from backstay.approvals.notice import Notice, NoticeKind
from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from backstay.testing import Reply
from gateways.mail import mail as mail_gateway
from gateways.mail.mail import Mail, MailServer, _message, is_address, mail_of
from people.notices.delivering import NotTaken
from tests.engine import ended, pending
from tests.requirements import promise
from tests.sizes import spread

FINISH = Reply(calls=[("finish", {"summary": "done"})])
SENDER = "backstay@example.com"
ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"


class Mailboxes:
    """Take mail for everybody; refuse people, the beginning of their mails, or mails, as it is told."""

    def __init__(self):
        self.mails = asyncio.Queue()
        self.refused = {}
        self.unwanted = {}
        self.disliked = []
        self.thinks_s = 0.0
        self.decided = asyncio.Event()
        """Until it is set, no mail is answered."""
        self.decided.set()

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's name
        if answers := self.refused.get(address):
            return answers.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - aiosmtpd's name
        if self.disliked:
            return self.disliked.pop(0)
        self.mails.put_nowait((envelope.rcpt_tos, message_from_bytes(envelope.content, policy=default)))
        await asyncio.sleep(self.thinks_s)
        await self.decided.wait()
        return "250 OK"

    async def next(self):
        to, mail = await asyncio.wait_for(self.mails.get(), 150)
        assert to == [mail["To"]]
        return mail


class Door(SMTP):
    """Ask the mailboxes before a mail is begun, too."""

    async def smtp_DATA(self, arg):  # noqa: N802 - aiosmtpd's name
        (person,) = self.envelope.rcpt_tos
        if answers := self.event_handler.unwanted.get(person):
            await self.push(answers.pop(0))
            return
        await super().smtp_DATA(arg)


class Controller(UnthreadedController):
    def factory(self):
        return Door(self.handler, **self.SMTP_kwargs)


@asynccontextmanager
async def mail_server(mailboxes=None):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mailboxes = mailboxes or Mailboxes()
    server = Controller(mailboxes, hostname="127.0.0.1", port=port, loop=asyncio.get_running_loop())
    started = await asyncio.get_running_loop().create_server(server._factory_invoker, "127.0.0.1", port)
    try:
        yield f"smtp://127.0.0.1:{port}", mailboxes
    finally:
        started.close()
        await started.wait_closed()


def mail(**arguments):
    call = {"to": "a@x.example", "subject": "s", "body": "b", **arguments}
    return Reply(calls=[("mail__send_email", call)])


def settings(url, **more):
    return {"smtp_url": url, "mail_from": SENDER, "url": "https://approve.example", **more}


@promise("approvals:mail-link")
async def test_whoever_may_decide_is_mailed_a_link_and_reminded_and_no_argument_is_in_it(open_engine):
    policy = """
    default: {write_safe: allow}
    groups: {"@finance": [bo@example.com, not-an-address]}
    ask: [{tool: mail.send_email, approvers: [ana@example.com, "@finance"], timeout: 120s, remind_after: 5s}]
    """
    script = [mail(body="the price is 7"), FINISH]
    async with (
        mail_server() as (url, mailboxes),
        open_engine(script, policy=policy, approver_key="a key", **settings(url)) as engine,
    ):
        handle = await engine.start({"text": "Tell them the price\nBcc: eve@example.com", "user_id": "ana@example.com"})
        mails = [await mailboxes.next() for _ in range(4)]
        await handle.cancel()
    assert [mail["To"] for mail in mails] == ["ana@example.com", "bo@example.com"] * 2
    first, again = mails[0], mails[2]
    assert first["From"] == SENDER
    assert first["Bcc"] is None
    text = first.get_content()
    assert f"https://approve.example/requests/{handle.id}/r1" in text
    assert "Tell them the price" in text
    assert "mail.send_email" in text
    assert "the price is 7" not in text
    assert again["Subject"] == f"Reminder: {first['Subject']}"
    assert again["References"] == first["References"]
    assert len({mail["Message-ID"] for mail in mails}) == 4


ESCALATED = """
default: {write_safe: allow}
ask:
  - {tool: mail.send_email, approvers: [ana@example.com], timeout: 5s, on_expiry: escalate,
     escalate_to: [cy@example.com]}
"""


@promise("approvals:mail-escalated")
async def test_whom_a_request_is_escalated_to_is_mailed_when_its_time_is_over_and_nobody_else_is_again(open_engine):
    async with (
        mail_server() as (url, mailboxes),
        open_engine([mail(), FINISH], policy=ESCALATED, approver_key="a key", **settings(url)) as engine,
    ):
        handle = await engine.start("write")
        first = await mailboxes.next()
        (request,) = await pending(handle)
        expires = datetime.fromisoformat(request["expires_at"])
        later = await mailboxes.next()
        assert datetime.now(UTC) >= expires
        await ended(handle)
        closed = (await handle.describe()).close_time
        assert mailboxes.mails.empty()
    assert f"Expires:  {expires:%Y-%m-%d %H:%M} UTC" in first.get_content()
    assert [first["To"], later["To"]] == ["ana@example.com", "cy@example.com"]
    assert later["Subject"] == f"Escalated: {first['Subject']}"
    assert "so you are asked, too" in later.get_content()
    assert "asked, too" not in first.get_content()
    assert f"https://approve.example/requests/{handle.id}/r1" in later.get_content()
    (until,) = re.findall(r"^Expires:  (.+) UTC", later.get_content(), re.MULTILINE)
    # Who is asked later has as long again, and the run ends when that is over, too.
    again = expires + timedelta(seconds=5)
    assert closed >= again
    assert f"{again:%Y-%m-%d %H:%M}" <= until <= f"{closed:%Y-%m-%d %H:%M}"


@promise("approvals:mail-passed")
@pytest.mark.parametrize("answer", spread(["452 4.2.2 mailbox full", "450 4.7.1 greylisted"], 1))
async def test_whom_a_request_is_escalated_to_is_mailed_while_the_mailbox_of_the_first_takes_nothing(
    open_engine, answer
):
    async with (
        mail_server() as (url, mailboxes),
        open_engine([mail(), FINISH], policy=ESCALATED, approver_key="a key", **settings(url)) as engine,
    ):
        mailboxes.refused = {"ana@example.com": [answer] * 1000}
        handle = await engine.start("write")
        assert (await mailboxes.next())["To"] == "cy@example.com"
        await handle.terminate()


@promise("approvals:mail-again")
async def test_who_is_asked_again_because_a_rule_names_nobody_else_is_told_why(open_engine):
    policy = ESCALATED.replace(",\n     escalate_to: [cy@example.com]", "")
    async with (
        mail_server() as (url, mailboxes),
        open_engine([mail(), FINISH], policy=policy, approver_key="a key", **settings(url)) as engine,
    ):
        handle = await engine.start("write")
        first, again = [await mailboxes.next() for _ in range(2)]
        await handle.terminate()
    assert [first["To"], again["To"]] == ["ana@example.com"] * 2
    assert again["Subject"] == f"Reminder: {first['Subject']}"
    assert "Nobody has decided this in time, so you are asked again." in again.get_content()


@promise("approvals:mail-after-reminders")
async def test_an_escalation_after_reminders_asks_who_is_new_and_the_next_reminder_is_for_all(open_engine):
    policy = ESCALATED.replace("timeout: 5s", "timeout: 5s, remind_after: 2s")
    async with (
        mail_server() as (url, mailboxes),
        open_engine([mail(), FINISH], policy=policy, approver_key="a key", **settings(url)) as engine,
    ):
        handle = await engine.start("write")
        mails = [await mailboxes.next()]
        while mails[-1]["To"] != "cy@example.com":
            mails.append(await mailboxes.next())
        later = [await mailboxes.next() for _ in range(2)]
        await handle.terminate()
    first, *reminders, escalated = mails
    assert escalated["Subject"] == f"Escalated: {first['Subject']}"
    assert "so you are asked, too" in escalated.get_content()
    assert "Reminder" not in escalated.get_content()
    for count, reminder in enumerate(reminders, 1):
        assert reminder["Subject"] == f"Reminder: {first['Subject']}"
        assert f"Reminder {count}: this still waits for you." in reminder.get_content()
    assert reminders
    assert {mail["To"] for mail in later} == {"ana@example.com", "cy@example.com"}
    assert {mail["Subject"] for mail in later} == {reminders[0]["Subject"]}


@promise("approvals:mail-bad-address")
async def test_an_address_that_does_not_exist_keeps_nobody_else_from_being_told(open_engine):
    script = [mail(), FINISH]
    async with (
        mail_server() as (url, mailboxes),
        open_engine(script, **settings(url, mail_to="gone@example.com,later@example.com,cy@example.com")) as engine,
    ):
        mailboxes.refused = {
            "gone@example.com": ["550 no such user"] * 9,
            "later@example.com": ["451 try again later"],
        }
        handle = await engine.start("write")
        assert (await mailboxes.next())["To"] == "cy@example.com"
        assert (await mailboxes.next())["To"] == "later@example.com"
        await pending(handle)
        await handle.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "cy@example.com"})
        assert (await ended(handle))["outcome"] == "completed"


@promise("approvals:mail")
async def test_what_was_decided_while_the_mail_server_was_away_is_mailed_to_nobody(open_engine):
    away = ["451 come back later"] * 1000
    async with (
        mail_server() as (url, mailboxes),
        open_engine([mail(), mail(), FINISH], **settings(url, mail_to="ana@example.com")) as engine,
    ):
        mailboxes.refused = {"ana@example.com": away}
        handle = await engine.start("write twice")
        await pending(handle)
        async with asyncio.timeout(150):
            while len(away) == 1000:
                await asyncio.sleep(0.05)
        await handle.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "ana@example.com"})
        async with asyncio.timeout(150):
            while [request["id"] for request in await pending(handle)] != ["r2"]:
                await asyncio.sleep(0.05)
        mailboxes.refused = {}
        assert f"/requests/{handle.id}/r2" in (await mailboxes.next()).get_content()
        await all_told(engine)
        assert mailboxes.mails.empty()
        await handle.cancel()


@promise("approvals:mail")
async def test_what_is_decided_while_the_mail_server_thinks_about_one_mail_is_mailed_to_nobody_else(open_engine):
    async with (
        mail_server() as (url, mailboxes),
        open_engine([mail(), FINISH], **settings(url, mail_to=f"{ANA},{BO},{CY}")) as engine,
    ):
        mailboxes.decided.clear()
        handle = await engine.start("write")
        await mailboxes.next()
        await pending(handle)
        await handle.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": ANA})
        assert (await ended(handle))["outcome"] == "completed"
        mailboxes.decided.set()
        await all_told(engine)
        assert mailboxes.mails.empty()


async def all_told(engine):
    """Wait until no notice is to be mailed any more."""
    unsent = "SELECT count(*) FROM deliveries WHERE receiver = 'mail' AND state IN ('waiting', 'passed')"
    async with asyncio.timeout(150):
        with closing(sqlite3.connect(engine.settings.home / "backstay.db", timeout=10)) as database:
            while database.execute(unsent).fetchone() != (0,):
                await asyncio.sleep(0.1)


@promise("approvals:mail-of-task")
async def test_nobody_is_mailed_whom_only_a_task_names(open_engine):
    policy = """
    default: {write_safe: allow}
    ask: [{tool: mail.send_email, approvers: [ana@example.com, bo@example.com]}]
    """
    own = {"ask": [{"tool": "mail.list_customers", "approvers": ["ana@example.com", "abe@elsewhere.example"]}]}
    reads = [("mail__list_customers", {"limit": 1})]
    async with (
        mail_server() as (url, mailboxes),
        open_engine([Reply(calls=reads), FINISH], policy=policy, approver_key="a key", **settings(url)) as engine,
    ):
        handle = await engine.start({"text": "Buy now at example.com", "policy": own})
        assert (await mailboxes.next())["To"] == "ana@example.com"
        assert (await pending(handle))[0]["approvers"] == ["abe@elsewhere.example", "ana@example.com"]
        assert mailboxes.mails.empty()
        await handle.terminate()


@promise("approvals:mail-settings-people")
@pytest.mark.parametrize(
    ("reminder", "more", "people"),
    [
        (0, {}, ["all@example.com"]),
        (1, {}, ["all@example.com"]),
        (0, {"escalated": True}, ["all@example.com"]),
        (0, {"escalated": True, "escalated_to": ["cy@example.com"]}, ["cy@example.com"]),
        (2, {"escalated": True, "escalated_to": ["cy@example.com"]}, ["all@example.com", "cy@example.com"]),
    ],
)
def test_where_nobody_is_named_those_of_the_settings_are_mailed_and_still_are_after_an_escalation(
    reminder, more, people
):
    mail = Mail(MailServer.of("smtp://127.0.0.1:9"), SENDER, ["all@example.com"])
    notice = asked(1)
    notice = notice.model_copy(update={"reminder": reminder, "request": {**(notice.request or {}), **more}})
    assert mail.people(notice) == people


def parts_of(*parts):
    """Return the fields of a request about a plan, each of whose parts names who decides and who has approved it."""
    decided = [{"by": by, "verdict": "approve"} for _, voters, _ in parts for by in voters]
    shown = [
        {"part": at, "steps": [at], "approvers": names, "quorum": quorum, "decided": [{"by": by} for by in voters]}
        for at, (names, voters, quorum) in enumerate(parts)
    ]
    proposal = {"plan_id": "p", "version": 1, "hash": "h", "steps": [], "parts": shown}
    return {"kind": "plan", "decided": decided, "proposal": proposal}


@promise("approvals:reminded-of-parts")
@pytest.mark.parametrize("more", [{"escalated": True, "escalated_to": [ANA]}, {"escalated": True}])
@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([([ANA], [ANA], 1), ([ANA, BO], [], 1)], [ANA]),
        ([([ANA], [ANA], 1), ([ANA, BO], [ANA], 2)], []),
        ([([ANA], [ANA], 1), ([], [], 1)], [ANA]),
        ([([ANA], [ANA], 1), ([BO], [], 1)], []),
    ],
)
def test_who_has_approved_a_part_of_a_plan_is_mailed_about_another_that_waits_for_them(parts, told, more):
    mail = Mail(MailServer.of("smtp://127.0.0.1:9"), SENDER, ())
    assert mail.people(asked(1, ANA, **parts_of(*parts), **more)) == told


@promise("approvals:reminded-to-agree")
@pytest.mark.parametrize(
    ("votes", "told"),
    [
        ([("happened", None), ("did_not_happen", None)], [ANA, BO, CY]),
        ([("answer", "a digest"), ("answer", "another digest")], [ANA, BO, CY]),
        ([("answer", "a digest"), ("answer", "a digest")], [CY]),
        ([("approve", None)], [BO, CY]),
    ],
)
def test_people_who_must_agree_and_do_not_are_all_reminded(votes, told):
    mail = Mail(MailServer.of("smtp://127.0.0.1:9"), SENDER, ())
    said = zip((ANA, BO), votes, strict=False)
    decided = [
        {"by": by, "verdict": verdict} | ({"answer": answer} if answer else {}) for by, (verdict, answer) in said
    ]
    notice = asked(1, ANA, BO, CY, quorum=3, decided=decided)
    assert mail.people(notice.model_copy(update={"reminder": 1})) == told


def asked(number, *people, **more):
    request = {"id": "r1", "kind": "call", "question": "May it?", "approvers": list(people), **more}
    return Notice(
        id=f"task-1/f/{number}/now",
        sequence=number,
        event=NoticeKind.ASKED,
        at="2026-01-01",
        workflow_id="task-1",
        run_id="f",
        links=Links(page="https://approve.example/requests/task-1/r1"),
        request=request,
    )


async def taken(mail, notice):
    """Send a notice until it is taken; return how often it was tried."""
    tries = 1
    async with asyncio.timeout(150):
        while True:
            try:
                await mail.send(notice)
            except NotTaken:
                tries += 1
                await asyncio.sleep(0.1)
            else:
                return tries


def mailed(*calls):
    """Return the lines about calls in the mail that asks about them."""
    plain = [RequestedCall.model_validate(call).plain() for call in calls]
    text = _message(asked(1, ANA, calls=plain), SENDER, ANA).get_content()
    lines = text.partition("Calls:")[2].partition("\n\n")[0].splitlines()[1:]
    return [line.removeprefix("    ") for line in lines]


SEND = {"index": 0, "tool": "mail.send", "safety": "restricted_write", "undoable": False}
OTHERS = {"kind": "tool", "tool": "office.inbox", "content": "others"}


@promise("approvals:mail-view")
@pytest.mark.parametrize("minded", [True, False])
def test_a_mail_says_where_values_come_from_and_warns_only_where_policy_minds_it(minded):
    given = {"arguments": {"to": "mallory@evil.example"}, "sources": {"/to": [OTHERS]}}
    told = mailed({**SEND, **given, **({"minded": ["/to"]} if minded else {})})
    said = "to: first seen in the answer of office.inbox, which others write"
    assert told == [
        "[0] mail.send  (restricted_write)",
        f"    Warning: {said}" if minded else f"    {said}",
        "    CANNOT BE UNDONE",
    ]


@promise("approvals:mail-view")
def test_a_mail_names_the_first_calls_of_many_and_holds_no_argument():
    told = mailed(*({**SEND, "index": at, "arguments": {"to": "a secret place"}} for at in range(12)))
    assert (len(told), told[-1]) == (2 * 10 + 1, "and 2 more")
    assert "secret" not in str(told)


@promise("approvals:mail-encoded-words")
@pytest.mark.parametrize("coded", ["q?Pay=0D=0AContent-Type:_text/html=0D=0A=0D=0A<p>Click</p>?=", "q?safe=E2=80=AE?="])
async def test_the_subject_of_a_mail_holds_what_is_asked_and_nothing_that_a_mail_program_decodes(coded):
    async with mail_server() as (url, mailboxes):
        await taken(Mail(MailServer.of(url), SENDER, ()), asked(1, ANA, question=f"=?utf-8?{coded} now"))
        told = await mailboxes.next()
    assert told["Subject"] == f"=<U+003F>utf-8?{coded} now"
    assert told.get_content_type() == "text/plain"
    assert "https://approve.example/requests/task-1/r1" in told.get_content()


@promise("approvals:mail-subject")
@pytest.mark.parametrize(
    "question",
    [
        "10% 日本語",
        "May it pay 10% to 日本語 日本語 and Grüße “q” “q”?",
        f"{'x' * 30} {'x' * 30} é Grüße",
        f"May it visit {'y' * 90} and {'z' * 20}?",
        f"{'word ' * 20}   and   spaces",
        "語" * 70,
    ],
)
async def test_the_subject_of_a_mail_keeps_every_space_between_words_of_any_script(question):
    async with mail_server() as (url, mailboxes):
        await taken(Mail(MailServer.of(url), SENDER, ()), asked(1, ANA, question=question))
        told = await mailboxes.next()
    assert told["Subject"] == question
    assert told.defects == []


@promise("approvals:mail-date")
@pytest.mark.parametrize(
    ("at", "date"),
    [
        ("2026-01-02T03:04:05.678+00:00", "Fri, 02 Jan 2026 03:04:05 +0000"),
        ("2026-01-02T05:04:05+02:00", "Fri, 02 Jan 2026 05:04:05 +0200"),
    ],
)
async def test_a_mail_is_dated_by_when_it_was_asked(at, date):
    notice = asked(1, ANA).model_copy(update={"at": at})
    async with mail_server() as (url, mailboxes):
        await taken(Mail(MailServer.of(url), SENDER, ()), notice)
        assert (await mailboxes.next())["Date"] == date


@promise("approvals:mail-full")
@pytest.mark.parametrize(
    ("refusing", "answer"),
    [
        ("unwanted", "452 mailbox full"),
        ("unwanted", "421 too many mails for this one"),
        *spread([("refused", "452 mailbox full"), ("refused", "421 too many mails for this one")], 1),
    ],
)
async def test_a_mailbox_that_takes_nothing_brings_nobody_else_a_mail_twice_and_keeps_no_later_one_back(
    refusing, answer
):
    async with mail_server() as (url, mailboxes):
        setattr(mailboxes, refusing, {"full@example.com": [answer] * 3})
        mail = Mail(MailServer.of(url), SENDER, (), patience_s=0)
        first = asked(1, "full@example.com", ANA, BO)
        with pytest.raises(NotTaken) as refused:
            await mail.send(first)
        assert not refused.value.holds
        await taken(mail, asked(2, CY))
        # Its mail is due for as long as that of others.
        assert await taken(mail, first) > 2
        told = [mailboxes.mails.get_nowait()[0][0] for _ in range(mailboxes.mails.qsize())]
    assert sorted(told[:-1]) == [ANA, BO, CY]
    assert told[-1] == "full@example.com"


@promise("approvals:mail-given-up")
@pytest.mark.parametrize("gone", ["550 5.1.1 no such user", "550 5.2.1 disabled", "556 5.1.10 null MX"])
async def test_an_address_without_a_mailbox_is_mailed_once_though_nobody_else_is_asked_and_is_told_in_the_log(gone):
    async with mail_server() as (url, mailboxes):
        mailboxes.refused = {ANA: [gone] * 9}
        with capture_logs() as logs:
            assert await taken(Mail(MailServer.of(url), SENDER, ()), asked(1, ANA)) == 1
        assert len(mailboxes.refused[ANA]) == 8
    assert [(line["event"], line["people"], line["said"]) for line in logs] == [("mail.refused", 1, gone)]


@promise("approvals:mail-given-up")
async def test_an_address_without_a_mailbox_does_not_settle_what_the_server_refuses_to_others():
    async with mail_server() as (url, mailboxes):
        mailboxes.refused = {ANA: ["550 5.1.1 no such user"] * 9, BO: ["554 5.7.1 Relay access denied"] * 3}
        assert await taken(Mail(MailServer.of(url), SENDER, (), patience_s=0), asked(1, ANA, BO)) == 4
        assert len(mailboxes.refused[ANA]) == 8
        assert (await mailboxes.next())["To"] == BO


NOT_OURS = ("550 5.7.60 SMTP; Client may send nothing as <backstay@example.com>", "554 5.7.1 Relay access denied")


@promise("approvals:mail-to-nobody")
@pytest.mark.parametrize("after_message", [False, True])
async def test_a_mail_server_that_refuses_everybody_has_served_nobody_and_its_words_are_told(after_message):
    people = [ANA, BO]
    async with mail_server() as (url, mailboxes):
        if after_message:
            mailboxes.disliked = sorted(NOT_OURS * 2)
        else:
            mailboxes.refused = {person: list(NOT_OURS) for person in people}
        mail = Mail(MailServer.of(url), SENDER, (), patience_s=0)
        for answer in NOT_OURS:
            said = answer.replace("backstay@example.com", "address")
            with pytest.raises(NotTaken, match=re.escape(f"refuses everybody: {said}; BACKSTAY_SMTP_URL")) as refused:
                await mail.send(asked(1, *people))
            assert not refused.value.holds
        await taken(mail, asked(1, *people))
        told = [mailboxes.mails.get_nowait()[0][0] for _ in range(mailboxes.mails.qsize())]
    assert told == people


@promise("approvals:mail-to-nobody")
async def test_a_mail_server_that_refuses_the_sender_is_told_by_its_words_and_the_setting():
    class Strict(Mailboxes):
        async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's name
            return f"553 5.7.1 {address} is not yours"

    async with mail_server(Strict()) as (url, _):
        mail = Mail(MailServer.of(url), SENDER, (), patience_s=0)
        with pytest.raises(NotTaken, match=r"553 5\.7\.1 <address> is not yours; .* and BACKSTAY_MAIL_FROM"):
            await mail.send(asked(1, ANA))


@promise("approvals:mail-bad-address")
async def test_what_is_said_of_an_address_that_does_not_exist_is_in_the_log_without_the_address():
    async with mail_server() as (url, mailboxes):
        mailboxes.refused = {BO: [f"550 5.1.1 <{BO}>: no such user\x1b[2J " + "x" * 400] * 9}
        with capture_logs() as logs:
            assert await taken(Mail(MailServer.of(url), SENDER, ()), asked(1, ANA, BO)) == 1
    (line,) = [line for line in logs if line["event"] == "mail.refused"]
    assert line["people"] == 1
    assert line["said"].startswith("550 5.1.1 <address>: no such user")
    assert line["said"].isprintable()
    assert len(line["said"]) <= 204


@promise("approvals:mail-to-nobody")
async def test_a_mail_that_the_server_wants_later_is_not_given_up_while_nobody_has_it():
    async with mail_server() as (url, mailboxes):
        mailboxes.refused = {person: ["450 4.7.1 greylisted, come back in some hours"] * 5 for person in (ANA, BO)}
        mail = Mail(MailServer.of(url), SENDER, (), patience_s=0)
        with pytest.raises(NotTaken, match=r"2 recipients are to be tried again: 450 4\.7\.1 greylisted"):
            await mail.send(asked(1, ANA, BO))
        assert await taken(mail, asked(1, ANA, BO)) == 5
        assert mailboxes.mails.qsize() == 2


@promise("approvals:mail-slow")
async def test_a_mail_server_that_thinks_long_about_a_mail_gets_it_once(monkeypatch):
    monkeypatch.setattr(mail_gateway, "TIMEOUT_S", 2)
    async with mail_server() as (url, mailboxes):
        mailboxes.thinks_s = 3
        await taken(Mail(MailServer.of(url), SENDER, ()), asked(1, ANA, BO))
        told = [mailboxes.mails.get_nowait()[0][0] for _ in range(mailboxes.mails.qsize())]
    assert sorted(told) == [ANA, BO]


@promise("approvals:mail-slow")
async def test_mails_that_a_server_thinks_about_keep_no_other_mail_waiting():
    async with mail_server() as (url, mailboxes):
        mailboxes.decided.clear()
        mail = Mail(MailServer.of(url), SENDER, ())
        sends = [asyncio.create_task(mail.send(asked(number, ANA))) for number in range(12)]
        for _ in sends:
            await mailboxes.next()
        mailboxes.decided.set()
        await asyncio.gather(*sends)


@promise("approvals:mail-slow")
async def test_a_mail_whose_server_never_says_that_it_takes_it_is_given_up_after_some_time(monkeypatch):
    monkeypatch.setattr(mail_gateway, "ANSWER_S", 0.2)
    async with mail_server() as (url, mailboxes):
        mailboxes.thinks_s = 150
        with capture_logs() as logs:
            await taken(Mail(MailServer.of(url), SENDER, (), patience_s=1), asked(1, ANA))
        assert not mailboxes.mails.empty()
    assert [line["people"] for line in logs if line["event"] == "mail.given_up"] == [1]


@promise("approvals:mail-to-all")
async def test_all_people_whom_a_rule_can_name_are_mailed():
    people = [f"p{number}@example.com" for number in range(200)]
    async with mail_server() as (url, mailboxes):
        await taken(Mail(MailServer.of(url), SENDER, ()), asked(1, *people))
        told = [mailboxes.mails.get_nowait()[0][0] for _ in range(mailboxes.mails.qsize())]
    assert told == people


@promise("approvals:mail-to-all")
def test_more_people_than_rules_name_are_told_in_the_log():
    mail = Mail(MailServer.of("smtp://127.0.0.1:9"), SENDER, ())
    people = [f"p{number}@example.com" for number in range(403)]
    with capture_logs() as logs:
        assert mail.people(asked(1, *people)) == people[:400]
    assert [(line["event"], line["left_out"]) for line in logs] == [("mail.too_many", 3)]


@promise("approvals:hostile-receivers")
async def test_a_mail_server_that_hangs_takes_no_thread_from_the_runs():
    async def hang(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    mail = Mail(MailServer.of(f"smtp://127.0.0.1:{port}"), SENDER, ())
    sends = [asyncio.create_task(mail.send(asked(number, "ana@example.com"))) for number in range(100)]
    async with asyncio.timeout(8):
        await asyncio.sleep(0)
        assert await asyncio.to_thread(lambda: "free") == "free"
    for send in sends:
        send.cancel()
    assert all(isinstance(end, asyncio.CancelledError | NotTaken) for end in await _ends(sends))
    server.close()


async def _ends(sends):
    return await asyncio.gather(*sends, return_exceptions=True)


@promise("approvals:mail-refused")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mail_from": None}, "BACKSTAY_MAIL_FROM: not set"),
        ({"url": None}, "BACKSTAY_URL: not set"),
        ({"smtp_url": "http://127.0.0.1"}, "BACKSTAY_SMTP_URL: not a mail server"),
        ({"smtp_url": "smtp://127.0.0.1:x"}, "BACKSTAY_SMTP_URL: not a mail server"),
        ({"smtp_url": "smtp://mail..example.com"}, "BACKSTAY_SMTP_URL: not a mail server"),
        ({"smtp_url": "smtp://backstay:gr%C3%BCn@127.0.0.1"}, "BACKSTAY_SMTP_URL: the user and the password"),
        ({"smtp_url": "smtp://j\u00f6rg:green@127.0.0.1"}, "BACKSTAY_SMTP_URL: the user and the password"),
        ({"mail_to": "ana"}, "'ana' is not a plain mail address"),
    ],
)
def test_settings_of_mail_that_cannot_work_are_refused_by_name(given, said, tmp_path):
    values = settings("smtp://127.0.0.1:25") | given
    loaded = Settings.load(None, home=tmp_path, **{name: value for name, value in values.items() if value is not None})
    with pytest.raises(SettingsInvalid) as caught:
        mail_of(loaded)
    assert said in str(caught.value)


@promise("approvals:mail-plain")
def test_only_plain_addresses_are_mailed():
    bad = [
        "ana",
        "@finance",
        "a@b,c@d",
        "a b@c",
        "Ana <ana@example.com>",
        "ana@example.com\nBcc: eve@x",
        "a@",
        "é@x.example",
        "=?utf-8?q?ana?=@x.example",
    ]
    assert [name for name in bad if is_address(name)] == []
    assert is_address("ana.o'neil+x@mail.example.com")
