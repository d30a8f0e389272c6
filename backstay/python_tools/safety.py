"""Let operators check calls by Python code, which can deny a call or have a person asked, and allows none."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from backstay.provenance.source import leaves
from backstay.provenance.targets import shape_of
from backstay.tools.tool import Safety

_MARK = "__backstay_safety__"
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Ask:
    """Have a person asked, whatever the policy allows."""

    why: str


@dataclass(frozen=True, slots=True)
class Deny:
    """Deny the call."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCall:
    """Hold a call that is about to be made, with everything in its arguments resolved."""

    tool: str
    """`provider.tool`."""
    safety: Safety = Safety.RESTRICTED_WRITE
    arguments: dict[str, Any] = field(default_factory=dict, repr=False)
    user_id: str = "singleton"
    session_id: str = ""

    @property
    def targets(self) -> dict[str, Any]:
        """Return the arguments that say where the call goes, by JSON pointer: addresses, accounts, paths, commands."""
        return {
            pointer: value
            for pointer, value in leaves(self.arguments)
            if value is not None and shape_of(_name(pointer), str(value)) in {"atom", "place"}
        }


@dataclass(frozen=True, slots=True)
class SafetyPolicy:
    """Hold a check of the calls of one domain."""

    domain: str
    """Which calls it sees: a pattern of tools, as in policy.yaml."""
    arguments: type[BaseModel] | None
    check: Callable[[ProposedCall], Any] = field(repr=False)


def safety_policy(domain: str, *, arguments: type[BaseModel] | None = None) -> Callable[[Function], Function]:
    """Make a check of a function that takes a ProposedCall and returns Ask, Deny or None, and return it as it is.

    A call whose arguments do not fit the model `arguments` is denied.
    """

    def mark(function: Function) -> Function:
        setattr(function, _MARK, SafetyPolicy(domain, arguments, function))
        return function

    return mark


def safety_policy_of(function: Any) -> SafetyPolicy | None:
    """Return the check that `@safety_policy` made of a function, or None."""
    found = inspect.getattr_static(function, _MARK, None)
    return found if isinstance(found, SafetyPolicy) else None


def _name(pointer: str) -> str:
    """Return the last name in a pointer; the items of a list are known by the name of the list."""
    return next((part for part in reversed(pointer.split("/")) if not part.isdecimal()), "")
