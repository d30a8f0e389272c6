"""Traces of runs, as a collector gets them over OTLP."""

import asyncio
import json
import sys
import time

import pytest
import pytest_asyncio
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from activities.telemetry.counting import CountInterceptor, Counts
from activities.telemetry.spans import SpanInterceptor
from backstay.client.connecting import DATA_CONVERTER, traced
from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from backstay.testing import Reply
from tests.cli.commands import HOUSE, bare
from tests.cli.test_dev import nothing_left
from tests.e2e.labelled import DONE
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import Scripts, assert_no_task_failure, ended, share_images
from tests.nursery.nursery import OPERATORS_WORKER, plain_environment
from tests.otlp import open_collector
from tests.requirements import promise
from tests.sizes import spread
from tests.telemetry.sites import SECRET_KEY, open_site
from workflows import WORKFLOWS

HISTORIES = sorted((HOUSE / "tests/replay/histories").glob("*.json"))
TOKEN = "token-of-the-collector-" + "q7" * 8
PLANTED = {
    "answer": "answer-" + "a1" * 12,
    "failing": "failing-" + "h8" * 12,
    "refusal": "refusal-" + "i9" * 12,
    "effect": "effect-" + "j0" * 12,
}
ARGUMENT = "an-argument-that-nobody-else-needs"


def parts(collector):
    """Return the span of the only run in all that was sent, its steps in order, and what each of them holds."""
    (run,) = collector.named("invoke_agent")
    steps = sorted(
        (span for span in collector.inside(run) if span.name == "step"), key=lambda span: span.said["backstay.step"]
    )
    return run, steps, [collector.inside(step) for step in steps]


async def arrived(collector, name, seconds=30):
    async with asyncio.timeout(seconds):
        while not collector.named(name):
            await asyncio.sleep(0.1)


async def demo_of(collector, folder, *flags):
    home = str(share_images(folder / "demo"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.demo", "--yes", "--home", home, *flags),
        cwd=HOUSE,
        env=bare(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 200)
    await nothing_left(folder)
    assert process.returncode == 0, out.decode()


@promise("operations:otel")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_the_demo_is_one_trace_from_its_client_to_models_tools_servers_and_programs_with_cost(tmp_path):
    async with open_collector() as collector:
        await demo_of(collector, tmp_path)
    run, steps, inside = parts(collector)
    (client,) = collector.named("start RunTask")
    calls = [span for spans in inside for span in spans]
    tools = [span for span in calls if span.name.startswith("execute_tool mail.")]

    assert (run.parent, client.parent) == (client.id, "")
    assert_models_and_cost_add_up(run, steps, inside)
    assert len(tools) == 8
    assert_each_call_holds_that_of_its_server(collector, tools)
    assert len([span for span in calls if span.said.get("gen_ai.tool.name") == "engine.run_program"]) == 3


def assert_models_and_cost_add_up(run, steps, inside):
    """Assert that two steps within the run ask a model each, and that the run says what they cost together."""
    chats = [span for spans in inside for span in spans if span.name.startswith("chat ")]
    assert [step.said["backstay.step"] for step in steps] == [1, 2]
    assert len(chats) == 2
    assert sum(chat.said["backstay.cost_usd"] for chat in chats) == pytest.approx(
        run.said["backstay.cost_usd"], abs=1e-9
    )
    assert all(chat.said["gen_ai.usage.output_tokens"] and chat.said["backstay.cost_usd"] > 0 for chat in chats)
    for chat in chats:
        assert (chat.said["gen_ai.operation.name"], chat.said["gen_ai.provider.name"]) == ("chat", "openai")
        assert chat.said["gen_ai.request.model"] == chat.name.removeprefix("chat ") != ""
        assert chat.said["gen_ai.usage.input_tokens"] > 0
    for tokens in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
        assert sum(chat.said[tokens] for chat in chats) == run.said[tokens]
    assert run.said["backstay.outcome"] == "completed"
    assert all(run.began <= step.began <= step.ended <= run.ended for step in steps)


def assert_each_call_holds_that_of_its_server(collector, tools):
    """Assert that all is one trace, and that each call of a tool holds what was sent to its server."""
    (run,) = collector.named("invoke_agent")
    assert {span.trace for span in collector.spans if span.said.get("backstay.workflow_id")} == {run.trace}
    for tool in tools:
        (sent,) = collector.inside(tool)
        assert (sent.scope, sent.said["mcp.method.name"]) == ("mcp-python-sdk", "tools/call")


@promise("operations:otel-killed")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_a_run_whose_worker_was_killed_is_one_span_with_each_step_once(tmp_path):
    async with open_collector() as collector:
        await demo_of(collector, tmp_path, "--crash")
    run, steps, inside = parts(collector)
    retried = [span for span in inside[0] if span.said.get("backstay.attempt", 1) > 1]

    assert [step.said["backstay.step"] for step in steps] == [1, 2]
    assert run.said["backstay.outcome"] == "completed"
    assert {span.trace for span in collector.spans if span.said.get("backstay.workflow_id")} == {run.trace}
    assert "execute_tool mail.send_email" in {span.name for span in retried}


@pytest_asyncio.fixture(scope="module")
async def seen(temporal, nursery, tmp_path_factory):
    """Let a run make one step of calls that succeed, fail and are refused; yields the collector and the run."""
    folder = tmp_path_factory.mktemp("seen")

    def calls(conversation):
        if any(message["role"] == "assistant" for message in conversation.messages):
            return DONE
        given = {"note": ARGUMENT}
        return Reply(
            text=f"I write {ARGUMENT}", calls=[(f"vault__{name}", given) for name in ("read", "fail", "refuse", "act")]
        )

    tools = [reads("read"), reads("fail"), reads("refuse"), writes("act")]
    answers = {
        "read": {"data": {"password": PLANTED["answer"], "key": SECRET_KEY}},
        "fail": {"error": f"login failed: password={PLANTED['failing']} is wrong"},
        "refuse": {"refusal": f"Authorization: Bearer {PLANTED['refusal']} was refused"},
        "act": {"data": {"session": {"refresh_token": PLANTED["effect"]}}},
    }
    vault = ScriptedServer(folder / "vault.json", tools, answers)
    toolbox = toolbox_of_servers(folder, vault=vault)
    async with open_collector() as collector:
        told = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{TOKEN}",
            "OTEL_SERVICE_NAME": "agents-of-ana",
        }
        async with open_site(temporal, nursery, folder, calls, toolbox=toolbox, **told) as site:
            task = {"text": f"Look, with {ARGUMENT}", "user_id": "ana@example.com", "session_id": "june"}
            handle = await site.start(task)
            await ended(handle)
            await arrived(collector, "invoke_agent")
        yield collector, handle


@promise("operations:otel")
async def test_a_run_is_one_trace_of_steps_models_tools_and_servers_with_cost(seen):
    collector, _ = seen
    run, steps, inside = parts(collector)
    assert_models_and_cost_add_up(run, steps, inside)
    tools = [span for spans in inside for span in spans if span.name.startswith("execute_tool vault.")]

    assert sorted(tool.name.rpartition(".")[2] for tool in tools) == ["act", "fail", "read", "refuse"]
    assert_each_call_holds_that_of_its_server(collector, tools)


@promise("operations:telemetry")
async def test_no_secret_and_no_argument_is_sent_and_events_name_task_and_user(seen):
    collector, handle = seen
    sent = b"".join(collector.bodies)
    names = [name for span in collector.spans for name, _ in span.events]
    events = [said for span in collector.spans for _, said in span.events if "backstay.user_id" in said]
    failed = [span for span in collector.spans if span.failed and span.name.startswith("execute_tool")]

    secrets = {**PLANTED, "key": SECRET_KEY, "token": TOKEN, "argument": ARGUMENT}
    assert [name for name, secret in secrets.items() if secret.encode() in sent] == []
    assert {headers["authorization"] for headers in collector.headers} == {f"Bearer {TOKEN}"}
    assert {span.service for span in collector.spans} == {"agents-of-ana"}
    assert {"run.started", "model.asked", "action.called", "action.failed", "run.ended"} <= set(names)
    assert len(names) == len(events)
    assert {(said["backstay.workflow_id"], said["backstay.user_id"]) for said in events} == {
        (handle.id, "ana@example.com")
    }
    assert {said["gen_ai.conversation.id"] for said in events} == {"june"}
    assert {span.said["gen_ai.tool.name"] for span in failed} == {"vault.fail", "vault.refuse"}
    assert all(span.said["error.type"] for span in failed)


@promise("operations:otel-replay")
@pytest.mark.thorough
async def test_a_trace_changes_no_command_of_a_run_and_a_replay_sends_and_counts_nothing(temporal, nursery, tmp_path):
    scripts = Scripts()
    mail = Reply(calls=[("mail__send_email", {"to": "a@free.example", "subject": "s", "body": "b"})])
    kinds = []
    async with open_collector() as collector:
        for name, told in (("traced", {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}), ("plain", {})):
            folder = tmp_path / name
            folder.mkdir()
            async with open_site(temporal, nursery, folder, scripts, **told) as site:
                handle = await site.start(scripts.task(mail, DONE))
                await ended(handle)
                history = await handle.fetch_history()
            kinds.append(
                [
                    (event.event_type, event.activity_task_scheduled_event_attributes.activity_type.name)
                    for event in history.events
                ]
            )
            headers = [event.activity_task_scheduled_event_attributes.header.fields for event in history.events]
            assert any(headers) == (name == "traced")
            await replayed(WorkflowHistory.from_json(handle.id, history.to_json()), watched=name == "plain")
        # A worker that ends as it should sends what is left.
        assert len(collector.named("invoke_agent")) == 1

    scheduled = [[name for _, name in found if name] for found in kinds]
    assert scheduled[0] == scheduled[1]


async def replayed(history, *, watched):
    """Replay a history, with or without what watches it; return what was counted."""
    counted = []

    class Counter:
        def add(self, value, labels=None):
            counted.append((value, labels))

        set = add

    class Meter:
        def create_counter(self, *_):
            return Counter()

        create_gauge_float = create_counter

    with_traces = Settings.load(None)
    with_traces._environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    from backstay.client.exporting import Exporting

    class Unsent(Exporting):
        def send(self, *_, **__):
            counted.append("a span")

    exporting = Unsent(lambda told: told)
    counts = Counts(Meter())
    counted.clear()
    replayer = Replayer(
        workflows=WORKFLOWS,
        data_converter=DATA_CONVERTER,
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[SpanInterceptor(exporting), CountInterceptor(counts)] if watched else [],
    )
    await replayer.replay_workflow(history)
    exporting.provider.shutdown()
    return counted


@promise("operations:otel-replay")
@pytest.mark.parametrize("path", HISTORIES[::6], ids=lambda path: path.stem)
async def test_an_older_history_replays_under_what_watches_it_and_nothing_is_sent_or_counted(path):
    history = WorkflowHistory.from_json(path.stem, json.loads(path.read_text(encoding="utf-8")))

    assert await replayed(history, watched=True) == []


@promise("operations:otel-unreachable")
async def test_a_run_starts_and_ends_while_no_collector_can_be_reached(temporal, nursery, tmp_path):
    scripts = Scripts()
    async with open_site(
        temporal, nursery, tmp_path, scripts, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9"
    ) as site:
        handle = await site.start(scripts.task(DONE))
        assert (await ended(handle))["outcome"] == "completed"
        assert_no_task_failure(await handle.fetch_history())


@promise("operations:otel-unreachable")
def test_a_program_that_traces_waits_two_seconds_for_a_collector_that_is_away(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with traced(Settings.load(None)) as exporting:
        exporting.provider.get_tracer("tests").start_span("a span").end()
        began = time.monotonic()
    # The whole request, with all its trials, takes about seven seconds.
    assert time.monotonic() - began < 5.5


@promise("operations:otel-extra")
@pytest.mark.parametrize("role", spread(["runs", "all"], 1))
async def test_a_missing_extra_is_named_with_the_variable_that_asks_for_it(tmp_path, role):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry.exporter'] = None\n")
    environment = plain_environment() | {
        "PYTHONPATH": f"{tmp_path}:{HOUSE}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "BACKSTAY_HOME": str(tmp_path / "home"),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, OPERATORS_WORKER, "--role", role),
        env=environment,
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 150)

    assert process.returncode == 2
    assert "OTEL_EXPORTER_OTLP_ENDPOINT: set, but opentelemetry.exporter" in said.decode()
    assert "pip install 'backstay[otel]'" in said.decode()


@promise("operations:otel-off")
@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_HEADERS": "a=b"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "zipkin"},
            "OTEL_TRACES_EXPORTER: 'zipkin'",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "set it to http/protobuf",
        ),
    ],
    ids=str,
)
def test_traces_are_sent_where_the_standard_variables_say_so(monkeypatch, variables, wanted):
    for name, said in variables.items():
        monkeypatch.setenv(name, said)
    settings = Settings.load(None)
    if isinstance(wanted, bool):
        assert settings.wants_traces == wanted
    else:
        with pytest.raises(SettingsInvalid, match=wanted), traced(settings):
            pass


@promise("operations:otel")
@pytest.mark.thorough
async def test_a_program_that_traces_by_itself_has_its_runs_in_its_own_trace(temporal, nursery, tmp_path):
    program = """
import asyncio, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from backstay import connect

async def main():
    trace.set_tracer_provider(TracerProvider())
    async with connect(task_queue=sys.argv[1]) as backstay:
        with trace.get_tracer("mine").start_as_current_span("mine") as mine:
            run = await backstay.start({"text": sys.argv[2]})
        await run.result()
    print(f"{mine.get_span_context().trace_id:032x}")

asyncio.run(main())
"""
    scripts = Scripts()
    task = scripts.task(DONE)
    async with (
        open_collector() as collector,
        open_site(temporal, nursery, tmp_path, scripts, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address) as site,
    ):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program, site.environment["BACKSTAY_TASK_QUEUE"], task["text"]),
            env=bare(TEMPORAL_ADDRESS=site.environment["TEMPORAL_ADDRESS"]),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await asyncio.wait_for(process.communicate(), 150)
        await arrived(collector, "invoke_agent")
        (run,) = collector.named("invoke_agent")

    assert run.trace == out.decode().strip()
    assert run.parent
