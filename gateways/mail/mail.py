"""Mail people a link to what is asked of them. A mail holds no arguments, and nothing in it decides anything."""

import asyncio
import hashlib
import re
import smtplib
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.header import Header
from email.message import EmailMessage
from email.utils import parseaddr
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import structlog
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.notice import Notice, NoticeKind
from backstay.approvals.view import RequestView
from backstay.authority import principal
from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from backstay.shown import NOBODY, minute, one_line
from people.decide.looking import still_asked
from people.notices.delivering import NotTaken
from store.notices.requests import Requests

TIMEOUT_S = 10
ANSWER_S = 600
"""How long a mail server may take to say whether it takes a mail that it has whole, as RFC 5321 asks for."""
PATIENCE_S = 1800.0
"""How long a mail is tried again for people who may have it already; for others the outbox says how long."""
_THREADS = 16
"""How many notices are mailed at the same time; a server may think long about each."""
_MOST_CALLS = 10
_MOST_PEOPLE = 400
"""How many people are mailed about one request: as many as a rule can name first, and then in addition."""
_MOST_NOTICES = 10_000
"""How many notices that are not mailed to everybody yet are remembered; a forgotten one is mailed to all again."""
Mark = Callable[[str, str], str]
"""Tells what marks a question to a user about a server as ours."""
_LONGEST_PLAIN = 60
"""How long a word of a subject may be that is not encoded."""
_ENCODED = "=?"
"""How an encoded word of RFC 2047 begins."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_WORDS = 200
"""How much is told of what a mail server says."""
_ADDRESS = re.compile(r"<?[^\s<>()\[\],;:\"']+@[^\s<>()\[\],;:\"']+>?")
_BAD_ADDRESS = re.compile(r"5\.(1\.(1|3|6|10)|2\.1)\b")
"""How an answer begins that says of the address of a person that it takes no mail (RFC 3463, RFC 7505)."""
_SETTINGS = "BACKSTAY_SMTP_URL and BACKSTAY_MAIL_FROM say through which server and from whom"
log = structlog.get_logger("backstay.mail")
_TEXTS = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    autoescape=False,  # noqa: S701 - plain text
    keep_trailing_newline=True,
)


class MailRefusal(NamedTuple):
    """Hold how a mail server refuses a mail."""

    code: int
    words: str
    """What it says, without addresses."""

    @classmethod
    def of(cls, code: int, said: bytes | str) -> "MailRefusal":
        """Return what is to be told of an answer."""
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        return cls(code, one_line(_ADDRESS.sub("<address>", text), _MOST_WORDS))

    @property
    def final(self) -> bool:
        """Return whether it would be the same the next time."""
        return self.code >= 500

    @property
    def bad_address(self) -> bool:
        """Return whether it is for the address, so that no other setting would change it."""
        return self.final and bool(_BAD_ADDRESS.match(self.words))

    def __str__(self) -> str:
        return f"{self.code} {self.words}"


@dataclass
class MailRecipients:
    """Remember who has a mail about one notice, so that nobody gets it again because of somebody else."""

    began: float
    people: set[str] = field(default_factory=set)
    refused: dict[str, MailRefusal] = field(default_factory=dict)
    """How the server refused the others last."""
    unanswered: set[str] = field(default_factory=set)
    """Whose mail the server had whole without an answer; they may have it."""
    tries: Counter[str] = field(default_factory=Counter)
    busy: bool = False
    """Whether a thread is still at it; a mail server may be slower than who waits for it."""

    def left(self, people: Sequence[str], *, patient: bool) -> list[str]:
        """Return who of these is still to be mailed; `patient`: also who may have it.

        An address that does not exist must not keep the others from being told; but where the server takes no mail for
        anybody, it is not for the addresses, unless it says so. Who was tried before comes last: a server that hangs up
        on one person must not do so before the others.
        """
        refused = self.refused.items()
        done = {person for person, refusal in refused if refusal.bad_address or (refusal.final and self.people)}
        done |= self.people if patient else self.people | self.unanswered
        return sorted((person for person in people if person not in done), key=self.tries.__getitem__)

    def log_missed(self, people: Sequence[str], notice_id: str) -> None:
        """Log how many of these have no mail, as far as is known, and why."""
        missed = [person for person in people if person not in self.people]
        wrong = [refusal for person in missed if (refusal := self.refused.get(person)) and refusal.final]
        if wrong:
            log.warning("mail.refused", people=len(wrong), said=str(wrong[0]), notice=notice_id)
        if given_up := len(missed) - len(wrong):
            log.error("mail.given_up", people=given_up, notice=notice_id)

    def why(self, people: Sequence[str]) -> str:
        """Return why these are still to be mailed."""
        refusals = [self.refused[person] for person in people if person in self.refused]
        if len(refusals) == len(people) and all(refusal.final for refusal in refusals):
            return f"the mail server refuses everybody: {refusals[0]}; {_SETTINGS}"
        return ": ".join([f"{len(people)} recipients are to be tried again", *map(str, refusals[:1])])


class _Connection(smtplib.SMTP):
    """Wait longer for the answer to a mail than for others: a server that looks for viruses has the mail by then."""

    whole = False
    """Whether a whole mail was sent last, so that the server may take it though its answer is lost."""

    def send(self, s: Any) -> None:
        """Send a command, which is text, or a whole mail, which is bytes."""
        self.whole, is_mail = False, isinstance(s, bytes)
        if self.sock is not None:
            self.sock.settimeout(ANSWER_S if is_mail else TIMEOUT_S)
        super().send(s)
        self.whole = is_mail


class _TlsConnection(_Connection, smtplib.SMTP_SSL):
    """Do the same over TLS from the beginning."""


@dataclass(frozen=True)
class MailServer:
    """Name a mail server, and how to log in there."""

    host: str
    port: int
    tls: bool
    """Whether the connection begins with TLS; else it is asked for as soon as it stands."""
    user: str = ""
    password: str = ""

    @classmethod
    def of(cls, url: str) -> "MailServer":
        """Read `smtp://user:password@host:587` or `smtps://...`; raises SettingsInvalid."""
        parts = urlsplit(url)
        try:
            port = parts.port
            (parts.hostname or "").encode("idna")
        except ValueError:
            port = -1
        if parts.scheme not in {"smtp", "smtps"} or not parts.hostname or port == -1:
            raise SettingsInvalid(
                "BACKSTAY_SMTP_URL: not a mail server; write smtp://user:password@host:587 or smtps://"
            )
        tls = parts.scheme == "smtps"
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not (user + password).isascii():
            raise SettingsInvalid(
                "BACKSTAY_SMTP_URL: the user and the password must be ASCII; set others at the mail server"
            )
        return cls(parts.hostname, port or (465 if tls else 587), tls, user, password)

    def send(self, messages: Mapping[str, EmailMessage], served: MailRecipients, waits: Callable[[], bool]) -> None:
        """Send messages, by person, over one connection; a person who is not served then is to be tried again.

        Nobody is mailed any more once what is asked does not wait. Blocks. Raises OSError or smtplib.SMTPException.
        """
        context = ssl.create_default_context()
        with (
            _TlsConnection(self.host, self.port, timeout=TIMEOUT_S, context=context)
            if self.tls
            else _Connection(self.host, self.port, timeout=TIMEOUT_S)
        ) as connection:
            connection.ehlo()
            if not self.tls and self._far:
                # A server elsewhere that offers no TLS is refused: the question is nobody else's business.
                connection.starttls(context=context)
                connection.ehlo()
            if self.user:
                connection.login(self.user, self.password)
            for person, message in messages.items():
                if not waits():
                    return
                served.tries[person] += 1
                try:
                    refusal = _refusal(connection, message)
                except smtplib.SMTPServerDisconnected:
                    if connection.whole:
                        served.unanswered.add(person)
                    raise
                if refusal is None:
                    served.people.add(person)
                else:
                    served.refused[person] = refusal
                if connection.sock is None:
                    # It has hung up on this person; the others come first the next time.
                    return

    @property
    def _far(self) -> bool:
        return self.host not in _LOOPBACK


class Mail:
    """Mail a link to those who may decide, and to the addresses that are told of what anybody may decide."""

    name = "mail"

    def __init__(
        self,
        server: MailServer,
        sender: str,
        told: Sequence[str],
        *,
        known: frozenset[str] | None = None,
        patience_s: float = PATIENCE_S,
        requests: Requests | None = None,
        mark: Mark | None = None,
    ) -> None:
        """`told`: who is mailed where a request names nobody; `known`: who may be, beside them; None for everybody.

        `requests` say what still waits when a mail goes out; without them, everything does. `mark` tells which request
        is for a sign-in of the user of its run, who alone can do it and is mailed, too.
        """
        self._server = server
        self._sender = sender
        self._told = tuple(map(principal, told))
        self._known = known
        self._patience_s = patience_s
        self._requests = requests
        self._mark = mark
        self._notices: dict[str, MailRecipients] = {}
        # A mail server that hangs must not take the threads that the worker needs for runs.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="mail")

    @property
    def where(self) -> str:
        """Return the mail server, without its password."""
        return f"{self._server.host}:{self._server.port}"

    async def send(self, notice: Notice) -> None:
        """Mail what is asked; anything else needs no mail. Raises NotTaken."""
        people = self.people(notice)
        if not people or not await self._waits(notice):
            self._notices.pop(notice.id, None)
            return
        served = self._served(notice.id)
        if served.busy:
            raise NotTaken("the mail server is still at it", holds=False)
        begun, tried = served.tries.total(), served.left(people, patient=self._patient(served))
        fault = await self._send(notice, tried, served)
        if later := served.left(people, patient=self._patient(served)):
            # Where it refuses the people of this notice, those of the next one, such as an escalation, are others.
            raise NotTaken(fault or served.why(later), holds=served.tries.total() == begun)
        served.log_missed(people, notice.id)
        self._notices.pop(notice.id, None)

    def _patient(self, served: MailRecipients) -> bool:
        return time.monotonic() - served.began < self._patience_s

    async def _waits(self, notice: Notice) -> bool:
        """Return whether what is asked still waits; a mail server that was away comes back long after."""
        if self._requests is None:
            return True
        row = await self._requests.get(notice.workflow_id, notice.request_id, notice.run_id)
        return row is None or row.state == "open"

    async def _send(self, notice: Notice, people: Sequence[str], served: MailRecipients) -> str:
        """Write and send messages in a thread; return what kept it from going on, or nothing."""
        if not people:
            return ""
        served.busy = True
        sending = self._threads.submit(self._write, notice, people, served, asyncio.get_running_loop())
        sending.add_done_callback(lambda _: setattr(served, "busy", False))
        try:
            await asyncio.wrap_future(sending)
        except (OSError, smtplib.SMTPException) as error:
            return _fault(error)
        return ""

    def _write(
        self, notice: Notice, people: Sequence[str], served: MailRecipients, loop: asyncio.AbstractEventLoop
    ) -> None:
        def waits() -> bool:
            if self._requests is None:
                return True
            return asyncio.run_coroutine_threadsafe(self._waits(notice), loop).result(TIMEOUT_S)

        self._server.send({person: _message(notice, self._sender, person) for person in people}, served, waits)

    def _served(self, notice_id: str) -> MailRecipients:
        served = self._notices.setdefault(notice_id, MailRecipients(time.monotonic()))
        while len(self._notices) > _MOST_NOTICES:
            del self._notices[next(iter(self._notices))]
        return served

    def people(self, notice: Notice) -> list[str]:
        """Return whom to mail about a notice."""
        if notice.event is not NoticeKind.ASKED or notice.request is None or notice.links.page is None:
            return []
        approvers, escalated = notice.request.get("approvers", ()), notice.request.get("escalated_to", ())
        # The others have been asked before; only a reminder is for them, too.
        asked_before = (approvers or self._told) if escalated else approvers
        named = escalated if escalated and not notice.reminder else [*asked_before, *escalated]
        # A task's own policy may name anybody, and whoever starts runs must not mail strangers in our name.
        known = named if self._known is None else self._known.union(self._told).intersection(named)
        wanted = [str(person) for person in named if person in known] if named else self._told
        wanted = [*self._who_signs_in(notice), *wanted]
        request = ApprovalRequest.model_validate(notice.request)
        asked = [person for person in dict.fromkeys(wanted) if is_address(person) and still_asked(request, person)]
        if len(asked) > _MOST_PEOPLE:
            log.warning("mail.too_many", left_out=len(asked) - _MOST_PEOPLE, notice=notice.id)
        return asked[:_MOST_PEOPLE]

    def _who_signs_in(self, notice: Notice) -> list[str]:
        """Return the user of a run that waits for their sign-in.

        Only a run asks for it whose start that user has proved, or a service that may act for them.
        """
        if self._mark is None or notice.user_id in {"", NOBODY}:
            return []
        request = ApprovalRequest.model_validate(notice.request)
        providers = {call.tool.partition(".")[0] for call in request.calls}
        marks = (self._mark(notice.user_id, provider) for provider in providers)
        return [notice.user_id] if any(map(request.wants_sign_in, marks)) else []


def _refusal(connection: smtplib.SMTP, message: EmailMessage) -> MailRefusal | None:
    """Send one message to its person; return how the server refuses it, or nothing where it takes it."""
    try:
        connection.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        return next(MailRefusal.of(code, said) for code, said in error.recipients.values())
    except smtplib.SMTPDataError as error:
        _end_mail(connection, error.smtp_code)
        return MailRefusal.of(error.smtp_code, error.smtp_error)
    return None


def _end_mail(connection: smtplib.SMTP, code: int) -> None:
    """Leave no mail open that the server did not let begin, as smtplib does: the next one would be within it."""
    if code == 421:
        connection.close()
        return
    with suppress(smtplib.SMTPServerDisconnected):
        connection.rset()


def _fault(error: Exception) -> str:
    """Return what keeps all mail from being taken."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        # Its words may repeat what was sent.
        return f"the mail server refuses the user or the password of BACKSTAY_SMTP_URL ({error.smtp_code})"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the mail server answers {MailRefusal.of(error.smtp_code, error.smtp_error)}; {_SETTINGS}"
    return type(error).__name__


def is_address(person: str) -> bool:
    """Return whether mail can be sent to this name as it is; a name from a policy may be anything."""
    plain = person.isascii() and person.isprintable() and not set(person) & set(' ,;:<>()"\\')
    return (
        plain
        and _ENCODED not in person
        and person.count("@") == 1
        and parseaddr(person)[1] == person
        and all(person.split("@"))
    )


def _message(notice: Notice, sender: str, person: str) -> EmailMessage:
    request: dict[str, Any] = notice.request or {}
    question = one_line(str(request.get("question", "")), 300)
    message = EmailMessage()
    escalated = bool(request.get("escalated")) and not notice.reminder
    in_addition = escalated and person in request.get("escalated_to", ())
    again = "Reminder: " if escalated or notice.reminder else ""
    mark = "Escalated: " if in_addition else again
    message.set_raw("Subject", _folded(_header(f"{mark}{question}", 150).strip()))
    message["From"] = sender
    message["To"] = person
    # When it was asked; a mail that waited for its mail server is not newer for that.
    message["Date"] = datetime.fromisoformat(notice.at)
    # The same for every copy of a notice, so that mailboxes can tell a repeat.
    message["Message-ID"] = f"<{_hash(notice.id, person)}@backstay>"
    about = f"<{_hash(notice.workflow_id, notice.run_id, notice.request_id)}@backstay>"
    message["References"] = about
    message["Auto-Submitted"] = "auto-generated"
    view = RequestView.of(ApprovalRequest.model_validate(request))
    counts = Counter(call.tool for call in view.calls if call.asked)
    tools = ", ".join(f"{tool} ({count} times)" if count > 1 else tool for tool, count in counts.items())
    text = _TEXTS.get_template("asked.txt.j2").render(
        question=question,
        above=view.request.above,
        task=one_line(notice.task, 200),
        user="" if notice.user_id == NOBODY else one_line(notice.user_id, 200),
        tools=one_line(tools, 500),
        calls=[*_call_lines(view)],
        expires=minute(request.get("expires_at") or ""),
        link=notice.links.page,
        reminder=notice.reminder,
        escalated=escalated,
        in_addition=in_addition,
    )
    message.set_content(text)
    return message


def _header(text: str, limit: int) -> str:
    """Return text as one line for a header, in which mail programs would decode an encoded word."""
    return one_line(text, limit).replace(_ENCODED, "=<U+003F>")


def _folded(subject: str) -> str:
    """Return a subject as lines of a header that hold each of its characters.

    Where encoded words and plain ones are mixed, and where a word is too long for a line, Python drops or adds spaces.
    """
    plain = subject.isascii() and max(map(len, subject.split(" "))) <= _LONGEST_PLAIN
    return Header(subject, "us-ascii" if plain else "utf-8", header_name="Subject").encode()


def _call_lines(view: RequestView) -> Iterator[str]:
    """Yield what is to be known of each call beside its arguments, which no mail holds; of many, the first ones."""
    asked = [call for call in view.calls if call.asked]
    for call in asked[:_MOST_CALLS]:
        yield next(line.text for line in call.lines() if line.kind == "call")
        if warned := call.sources(minded=True):
            yield f"    Warning: {warned}"
        if said := call.sources(minded=False):
            yield f"    {said}"
        if call.writes:
            yield f"    {'can be undone' if call.undoable else 'CANNOT BE UNDONE'}"
    if len(asked) > _MOST_CALLS:
        yield f"and {len(asked) - _MOST_CALLS} more"


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def mail_of(
    settings: Settings,
    *,
    known: frozenset[str] | None = None,
    requests: Requests | None = None,
    mark: Mark | None = None,
) -> list[Mail]:
    """Return the receiver that the settings name, if they do; raises SettingsInvalid naming what is missing."""
    if settings.smtp_url is None:
        return []
    if settings.mail_from is None:
        raise SettingsInvalid("BACKSTAY_MAIL_FROM: not set; name the address that mails come from")
    if settings.url is None:
        raise SettingsInvalid("BACKSTAY_URL: not set, and a mail is a link to the page of approvals; set its address")
    for name in (settings.mail_from, *settings.mail_to):
        if not is_address(name):
            raise SettingsInvalid(f"{one_line(name, 100)!r} is not a plain mail address; write ana@example.com")
    server = MailServer.of(settings.smtp_url.get_secret_value())
    return [Mail(server, settings.mail_from, settings.mail_to, known=known, requests=requests, mark=mark)]
