"""An agent of the OpenAI Agents SDK with its Temporal plugin, written as its documentation shows.

python -m benchmarks.peers.openai_agents_worker [HISTORY]
"""

import sys
from datetime import timedelta

from agents import Agent, OpenAIProvider, Runner
from agents.mcp import MCPServerStreamableHttp
from temporalio import workflow
from temporalio.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
from temporalio.openai_agents.workflow import temporal_mcp_server

from benchmarks.peers.serving import DANGEROUS, ENVIRONMENT, INSTRUCTIONS, main


@workflow.defn(name="openai-agents")
class Run:
    @workflow.run
    async def run(self, text: str) -> str:
        """Do the task; a call that a person has to approve waits for ever."""
        mail = temporal_mcp_server("mail", require_approval={"always": {"tool_names": [DANGEROUS]}})
        agent = Agent(name="reader", instructions=INSTRUCTIONS, model="scripted", mcp_servers=[mail])
        result = await Runner.run(agent, text, max_turns=1000)
        await workflow.wait_condition(lambda: not result.interruptions)
        return str(result.final_output)


def plugin() -> OpenAIAgentsPlugin:
    """Return the plugin, which speaks Chat Completions and keeps its connection to the tool server."""
    return OpenAIAgentsPlugin(
        model_params=ModelActivityParameters(start_to_close_timeout=timedelta(seconds=60)),
        model_provider=OpenAIProvider(
            base_url=ENVIRONMENT["OPENAI_BASE_URL"], api_key=ENVIRONMENT["OPENAI_API_KEY"], use_responses=False
        ),
        mcp_servers={"mail": lambda: MCPServerStreamableHttp(name="mail", params={"url": ENVIRONMENT["MAIL_URL"]})},
    )


if __name__ == "__main__":
    main(sys.argv[1:], Run, plugin())
