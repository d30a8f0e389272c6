"""Start what is compared: the floor, the two peers and backstay, each as a process on the same stubs."""

import json
import re
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.script import BODIES
from benchmarks.processes import ROOT, process
from benchmarks.stage import engine, floor, home_of_jails, model

PEERS = {"openai-agents": "openai_agents", "pydantic-ai": "pydantic_ai"}
"""The kind that each peer is, and the name of its lock, of its environment and of its program."""
LOCKS = [Path(__file__).parent / f"{name}.lock" for name in PEERS.values()]
PACKAGES = ("temporalio", "openai-agents", "temporalio-openai-agents", "pydantic-ai-slim")
KINDS = ("floor", *PEERS, "backstay")
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: ask}\n"
BUDGET = {"max_steps": 2000, "max_tool_calls": 2000, "max_llm_cost_usd": None}


@dataclass(frozen=True)
class Stubs:
    """Hold the addresses of what every worker talks to."""

    temporal: str
    model: str
    mail: str
    bodies: Path
    """The file in which the model keeps the requests of tasks that count."""


@contextmanager
def stubs(address: str) -> Generator[Stubs]:
    """Run the scripted model and the tool server, each as a process, for as long as the block runs."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bodies = folder / "bodies.jsonl"
        url = stack.enter_context(model("benchmarks.peers.script:Script", **{BODIES: str(bodies)}))
        command = [sys.executable, str(ROOT / "examples/mailbox/server.py"), "--http", "0"]
        started = process(command, "mailbox ready", MAILBOX_DB=str(folder / "mailbox.db"))
        _, line = stack.enter_context(started)
        yield Stubs(address, url, line.rpartition(" ")[2], bodies)


@contextmanager
def worker(kind: str, queue: str, given: Stubs) -> Generator[int]:
    """Run a worker of one kind on a queue; yield its process id."""
    with ExitStack() as stack:
        if kind == "floor":
            yield stack.enter_context(floor(given.temporal, queue))
        elif kind == "backstay":
            home = stack.enter_context(home_of_jails())
            settings = _settings(home, given.mail) | {"BACKSTAY_TASK_QUEUE": queue}
            yield stack.enter_context(engine(home, given.temporal, given.model, "all", **settings))
        else:
            started, _ = stack.enter_context(process(peer_command(kind), "ready", **peer_environment(queue, given)))
            yield started.pid


def _settings(home: Path, mail: str) -> dict[str, str]:
    """Write the configuration of the mailbox as a server that runs elsewhere, and a policy that asks for one tool."""
    data = json.loads((ROOT / "examples/toolbox.json").read_text(encoding="utf-8"))
    data["mcpServers"]["mail"] = {"url": mail}
    toolbox, policy = home / "remote.json", home / "policy.yaml"
    toolbox.write_text(json.dumps(data), encoding="utf-8")
    policy.write_text(POLICY, encoding="utf-8")
    return {"BACKSTAY_TOOLBOX": str(toolbox), "BACKSTAY_POLICY": str(policy)}


def peer_command(kind: str) -> list[str]:
    """Return the command of a peer's program, by the interpreter of its environment."""
    name = PEERS[kind]
    return [str(ROOT / "build/peers" / name / "bin/python"), "-m", f"benchmarks.peers.{name}_worker"]


def peer_environment(queue: str, given: Stubs) -> dict[str, str]:
    """Return the environment of a peer's program, which sends traces to nobody."""
    return {
        "TEMPORAL_ADDRESS": given.temporal,
        "TASK_QUEUE": queue,
        "OPENAI_BASE_URL": given.model,
        "OPENAI_API_KEY": "key-of-the-scripted-model",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "MAIL_URL": given.mail,
    }


def asked(kind: str, word: str, steps: int) -> tuple[str, list[Any]]:
    """Return the workflow of a kind and what it is started with: a word of the script, and how many steps."""
    text = f"{word} {steps}"
    match kind:
        case "floor":
            return "Floor", [steps, 1, None, word == "park"]
        case "backstay":
            return "RunTask", [{"text": text, "budget": BUDGET}]
        case _:
            return kind, [text]


def packages() -> dict[str, str]:
    """Return the versions of the peers, as their locks pin them."""
    text = "".join(lock.read_text(encoding="utf-8") for lock in LOCKS)
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))
    return {name: pinned[name] for name in PACKAGES}
