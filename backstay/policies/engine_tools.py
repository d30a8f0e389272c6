"""The engine's own tools, on which a policy rules as on those of servers."""

from typing import Any

from backstay.policies.denials import denials_of
from backstay.policies.planning import PROPOSE_PLAN, rule_on_proposal
from backstay.policies.policy import Policy, rule
from backstay.policies.ruling import Ruling
from backstay.tools.program import RUN_PROGRAM
from backstay.tools.tool import DELEGATE, Safety, Tool, ToolCall

DELEGATION = Tool(
    name=DELEGATE,
    safety=Safety.RESTRICTED_WRITE,
    audience="own",
    undo="its effects are undone with those of this run, each as far as it can be",
)
ENGINE_TOOLS = {tool.name: tool for tool in (RUN_PROGRAM, PROPOSE_PLAN, DELEGATION)}


def rule_on_any(policy: Policy, tool: Tool, arguments: dict[str, Any], **given: Any) -> Ruling:
    """Rule on a call, also on a plan that is proposed, for which `arguments` hold its `tools` and how many `steps`.

    A delegation is ruled on as it is: nothing in it stands for what comes later, or is looked at once more when it is
    sent.
    """
    if tool is PROPOSE_PLAN:
        return rule_on_proposal(policy, arguments)
    if tool.name == DELEGATE:
        call = ToolCall(id="", tool=tool, arguments=arguments, sources=given.get("sources"))
        for denial in denials_of(policy, call):
            if denial.holds(tool.name, arguments, call.sources):
                return Ruling(verdict="deny", rule=denial.line)
    return rule(policy, tool, arguments, **given)
