"""Apply the operator's checks to calls that are about to be made; any failure in one denies the call."""

import asyncio
import inspect
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from backstay.errors import TaskInvalid, ToolboxInvalid
from backstay.policies.glob import matches
from backstay.policies.rule import Rule
from backstay.python_tools.safety import Ask, Deny, ProposedCall, SafetyPolicy, safety_policy_of
from toolbox.python_tools.load import import_module
from toolbox.python_tools.threads import Threads

_PATIENCE_S = 10.0


def load_safety(modules: Sequence[str], toolbox: Path) -> "SafetyPolicies":
    """Return the checks that the modules of `safety` in a toolbox.json define. Raises ToolboxInvalid."""
    folder = toolbox.absolute().parent
    found: list[SafetyPolicy] = []
    for index, named in enumerate(modules):
        field = f"safety.{index}"
        module = import_module(field, named, folder)
        own = [policy for value in vars(module).values() if (policy := safety_policy_of(value)) is not None]
        if not own:
            raise ToolboxInvalid(f"{field}: {named!r} defines no function with @safety_policy; add one")
        for policy in own:
            try:
                Rule.admit({"tool": policy.domain})
            except TaskInvalid as error:
                raise ToolboxInvalid(f"{field}: domain {policy.domain!r}: {error}") from None
        found += own
    return SafetyPolicies(found)


class SafetyPolicies:
    """Hold all checks of a toolbox."""

    def __init__(self, policies: Sequence[SafetyPolicy] = ()) -> None:
        self._policies = policies
        self._threads = Threads("safety")

    def sees(self, tool: str) -> bool:
        """Return whether a check has calls of this tool in its domain."""
        return any(matches(policy.domain, tool) for policy in self._policies)

    async def judge(self, call: ProposedCall) -> Ask | Deny | None:
        """Return the strictest word of all checks whose domain the call is in; None when none of them objects."""
        asked: list[str] = []
        for policy in self._policies:
            if matches(policy.domain, call.tool):
                said = await self._said(policy, call)
                if isinstance(said, Deny):
                    return said
                asked += [] if said is None else [said.why]
        return Ask("; ".join(asked)) if asked else None

    async def _said(self, policy: SafetyPolicy, call: ProposedCall) -> Ask | Deny | None:
        name = getattr(policy.check, "__name__", policy.domain)
        try:
            if policy.arguments is not None:
                policy.arguments.model_validate(call.arguments)
            async with asyncio.timeout(_PATIENCE_S):
                self._threads.check()
                waits = inspect.iscoroutinefunction(policy.check)
                said = await (policy.check(call) if waits else self._threads.run(policy.check, call))
                said = await said if inspect.isawaitable(said) else said
        except ValidationError as error:
            fault = error.errors(include_input=False)[0]
            return Deny(f"arguments.{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}")
        except (Exception, SystemExit) as error:  # the code of an operator may fail in any way
            return Deny(f"{name} failed: {type(error).__name__}")
        if said is None or isinstance(said, Ask | Deny):
            return said
        return Deny(f"{name} returned neither Ask, Deny nor None; correct it")
