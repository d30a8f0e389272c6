"""The arguments that several commands share, each described once."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from backstay.canonical import read_json
from backstay.errors import SettingsInvalid, TaskInvalid

Workflow = Annotated[
    str, Parameter(help="Workflow ID of the run, the beginning of it, or `last` for the newest run but undos.")
]
Asking = Annotated[
    str,
    Parameter(help="Workflow ID of the run, the beginning of it, or `last` for the newest run that waits for people."),
]
Request = Annotated[str, Parameter(help="ID of the request, such as r1.")]
By = Annotated[str | None, Parameter(help="Your name, which is recorded; the name of your account by default.")]
ArgsDigest = Annotated[
    str | None,
    Parameter(help="Digest that was shown; refuses the decision when the request is about other arguments."),
]
Yes = Annotated[bool, Parameter(negative="", help="Approve calls without asking.")]
Remember = Annotated[
    Literal["run", "session", "always"] | None,
    Parameter(help="Approve such calls from now on: in this run, in its session, or in every run of the same user."),
]
RememberArguments = Annotated[
    Literal["these", "alike", "any"],
    Parameter(help="Whether it is remembered for exactly the same arguments, the same places with any texts, or any."),
]
Comment = Annotated[str, Parameter(help="Why; it is recorded, and the model reads it.")]
User = Annotated[str, Parameter(help="The user that the run works for; users may see different tools.")]
Output = Annotated[
    Literal["text", "json", "ndjson"], Parameter(help="Format of the result on stdout; ndjson is one object per line.")
]
OutputFile = Annotated[Path | None, Parameter(help="Write the result to this file instead of stdout.")]


def _require_some(_type: Any, limit: Any) -> None:
    if limit < 1:
        raise SettingsInvalid("--limit: must be 1 or more")


Limit = Annotated[int, Parameter(validator=_require_some)]
"""How much a list has at most."""


def duration(text: str, flag: str) -> float:
    """Return the seconds of a duration such as 30d, 12h or 90m that a flag holds; raises SettingsInvalid."""
    from backstay.policies.rule import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise SettingsInvalid(f"{flag}: {error}") from None


def today() -> str:
    """Return the day, in UTC, by which rules of a policy end."""
    return datetime.now(UTC).date().isoformat()


def json_object(text: str, flag: str, example: str) -> dict[str, Any]:
    """Read the JSON object that a flag holds; raises TaskInvalid naming flag, fault and an example."""
    try:
        data = read_json(text)
    except ValueError as error:
        raise TaskInvalid(f"{flag}: invalid JSON ({error}); give an object such as {example}") from None
    if not isinstance(data, dict):
        raise TaskInvalid(f"{flag}: expected a JSON object, got {text[:80]}; give an object such as {example}")
    return data
