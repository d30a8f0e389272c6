"""The sections of a policy beside its rules: the defaults, undo, secrets, and whose words count beyond a run."""

from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, StrictBool, StrictInt

from backstay.errors import PolicyInvalid
from backstay.frozen import Frozen
from backstay.policies.rule import Person, Rule
from backstay.policies.ruling import Permission
from backstay.tools.tool import Safety


def _or_empty(data: Any) -> Any:
    """Read a key whose lines are all commented out as absent."""
    if isinstance(data, str | dict):
        raise ValueError("not a list; write [...] or one rule per line with a leading dash")  # noqa: TRY004 - pydantic
    return () if data is None else data


def or_nothing(data: Any) -> Any:
    """Read a key below which everything is commented out as absent."""
    return {} if data is None else data


def refuse_emptied(data: Any) -> None:
    """Raise PolicyInvalid for a rule that a person has written with a condition of which nothing is left.

    Policies are stored with null where a rule has no condition; from a person it would let pass what the lines that
    are commented out kept back.
    """
    policy: dict[str, Any] = data if isinstance(data, dict) else {}
    for prefix, section in (("", policy), ("undo.", policy.get("undo"))):
        for name in ("deny", "ask", "allow"):
            rules: Any = section.get(name) if isinstance(section, dict) else None
            for index, rule in enumerate(rules if isinstance(rules, list) else ()):
                for field in ("when", "unless"):
                    if isinstance(rule, dict) and field in rule and rule[field] is None:
                        raise PolicyInvalid(
                            f"{prefix}{name}[{index}].{field}: empty, so the rule would have no such condition; "
                            "write one, or remove the key"
                        )


Rules = Annotated[
    tuple[Rule, ...],
    BeforeValidator(_or_empty, json_schema_input_type=list[Rule | str] | None),
    Field(max_length=1000),
]


class Defaults(Frozen):
    """Decide by Safety where no rule applies."""

    read_only: Permission = "allow"
    write_safe: Permission = "ask"
    restricted_write: Permission = "ask"
    read_only_egress: Permission = "ask"
    """For read-only tools that reach out, unless what leaves comes from the task, a person or the operator."""

    def of(self, safety: Safety) -> Permission:
        """Return the default for a class of tools."""
        return cast("Permission", getattr(self, safety.value))


class UndoPolicy(Frozen):
    """Rule on compensations. The operator declares them, so they are allowed where no rule applies."""

    default: Permission = "allow"
    deny: Rules = ()
    ask: Rules = ()
    allow: Rules = ()


class RevealPolicy(Frozen):
    """Say who may be shown a secret; its rules name providers and kinds of secrets, such as `mail.*`.

    Where no rule applies, that is who decides about the run as a whole.
    """

    deny: Rules = ()
    """Shown to nobody."""
    ask: Rules = ()
    """Shown to the people whom the rule names."""


class Accepting(Frozen):
    """Say whose decisions may be remembered beyond the run; without it, only who can write the policy's file."""

    approvers: tuple[Person, ...] = Field(min_length=1, max_length=200)
    quorum: StrictInt = Field(default=1, ge=1, le=100)
    no_self_approval: StrictBool = False


class Scheduling(Frozen):
    """Say whose schedules and triggers start runs; without it, those of everybody who has proved to have added them."""

    people: tuple[Person, ...] = Field(min_length=1, max_length=200)


class Delegating(Frozen):
    """Say how far sub-runs may go; a policy over this one can lower these numbers only."""

    max_depth: StrictInt = Field(default=2, ge=0, le=3)
    """How deep sub-runs may delegate in turn; 0: nobody delegates."""
    max_runs: StrictInt = Field(default=8, ge=1, le=50)
    """How many sub-runs one run may have in all."""
