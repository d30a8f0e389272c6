"""One line of a policy."""

import difflib
import json
from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt, model_validator

from backstay.authority import is_plain, principal
from backstay.errors import PolicyInvalid
from backstay.frozen import Frozen
from backstay.policies.condition import Conditions, Judgement, judge, parse_conditions
from backstay.policies.glob import matches
from backstay.policies.operators import FROM
from backstay.provenance.source import ArgumentSources
from backstay.quoting import named, quoted
from backstay.shown import one_line

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_YEAR = 366 * 86400

OnExpiry = Literal["reject", "escalate", "fail"]
"""What happens when nobody decides in time."""


def parse_duration(data: Any) -> float:
    """Return seconds for "45s", "30m", "24h", "7d" or a number of seconds; raises ValueError naming the fix."""
    seconds: float | None = None
    if isinstance(data, int | float) and not isinstance(data, bool):
        seconds = float(data) if abs(data) <= _YEAR else None
    elif isinstance(data, str) and data.isascii() and data[-1:] in _UNITS and data[:-1].isdecimal() and len(data) < 12:
        seconds = float(int(data[:-1]) * _UNITS[data[-1]])
    if seconds is None or not 0 < seconds <= _YEAR:
        raise ValueError(f"{quoted(data)} is not a duration; write 45s, 30m, 24h, 7d or seconds, above 0, at most 366d")
    return seconds


def clip_line(line: str, longest: int = 500) -> str:
    """Return the line, cut if it is too long to read."""
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _parse_pattern(pattern: str) -> str:
    if not pattern.isascii() or not pattern.isprintable() or not 0 < len(pattern) <= 200:
        raise ValueError("a tool pattern is 1 to 200 printable ASCII characters such as gmail.send_* or *.delete_*")
    odd = sorted({sign for sign in pattern if sign in ' ()[]{}!,;"'})
    if odd:
        raise ValueError(
            f"only * and ? are special in a tool pattern; {' '.join(map(repr, odd))} cannot match a tool's name"
        )
    if "." not in pattern and "*" not in pattern:
        raise ValueError(f"tools are named provider.tool; write *.{pattern} or {pattern}.*")
    return pattern


def _parse_person(name: str) -> str:
    """Return a person in the canonical form, and the name of a group as it is."""
    if name.startswith("@"):
        return name
    if not is_plain(name):
        raise ValueError(f"{principal(name)!r} holds signs that cannot be seen or that pass for others; write it again")
    return principal(name)


def _parse_day(data: Any) -> str:
    """Return a day as 2027-02-28; raises ValueError naming the fix."""
    try:
        return data.isoformat() if type(data) is date else date.fromisoformat(data).isoformat()
    except (TypeError, ValueError):
        raise ValueError(f"{quoted(data)} is not a day; write it as 2027-02-28") from None


def _parse_conditions(data: Any) -> Conditions | None:
    return None if data is None else parse_conditions(data)


Person = Annotated[str, AfterValidator(_parse_person)]
"""Whom a policy names: a person, or a group by its name."""
Seconds = Annotated[float, BeforeValidator(parse_duration, json_schema_input_type=float | str)]
Given = Annotated[Conditions | None, BeforeValidator(_parse_conditions, json_schema_input_type=dict[str, Any] | None)]
Only = Annotated[tuple[str, ...], Field(max_length=200, exclude_if=lambda names: not names)]
Day = Annotated[str, BeforeValidator(_parse_day), Field(exclude_if=lambda day: not day)]


class Rule(Frozen):
    """Match calls by tool and arguments; only ask rules say who may decide."""

    tool: Annotated[str, AfterValidator(_parse_pattern)]
    when: Given = None
    """All must hold, or the rule does not apply."""
    unless: Given = None
    """When all hold, the rule does not apply."""
    only: Only = ()
    """The only arguments that a call may have, by their top-level names; none named: any arguments."""
    until: Day = ""
    """The last day on which the rule applies, in UTC; without it, it does not end."""
    approvers: tuple[Person, ...] = Field(default=(), max_length=200)
    quorum: StrictInt = Field(default=1, ge=1, le=100)
    timeout: Seconds | None = None
    on_expiry: OnExpiry = "reject"
    no_self_approval: StrictBool = False
    remind_after: Seconds | None = None
    """How long nothing happens before people are reminded, and reminded again."""
    escalate_to: tuple[Person, ...] = Field(default=(), max_length=200)
    """Who may decide, too, when nobody did in time and it is asked again."""
    optional: StrictBool = Field(default=False, exclude_if=lambda optional: not optional)
    """Whether the tool may be missing; it changes nothing but what a check of the policy says."""

    @model_validator(mode="before")
    @classmethod
    def _from_pattern(cls, data: Any) -> Any:
        return {"tool": data} if isinstance(data, str) else data

    @property
    def line(self) -> str:
        """Return the rule in one line, as people read it."""
        parts = [self.tool]
        if self.when is not None:
            parts.append(f"when {_spell(self.when)}")
        if self.unless is not None:
            parts.append(f"unless {_spell(self.unless)}")
        if self.only:
            parts.append(f"with no argument but {', '.join(map(named, self.only))}")
        if self.until:
            parts.append(f"until {self.until}")
        return clip_line(" ".join(parts))

    @property
    def asks_where_from(self) -> bool:
        """Return whether a condition of the rule looks at where a value came from."""
        return any(FROM in operators for given in (self.when, self.unless) if given for operators in given.values())

    def applies(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        allows: bool,
        sources: ArgumentSources | None = None,
        whole: bool = False,
    ) -> tuple[Judgement, str]:
        """Return whether the rule applies to a call, and name the path of an argument that leaves it open.

        `allows` says that the rule is an allow rule, `whole` that no argument stands for what comes later.
        """
        if not matches(self.tool, tool) or (self.only and not arguments.keys() <= {*self.only}):
            return Judgement.FAILS, ""
        when, path = Judgement.HOLDS, ""
        if self.when is not None:
            when, path = judge(self.when, arguments, widens=allows, sources=sources, whole=whole)
        if when is Judgement.FAILS or self.unless is None:
            return when, path
        exempt, exempt_path = judge(self.unless, arguments, widens=not allows, sources=sources, whole=whole)
        if exempt in (Judgement.HOLDS, Judgement.DOUBTFUL):
            return Judgement.FAILS, ""
        if exempt.is_open and exempt <= when:
            return exempt, exempt_path
        return when, path

    def is_over(self, today: str) -> bool:
        """Return whether its last day has passed; also where nobody knows which day it is."""
        return bool(self.until) and not "" < today <= self.until

    def check(self, where: str, section: str) -> None:
        """Raise PolicyInvalid where the rule has fields that its section does not have."""
        if not section.endswith("ask") and self.asks_in_its_own_way:
            raise PolicyInvalid(
                f"{where}: {self.tool} names approvers, quorum, timeout, on_expiry, no_self_approval, remind_after or "
                "escalate_to, which only ask rules have; move the rule to ask or remove them"
            )
        if section != "allow" and (self.only or self.until):
            raise PolicyInvalid(
                f"{where}: {self.tool} has only or until, with which a rule would deny or ask less than it seems to; "
                "move the rule to allow or remove them"
            )

    @property
    def asks_in_its_own_way(self) -> bool:
        """Return whether the rule has fields that only matter when people are asked."""
        return self.model_copy(update={"when": None, "unless": None, "only": (), "until": ""}) != self.bare

    @property
    def bare(self) -> Self:
        """Return the rule with nothing but its pattern."""
        return type(self)(tool=self.tool, optional=self.optional)


def _spell(conditions: Conditions) -> str:
    # ASCII JSON: a task's own policy is hostile text too, and this line is shown to people.
    return " and ".join(
        f"{path} {operator} {clip_line(json.dumps(operand, sort_keys=True), 80)}"
        for path, operators in conditions.items()
        for operator, operand in operators.items()
    )


def check_group(name: str, persons: tuple[str, ...]) -> None:
    """Raise PolicyInvalid for a group that names nobody, or no persons."""
    if not name.startswith("@") or len(name) < 2:
        raise PolicyInvalid(
            f"groups: {named(name)!r} is not the name of a group; write it with a leading @, such as @finance"
        )
    if not persons:
        raise PolicyInvalid(f"groups.{name}: empty; name at least one person")
    for person in persons:
        if not person.strip() or person.startswith("@"):
            raise PolicyInvalid(f"groups.{named(name)}: {named(person)!r} is not a person; list persons, not groups")


def explain(fault: Any, fields_at: Callable[[Sequence[int | str]], list[str]]) -> str:
    """Return one line for one fault that pydantic found; `fields_at` names what may be written at a place."""
    path = fault["loc"]
    field = one_line(".".join(map(named, path)), 200) or "Policy"
    shown = quoted(fault.get("input"), field)
    match fault["type"]:
        case "extra_forbidden":
            known = fields_at(path[:-1])
            near = difflib.get_close_matches(str(path[-1]), known, 1)
            if near:
                return f"{field}: unknown field; did you mean {near[0]!r}?"
            return f"{field}: unknown field (value {shown}); remove it or correct its name (known: {', '.join(known)})"
        case "missing":
            return f"{field}: required field is missing; add it"
        case _:
            return f"{field}: {fault['msg'].replace('Value error, ', '')} (value {shown})"
