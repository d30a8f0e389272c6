"""What a person can have remembered of one call beside its very same arguments: its places, with any texts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from backstay.canonical import canonical
from backstay.errors import TaskInvalid
from backstay.policies.accepted import LONGEST_CONDITIONS
from backstay.policies.condition import Conditions
from backstay.policies.learning.parts import exactly, is_of_others, is_path, origin_of, origins_of, role_of
from backstay.policies.rule import Rule
from backstay.provenance.source import Source


class Alike(NamedTuple):
    """Hold which calls count as alike."""

    when: Conditions | None
    only: tuple[str, ...]

    @property
    def like(self) -> dict[str, Any]:
        """Return what a decision says of it, so that nothing else is remembered than was shown."""
        return {"when": self.when, "only": [*self.only]}

    @property
    def words(self) -> str:
        """Return it as people read it, with every bound; the caller that draws it shows its content."""
        when = self.when or {}
        texts = [name for name in self.only if name not in when]
        parts = [*(_told(name, operators) for name, operators in when.items())]
        parts += [f"any text as {', '.join(texts)}"] if texts else []
        return "; ".join([*parts, "no other argument"])


def alike(arguments: Mapping[str, Any], sources: Mapping[str, Sequence[Source]]) -> Alike | str:
    """Return which calls are like this one, or why none are; `sources` says by pointer where its arguments came from.

    Where it goes, what it acts on and its settings are the very same, and come from the same places. A number is at
    most as far from zero. Texts may be any.
    """
    told: dict[str, tuple[Source, ...]] = {}
    for pointer, found in sources.items():
        name = pointer.removeprefix("/").partition("/")[0].replace("~1", "/").replace("~0", "~")
        told[name] = (*told.get(name, ()), *found)
    every = [source for found in told.values() for source in found]
    if not arguments or not all(map(is_path, arguments)):
        return "a line cannot name its arguments"
    if any(map(is_of_others, every)) or not all(map(origin_of, every)):
        return "arguments came from what others wrote, or from a program"
    when: dict[str, Any] = {}
    for name, value in sorted(arguments.items()):
        match role_of(name, value):
            case "text":
                continue
            case "number":
                when[name] = {"gte": min(value, 0), "lte": max(value, 0)}
            case _:
                origins = origins_of(value, told.get(name, ()))
                when[name] = exactly([value]) | ({"from": [*origins]} if origins else {})
    try:
        rule = Rule.admit({"tool": "*", "when": when or None, "only": sorted(arguments)})
    except (TaskInvalid, ValueError):
        return "no condition can hold these arguments"
    if len(canonical([rule.when, rule.only])) > LONGEST_CONDITIONS:
        return "the line would be too long to read"
    return Alike(rule.when, rule.only)


def _told(name: str, operators: Mapping[str, Any]) -> str:
    if "lte" in operators:
        return f"{name} from {canonical(operators['gte'])} to {canonical(operators['lte'])}"
    where = f", from {' or '.join(operators['from'])}" if "from" in operators else ""
    return f"{name} is {canonical(operators['equals'])}{where}"
