"""The ruling of a policy on a plan that a model proposes, beside its rulings on the calls of the plan."""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from backstay.policies.policy import Policy, rule
from backstay.policies.rule import Rule
from backstay.policies.ruling import Ruling, stricter
from backstay.policies.sections import Defaults
from backstay.tools.tool import Safety, Tool

PROPOSE_PLAN = Tool(name="engine.propose_plan", safety=Safety.READ_ONLY)
"""What rules name that are about plans as a whole."""
_ALLOWED = Defaults(read_only="allow", write_safe="allow", restricted_write="allow", read_only_egress="allow")


def rule_on_plan(policy: Policy, tools: Sequence[str]) -> Ruling:
    """Rule on a plan of calls of these tools: by what rules say of `engine.propose_plan`, and by `plans`.

    A rule that allows it says nothing of who must approve it.
    """
    return rule_on_proposal(policy, {"tools": list(dict.fromkeys(tools)), "steps": len(tools)})


def rule_on_proposal(policy: Policy, arguments: dict[str, Any]) -> Ruling:
    """Rule on a plan by what rules see of it: its `tools`, each once, and the number of its `steps`."""
    return reduce(stricter, (ruling for layer in policy.layers for ruling in _said(policy, layer, arguments)))


def goes_without_people(policy: Policy) -> bool:
    """Return whether the operator lets plans run about which no rule asks, also where a run plans first."""
    return policy.layers[-1].plans == "allow"


def _said(policy: Policy, layer: Policy, arguments: dict[str, Any]) -> Iterator[Ruling]:
    own = "" if layer is policy.layers[-1] else "task's own "
    only = Policy(deny=_naming(layer.deny), ask=_naming(layer.ask), groups=layer.groups, default=_ALLOWED)
    ruling = rule(only, PROPOSE_PLAN, arguments)
    yield ruling.model_copy(update={"rule": f"{own}{ruling.rule}"})
    if layer.plans in {"ask", "deny"}:
        yield Ruling(verdict=layer.plans, rule=f"{own}plans: {layer.plans}")


def _naming(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules that can be meant for plans; one for every tool there is says it of the calls of a plan."""
    return tuple(found for found in rules if found.tool.strip("*?."))
