"""One engine, one page and one Slack for all cases of a file, and what the tools there have received."""

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backstay.client import Backstay
from backstay.testing import Reply
from tests.cli.commands import environment_of
from tests.e2e.approvals.doors.cases import ANA, ANSWER, BO, DONE, ISSUED, KEY, Case
from tests.e2e.approvals.doors.forms import Form
from tests.e2e.scripted_server import ANYTHING, ScriptedServer, reads, toolbox_of_servers, writes
from tests.e2e.servers.spellings import token_of
from tests.engine import PLANS, Engine, Scripts, engine, is_deciding, share_images
from tests.slack.workspace import KEY as SIGNING_KEY
from tests.slack.workspace import door as slack_door
from tests.slack.workspace import slack_settings
from tests.slack_server import Slack, open_slack
from tests.web.pages import Served, behind_a_proxy, served_page

POLICY = f"""
default: {{read_only: allow, write_safe: ask, restricted_write: ask}}
repeated: allow
accepting: {{approvers: [{ANA}]}}
ask: [{{tool: "desk.post", when: {{title: {{starts_with: "two "}}}}, approvers: [{ANA}, {BO}], quorum: 2}}]
"""
ASKING = Path(__file__).parents[2] / "servers" / "asking.py"
SECRET = token_of(7)
TEXT = {"type": "string"}
POST = {
    "type": "object",
    "properties": {"title": TEXT, "body": TEXT, "count": {"type": "integer"}, "data": {}},
    "required": ["title"],
    "additionalProperties": False,
}
STAMP = {
    "type": "object",
    "properties": {"title": TEXT, "client_token": TEXT},
    "required": ["title"],
    "additionalProperties": False,
}
PLUGIN = """
import argparse
import json
from pathlib import Path


def make_parser():
    parser = argparse.ArgumentParser(description="Pings.")
    commands = parser.add_subparsers(dest="command", required=True)
    ping = commands.add_parser("ping", help="Ping somebody.")
    ping.add_argument("--who", required=True)
    return parser


def main():
    arguments = make_parser().parse_args()
    with (Path(__file__).parent / "pinged").open("a", encoding="utf-8") as file:
        file.write(json.dumps(arguments.who) + "\\n")
    print(json.dumps({"id": "id-7", "done": True}))


if __name__ == "__main__":
    main()
"""


@dataclass
class World:
    """Hold the parts that every case shares."""

    engine: Engine
    scripts: Scripts
    desk: ScriptedServer
    pinged: Path
    asked: Path
    """What the server that asks people was told."""
    page: Served | None = None
    slack: Slack | None = None
    nursery: Any = None
    folder: Path = Path()
    handles: dict[str, str] = field(default_factory=dict)
    """What stands for the secret in each case."""
    cases: dict[str, Case] = field(default_factory=dict)
    """By workflow id."""
    later: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    """What the run of a case makes after all that, once something was remembered."""

    @property
    def backstay(self) -> Backstay:
        settings = self.engine.settings
        return Backstay(self.engine.client, task_queue=settings.task_queue, approver_key=SIGNING_KEY)

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of commands, which names the profiles too: their folder is trusted by nobody."""
        return environment_of(self.engine, BACKSTAY_PROFILES=str(self.engine.settings.profiles), **more)

    async def start(self, case: Case) -> Any:
        """Start the run of a case."""
        if case.kind == "batch":
            asks = self._calling(case, [(tool.replace(".", "__"), arguments) for tool, arguments in case.calls])
        else:
            plan = _plan(f"plan of {case.name}", case.calls, case.summaries)
            more = [_plan(f"other plan of {case.name}", case.other, case.summaries)] if case.other else []
            asks = self._calling(case, [("propose_plan", {"plan": plan, **({"alternatives": more} if more else {})})])
        asked = [Reply(calls=[("ask_person", {"question": "What shall it say?"})])] if case.answer else []
        forms = [Reply(calls=[("asking__ask", _question(case.form))])] if case.form else []
        return await self._begun(case, Reply(calls=[("desk__issue", {})]), *asked, *forms, asks)

    async def start_again(self, case: Case) -> Any:
        """Start another run for the same user, which makes only what comes later."""
        return await self._begun(case)

    async def _begun(self, case: Case, *replies: Any) -> Any:
        def later(_):
            wanted = self.later.get(case.name, ())
            done = [("finish", {"summary": "done", "outputs": {}, "success": True})]
            return Reply(calls=[(tool.replace(".", "__"), arguments) for tool, arguments in wanted] or done)

        own = {"user_id": case.name, "session_id": case.name} if case.end.remember else {}
        task = self.scripts.task(*replies, *([later] if case.end.remember else []), **own)
        handle = await self.engine.start({**task, "text": f"{task['text']} {case.name}"})
        self.cases[handle.id] = case
        return handle

    def _calling(self, case: Case, calls: list[tuple[str, dict[str, Any]]]) -> Any:
        """Return a model that makes these calls, with the handle of its secret where one is wanted."""

        def reply(conversation):
            (answer, *_) = conversation.answers("desk__issue")
            handle = self.handles[case.name] = answer["data"]["reset_token"]
            told = str(conversation.answers("ask_person")[-1]["answer"]) if case.answer else ""
            return Reply(calls=[(name, keyed(arguments, handle, told)) for name, arguments in calls])

        return reply

    def answers(self, form: Form) -> list[dict[str, Any]]:
        """Return what the server that asks people was told about a form."""
        lines = self.asked.read_text(encoding="utf-8").splitlines() if self.asked.exists() else []
        return [told for line in lines if (told := json.loads(line)).pop("mark") == form.mark]

    def received(self, handle: Any, case: Case, pinged: int = 0) -> list[tuple[str, dict[str, Any]]]:
        """Return the calls of a run that change something, as they arrived at the tools.

        `pinged`: how many calls of the plugin, which knows of no runs, other runs of the case made before.
        """
        mark = f"{handle.id}/"
        found = [
            (f"desk.{call['tool']}", call["arguments"])
            for call in self.desk.calls()
            if str((call["meta"] or {}).get("backstay/effect-id", "")).startswith(mark) and call["tool"] != "issue"
        ]
        lines = self.pinged.read_text(encoding="utf-8").splitlines() if self.pinged.exists() else []
        pings = [json.loads(line) for line in lines]
        of_case = [who for who in pings if who.startswith(f"{case.name} ")]
        return found + [("pinger.ping", {"who": who}) for who in of_case[pinged:]]


def _question(form: Form) -> dict[str, Any]:
    return {"mark": form.mark, "message": form.message, "form": form.schema}


def _plan(title: str, steps: Any, summaries: list[str]) -> dict[str, Any]:
    said = [*summaries, *[""] * len(steps)]
    listed = [
        {"tool": tool, "arguments": arguments, **({"summary": summary} if summary else {})}
        for (tool, arguments), summary in zip(steps, said, strict=False)
    ]
    return {"title": title, "steps": listed}


def keyed(value: Any, handle: str, answer: str = "") -> Any:
    """Return a value with a handle and an answer of people where a case wants them."""
    match value:
        case str():
            return value.replace(KEY, handle).replace(ANSWER, answer)
        case dict():
            return {name: keyed(item, handle, answer) for name, item in value.items()}
        case list():
            return [keyed(item, handle, answer) for item in value]
        case _:
            return value


async def asked(handle: Any, known: set[str], count: int = 1, within_s: float = 150) -> list[dict[str, Any]]:
    """Wait for so many requests that are not known; return them, or none once the run has ended."""
    async with asyncio.timeout(within_s):
        while True:
            running = (await handle.describe()).status.name == "RUNNING"
            if not running:
                return []
            found = [request for request in await handle.query("pending") if request["id"] not in known]
            if len(found) >= count and not await is_deciding(handle):
                return found
            await asyncio.sleep(0.05)


@asynccontextmanager
async def opened_world(temporal: Any, folder: Path, nursery: Any):
    """Open it."""
    share_images(folder / "home")
    place = folder / "plugins" / "pinger" / "cli.py"
    place.parent.mkdir(parents=True)
    place.write_text(PLUGIN, encoding="utf-8")
    answers = {tool: {"data": DONE} for tool in ("post", "file", "stamp")}
    answers["issue"] = {"data": ISSUED | {"reset_token": SECRET}}
    tools = [reads("issue"), writes("post", POST), writes("file", ANYTHING), writes("stamp", STAMP)]
    desk = ScriptedServer(folder / "desk.json", tools, answers, {"stamp": {"idempotency_argument": "client_token"}})
    path = toolbox_of_servers(folder, desk=desk)
    data = json.loads(path.read_text(encoding="utf-8"))
    data["mcpServers"]["asking"] = {"command": "python", "args": [str(ASKING), str(folder / "asked")]}
    data["plugins"] = str(folder / "plugins")
    data["providers"]["asking"] = {"trusted": True}
    data["providers"]["pinger"] = {"tools": {"ping": {"safety": "write_safe"}}}
    path.write_text(json.dumps(data), encoding="utf-8")
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(open_slack(events_url="-"))
        scripts = Scripts()
        options = {
            **slack_settings(slack, "http"),
            **behind_a_proxy(approver_key=SIGNING_KEY),
            "toolbox": path,
            "profiles": PLANS,
            "max_completion_tokens": 50_000,
        }
        running = await stack.enter_async_context(
            engine(temporal, folder, scripts, policy=POLICY, cached=1000, **options)
        )
        await stack.enter_async_context(slack_door(running, slack, running.settings))
        page = await stack.enter_async_context(served_page(running))
        yield World(running, scripts, desk, place.parent / "pinged", folder / "asked", page, slack, nursery, folder)
