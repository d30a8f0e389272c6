"""What commands read of a memory: whose it is, how an item is shown, and its last messages."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from backstay.authority import principal
from backstay.errors import RunNotFound, SettingsInvalid
from backstay.memory.item import RecalledItem
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.terminal.session import account_name, open_store

if TYPE_CHECKING:
    from store.store import Store


Whose = Annotated[str | None, Parameter(name="--user", help="Whose memory; that of your account's name by default.")]
_LATELY = 20
"""Answers among which the last session is looked for."""
_SHOWN = 3
_SOURCES = {"own": "own", "others": "others' words", "model": "a model's words"}


class ResumedSession(NamedTuple):
    """Hold the session of a user's last remembered run, and what its runs answered, the oldest first."""

    session: str
    answers: list[RecalledItem]


def owner_named(user: str | None) -> str:
    """Return whose memory is meant, in the canonical form of a name."""
    return principal(user or account_name())


def lines_of(recalled: RecalledItem, *, whole: bool = False) -> Iterator[str]:
    """Yield how an item is shown: a line that says what it is, and its text."""
    told = recalled.told()
    who = [f"by {told['written_by']}" if told["written_by"] else "", f"({_SOURCES[told['source']]})"]
    who += [f"approved by {told['approved_by']}"] if "approved_by" in told else []
    what = f"{told['kind']} {told['tool']}" if "tool" in told else told["kind"]
    yield " ".join([f"{told['id']}:", told["date"], told["run"], what, *filter(None, who)])
    for line in recalled.text.splitlines() if whole else [one_line(recalled.text, 300)]:
        yield f"  {line}"


async def found_item(store: "Store", owner: str, number: int) -> RecalledItem:
    """Return one item of a user; raises RunNotFound."""
    found = await store.memory.show(owner, number)
    if found is None:
        raise RunNotFound(f"{number}: there is no such item in the memory of {one_line(owner, 80)}")
    return found


def resumed(session: str, answers: Sequence[RecalledItem]) -> Iterator[str]:
    """Yield what a chat shows as it goes on, then the answers, each in a line."""
    yield f"session {session} went on until {answers[-1].told()['date'] if answers else 'lately'}; its last answers:"
    for recalled in answers:
        yield f"{recalled.told()['date']}: {one_line(recalled.text, 200)}"


async def last_session(settings: Settings, user: str | None) -> ResumedSession:
    """Return the session of which something was remembered last; raises SettingsInvalid where there is none."""
    if not settings.has_store:
        raise SettingsInvalid("--resume: the worker's store is not here; go on with: --session NAME")
    owner = owner_named(user)
    async with open_store(settings) as store:
        lately = await store.memory.items.newest(owner, kind="final_answer", limit=_LATELY)
        session = next((item.session_id for item in lately if item.session_id), None)
        if session is None:
            raise SettingsInvalid(
                f"--resume: nothing of a session is remembered for {one_line(owner, 80)}; the profile must say "
                "memory: {write: true}, and BACKSTAY_APPROVER_KEY must be set here. Go on with: --session NAME"
            )
        answers = await store.memory.newest(owner, kind="final_answer", session_id=session, limit=_SHOWN)
    return ResumedSession(session, answers[::-1])
