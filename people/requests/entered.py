"""The entries of a person about a request, as every door hands them on, and the refusal of an entry that cannot be."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.fields import field_name
from backstay.shown import one_line

_WHY = 300
NOTHING: Final = object()
"""What stands where nothing was entered, since null is something."""


@dataclass(frozen=True)
class FixedValue:
    """Hold the value of a field that needs no reading, such as a default."""

    value: Any


Typed = str | tuple[int, ...] | FixedValue
"""What was entered in one field: the text, of choices the positions of those that were chosen, or the value itself."""
Entry = str | tuple[str, ...]
"""What an entry is called: its name, or of a field of an answer the path, since two paths may read alike."""


class EntryRefused(DecisionInvalid):
    """Something that was entered cannot be sent."""

    def __init__(self, entries: Mapping[Entry, str]) -> None:
        """Say of each entry what is wrong and what to do."""
        # The description of a fault may quote what a tool's server wrote.
        self.entries = {entry: one_line(why, _WHY) for entry, why in entries.items()}
        super().__init__("; ".join(f"{entry_name(entry)}: {why}" for entry, why in self.entries.items()))


def entry_name(entry: Entry) -> str:
    """Return the name of an entry as people read it."""
    return one_line(entry if isinstance(entry, str) else field_name(entry), 80)


class Edit(NamedTuple):
    """Hold what a person wants changed of one call."""

    call: int
    arguments: dict[str, Any]
    """Those with another value than before, and new ones."""
    without: tuple[str, ...] = ()
    """Those that are left out."""


class FormEntry(NamedTuple):
    """Hold what a person entered: the choice that they made, and what they typed or ticked beside it."""

    choice: str
    """One of the form's choices."""
    comment: str = ""
    left_out: Collection[int] = ()
    """Of an approval: the calls that are not to be made."""
    calls: Mapping[Any, Any] = {}
    """Of an approval: verdicts of single calls, as a program writes them."""
    option: str | None = None
    """How a plan is approved; None where what is left out says it."""
    plan_id: str | None = None
    no_processes: bool = False
    limits: Mapping[str, str | float] = {}
    """What the steps of a plan get less of, by the field of the limit."""
    remember: str | None = None
    remember_arguments: str | None = None
    answer: Any = NOTHING
    """The answer as a whole, where it is not entered in fields."""
    fields: Mapping[tuple[str, ...], Typed] = {}
    """What was entered in the fields of an answer, by their paths."""
    edits: tuple[Edit, ...] = ()
    """What is changed of calls, each of them once."""


def remembering(how: str, arguments: str, comment: str = "") -> FormEntry:
    """Return the choice of somebody who wants such calls decided alike from now on: `never` rejects them.

    Raises EntryRefused where they do not say how.
    """
    if not how:
        raise EntryRefused({"remember": "choose for how long"})
    if how == "never":
        return FormEntry("reject_never", comment, remember_arguments=arguments)
    return FormEntry("approve", comment, remember=how, remember_arguments=arguments)
