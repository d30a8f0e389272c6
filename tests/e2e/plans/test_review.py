"""Reviews of what a plan has done, through a worker: jails, files, answers of tools, and what cannot be checked."""

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from backstay import calls
from backstay.testing import Conversation, Reply
from store.opening import open_store
from tests.e2e.labelled import DONE
from tests.engine import ended, engine, share_images
from tests.requirements import promise
from tests.sizes import spread

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@workflow.defn
class ReviewAlone:
    """Ask for one review, as a run does."""

    @workflow.run
    async def run(self, ask: dict[str, Any]) -> dict[str, Any]:
        review = await workflow.execute_activity(
            calls.review,
            calls.ReviewWork.model_validate(ask["ask"]),
            task_queue=ask["queue"],
            start_to_close_timeout=timedelta(seconds=200),
            heartbeat_timeout=timedelta(seconds=10),
        )
        return review.plain()


def finish(_conversation: Conversation) -> Reply:
    return DONE


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory, rooms):
    folder = tmp_path_factory.mktemp("reviews")
    share_images(folder / "home")
    toolbox = folder / "toolbox.json"
    toolbox.write_text("{}", encoding="utf-8")
    async with (
        engine(temporal, folder, finish, policy=POLICY, workspaces=rooms, toolbox=toolbox) as found,
        Worker(
            temporal,
            task_queue=f"{found.settings.task_queue}-tests",
            workflows=[ReviewAlone],
            workflow_runner=UnsandboxedWorkflowRunner(),
        ),
    ):
        yield found, rooms


async def done(opened, name, *steps):
    """Carry out a plan in a workspace; return its run key, and the refs of its results."""
    found, _ = opened
    listed = [{"tool": tool, "arguments": arguments} for tool, arguments in steps]
    task = {"plan": {"steps": listed}, "workspace": name, "filesystem": True, "shell": True, "on_failure": "keep"}
    handle = await found.start(task)
    result = await ended(handle)
    assert result["outcome"] == "completed", result
    refs = {index: step["ref"] for index, step in enumerate(result["raw_outputs"]["steps"])}
    return f"{handle.id}/{handle.first_execution_run_id}", refs


def written(opened, name, files):
    """Write files into a new workspace, as a run may have done; return a run key."""
    place = opened[1] / name
    place.mkdir(parents=True)
    for path, content in files.items():
        (place / path).write_text(content, encoding="utf-8")
    return f"{name}/written"


async def reviewed(opened, run, *checks, workspace="", **more):
    found, _ = opened
    ask = {"run": run, "workspace": workspace, "rules": {"checks": list(checks)}, **more}
    return await found.client.execute_workflow(
        "ReviewAlone",
        {"ask": ask, "queue": found.settings.task_queue},
        id=f"review-{uuid.uuid4()}",
        task_queue=f"{found.settings.task_queue}-tests",
    )


async def stored(opened, run, ref):
    """Return what the review stored, as the store holds it for those who may look."""
    async with open_store(database_url=None, home=opened[0].settings.home) as store:
        record = await store.blobs.of(run).get_json(ref)
        return (
            record["digest"]["data"]
            if "data" in record["digest"]
            else await store.blobs.of(run).get_json(record["shown"])
        )


def write(path, content):
    return "fs.write_file", {"path": path, "content": content}


SCHEMA = {"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}}
GOOD = (
    write("shop/__init__.py", ""),
    write("shop/orders.py", "def total(prices: list[int]) -> int:\n    return sum(prices)\n"),
    write(
        "test_orders.py", "from shop.orders import total\n\n\ndef test_total() -> None:\n    assert total([1]) == 1\n"
    ),
    ("shell.run", {"command": "echo '{\"total\": 3}' > report.json"}),
    ("shell.run", {"command": "cat report.json"}),
)
WRONG = "def total(prices: list[int]) -> int:\n    return str(sum(prices))\n"
ALL = (
    {"name": "lint"},
    {"name": "types", "critical": True},
    {"name": "import"},
    {"name": "tests", "weight": 3},
    {"name": "artifacts", "critical": True},
    {"name": "schema", "paths": ["report.json"], "schema": SCHEMA},
    {
        "name": "custom",
        "tool": "shell.run",
        "condition": {"result.exit_code": {"equals": 0}},
        "schema": {"type": "object"},
    },
)


@promise("plans:confidence")
@pytest.mark.thorough
@pytest.mark.timeout(400)
async def test_a_clean_plan_is_reviewed_with_full_confidence(opened):
    run, refs = await done(opened, "clean", *GOOD)
    answers = {6: {"success": True, "ref": refs[4]}}
    review = await reviewed(opened, run, *ALL, workspace="clean", results=refs, answers=answers)
    assert [(check["name"], check["score"], check["error"]) for check in review["checks"]] == [
        (check["name"], 1, None) for check in ALL
    ]
    assert (review["confidence"], review["threshold"]) == (1, 0.8)
    assert all(check["ref"] for check in review["checks"])
    tests = await stored(opened, run, review["checks"][3]["ref"])
    assert (tests["counted"], tests["failed"], tests["score"]) == (1, 0, 1.0)


@promise("plans:confidence")
@pytest.mark.thorough
async def test_what_is_wrong_lowers_the_confidence_and_a_critical_fault_takes_it_all(opened):
    run, refs = await done(opened, "planted", *GOOD, write("shop/orders.py", WRONG))
    place = opened[1] / "planted"
    (place / "report.json").write_text('{"total": "3"}', encoding="utf-8")
    answers = {6: {"success": True, "ref": refs[3]}}
    some = [check | {"critical": False} for check in ALL]
    review = await reviewed(opened, run, *some, workspace="planted", results=refs, answers=answers)
    scores = {check["name"]: check["score"] for check in review["checks"]}
    # Four files are known by their last content, and the report was changed since.
    assert scores == {"lint": 1, "types": 0.9, "import": 1, "tests": 0, "artifacts": 0.75, "schema": 0, "custom": 1}
    assert review["confidence"] == round((1 + 0.9 + 1 + 0 + 0.75 + 0 + 1) / 9, 6)
    artifacts = await stored(opened, run, review["checks"][4]["ref"])
    assert artifacts["lines"][0].startswith("report.json: it has 14 bytes, not ")
    review = await reviewed(opened, run, *ALL, workspace="planted", results=refs, answers=answers)
    assert review["confidence"] == 0


@promise("plans:review-files")
async def test_artifacts_are_compared_with_what_the_check_expects(opened):
    run = written(opened, "expected", {"a.txt": "a\n", "b.txt": "b\n"})
    known = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7"
    wanted = [{"path": "a.txt", "sha256": known, "size": 2}, {"path": "b.txt", "sha256": known}, {"path": "c.txt"}]
    (check,) = (await reviewed(opened, run, {"name": "artifacts", "expected": wanted}, workspace="expected"))["checks"]
    assert check["score"] == round(1 / 3, 6)
    lines = (await stored(opened, run, check["ref"]))["lines"]
    assert [line.partition(":")[0] for line in lines] == ["b.txt", "c.txt"]


@promise("plans:missing")
@pytest.mark.parametrize(
    ("check", "more", "told"),
    spread(
        [
            ({"name": "lint", "paths": ["gone"]}, {}, "gone: there is no such file or folder in the workspace"),
            ({"name": "artifacts"}, {}, "no step says that it wrote a file"),
            (
                {"name": "custom", "tool": "crm.count", "schema": {"type": "object"}},
                {},
                "crm.count: its tool was not called",
            ),
            (
                {"name": "custom", "tool": "crm.count", "schema": {"type": "object"}},
                {"answers": {0: {"success": False, "error": "no connection"}}},
                "crm.count: no connection",
            ),
            ({"name": "lint"}, {"workspace": ""}, "this run has no workspace"),
            ({"name": "lint"}, {"workspace": "../out"}, "WorkspaceInvalid: workspace"),
        ],
        2,
    ),
)
@pytest.mark.thorough
async def test_a_check_that_cannot_be_made_counts_as_0_and_says_why(opened, check, more, told):
    run, _ = await done(opened, "errors", write("notes.txt", "x"))
    review = await reviewed(opened, run, check, **({"workspace": "errors"} | more))
    (result,) = review["checks"]
    assert (result["score"], result["ref"], review["confidence"]) == (0, None, 0)
    assert result["error"].startswith(told)


@promise("plans:review-files")
@pytest.mark.thorough
async def test_a_schema_that_cannot_be_used_and_a_file_that_is_no_json_are_told(opened):
    run, _ = await done(opened, "files", write("a.json", '{"total": 1}'), write("b.json", "{"), write("c.json", "[1]"))
    good = {"name": "schema", "paths": ["a.json", "b.json", "c.json", "d.json"], "schema": SCHEMA}
    bad = {"name": "schema", "paths": ["a.json"], "schema": {"type": 7}}
    review = await reviewed(opened, run, good, bad, workspace="files")
    first, second = review["checks"]
    assert (first["score"], second["score"]) == (0.25, 0)
    lines = (await stored(opened, run, first["ref"]))["lines"]
    assert [line[:30] for line in lines] == [
        "b.json: it is not JSON: Expect", "c.json: must be object, not ar", "d.json: there is no such file",
    ]  # fmt: skip
    assert second["error"].startswith("the schema of the check is not valid")


@promise("plans:review-hostile")
async def test_no_secret_that_code_prints_reaches_the_report(opened):
    leaking = f'def test_it() -> None:\n    print("token {SECRET}")\n    assert False, "token {SECRET}"\n'
    run = written(opened, "leaking", {"test_leaking.py": leaking})
    (check,) = (await reviewed(opened, run, {"name": "tests"}, workspace="leaking"))["checks"]
    report = await stored(opened, run, check["ref"])
    assert "token" in report["printed"]
    assert SECRET not in json.dumps(report)


@promise("plans:missing")
@pytest.mark.thorough
async def test_without_jails_every_check_of_code_counts_as_0_and_says_why(temporal, tmp_path, rooms):
    toolbox = tmp_path / "toolbox.json"
    toolbox.write_text("{}", encoding="utf-8")
    missing = tmp_path / "no-nsjail"
    async with (
        engine(temporal, tmp_path, finish, workspaces=rooms, toolbox=toolbox, nsjail=missing) as found,
        Worker(
            temporal,
            task_queue=f"{found.settings.task_queue}-tests",
            workflows=[ReviewAlone],
            workflow_runner=UnsandboxedWorkflowRunner(),
        ),
    ):
        checks = [{"name": "lint"}, {"name": "tests"}, {"name": "artifacts", "expected": [{"path": "a"}]}]
        review = await reviewed((found, rooms), "w/r", *checks, workspace="unconfined")
    assert review["confidence"] == 0
    assert {check["error"].partition(":")[0] for check in review["checks"]} == {"IsolationUnavailable"}
