"""An agent of pydantic-ai with its Temporal capability, written as its documentation shows.

The worker holds the toolset open; else each call would connect anew, which doubles the processor time of a step.

python -m benchmarks.peers.pydantic_ai_worker [HISTORY]
"""

import sys

from pydantic_ai import Agent, DeferredToolRequests, UsageLimits
from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, PydanticAIWorkflow, TemporalDurability
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from temporalio import workflow

from benchmarks.peers.serving import DANGEROUS, ENVIRONMENT, INSTRUCTIONS, main

MODEL = OpenAIChatModel(
    "scripted",
    provider=OpenAIProvider(base_url=ENVIRONMENT["OPENAI_BASE_URL"], api_key=ENVIRONMENT["OPENAI_API_KEY"]),
)
MAIL = MCPToolset(ENVIRONMENT["MAIL_URL"], id="mail").approval_required(
    lambda _context, tool, _arguments: tool.name == DANGEROUS
)
AGENT = Agent(
    MODEL,
    name="reader",
    instructions=INSTRUCTIONS,
    toolsets=[MAIL],
    output_type=[str, DeferredToolRequests],
    capabilities=[TemporalDurability()],
)


@workflow.defn(name="pydantic-ai")
class Run(PydanticAIWorkflow):
    __pydantic_ai_agents__ = (AGENT,)

    @workflow.run
    async def run(self, text: str) -> str:
        """Do the task; a call that a person has to approve waits for ever."""
        result = await AGENT.run(text, usage_limits=UsageLimits(request_limit=None))
        await workflow.wait_condition(lambda: not isinstance(result.output, DeferredToolRequests))
        return str(result.output)


if __name__ == "__main__":
    main(sys.argv[1:], Run, PydanticAIPlugin(), MAIL)
