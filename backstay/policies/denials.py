"""Carry to where a call is sent what could not be denied before, because an argument stood for something else."""

from collections.abc import Iterator
from typing import Any

from backstay.frozen import Frozen
from backstay.policies.condition import Judgement
from backstay.policies.policy import Policy
from backstay.policies.rule import Rule
from backstay.provenance.source import ArgumentSources
from backstay.tools.tool import ToolCall


class Denial(Frozen):
    """Hold a rule that denies a call if its arguments, once they are known, are as the rule says."""

    line: str
    """The rule as people read it."""
    rule: Rule

    def holds(self, tool: str, arguments: dict[str, Any], sources: ArgumentSources | None) -> bool:
        """Return whether it denies a call with its whole arguments; an argument in doubt is denied."""
        outcome, _ = self.rule.applies(tool, arguments, allows=False, sources=sources, whole=True)
        return outcome is not Judgement.FAILS


def denials_of(policy: Policy, call: ToolCall) -> tuple[Denial, ...]:
    """Return the rules that could still deny a call, since they look at what refers to a result or is stored apart."""
    return tuple(_open(policy, call))


def _open(policy: Policy, call: ToolCall) -> Iterator[Denial]:
    for at, layer in enumerate(policy.layers):
        whose = "task's own " if at < len(policy.layers) - 1 else ""
        for index, rule in enumerate(layer.deny):
            outcome, _ = rule.applies(call.tool.name, call.arguments, allows=False, sources=call.sources)
            if outcome.is_open:
                yield Denial(line=f"{whose}deny[{index}]: {rule.line}", rule=rule)
