"""Every JSON and YAML block of the documents is accepted by the class that it names."""

import json
from functools import partial
from typing import Any

import pytest
import yaml

from activities.endpoints.models_file import read_models
from backstay.approvals.approval import Approval
from backstay.client import Backstay
from backstay.errors import BackstayError
from backstay.plans.definition import PlanDefinition
from backstay.plans.review import ReviewRules
from backstay.policies.policy import Policy
from backstay.profile import Profiles
from backstay.requests import OfRun
from backstay.settings import Settings
from backstay.task.plan import Plan
from backstay.task.task import Task
from docs.generate_schemas import PLACE, schemas
from gateways.terminal.policies.testing import read_cases
from tests.docs.blocks import blocks
from tests.requirements import promise
from toolbox.configuration.load import load

BLOCKS = [block for block in blocks("json", "yaml") if not block.noun.startswith(("plugins", "tools"))]
ADMIT: dict[str, Any] = {
    "Task": Task.admit,
    "Approval": Approval.admit,
    "policy": Policy.admit,
    "plan": Plan.admit,
    "review": ReviewRules.admit,
    "definition": PlanDefinition.admit,
}
ADMIT["profiles"] = partial(Profiles.admit, file="profiles.yaml")


@promise("docs:data")
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.place} {block.noun}")
def test_a_data_block_is_admitted_by_the_noun_it_names(tmp_path, monkeypatch, block):
    data = json.loads(block.text) if block.language == "json" else yaml.safe_load(block.text)

    if block.noun == "toolbox":
        path = tmp_path / "toolbox.json"
        path.write_text(block.text, encoding="utf-8")
        configuration, _ = load(path, {"CRM_TOKEN": "a-token-of-this-test"})
        assert list(configuration.servers) == list(data["mcpServers"])
    elif block.noun == "models":
        path = tmp_path / "models.yaml"
        path.write_text(block.text, encoding="utf-8")
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(name, "a-key-of-this-test")
        assert list(read_models(Settings.load(None, models=path)).file.models) == list(data["models"])
    elif block.noun == "cases":
        assert len(read_cases(data, tmp_path)) == len(data)
    else:
        assert ADMIT[block.noun](data)


@promise("docs:data")
def test_what_is_misspelt_in_a_block_would_be_noticed():
    for noun, admit in ADMIT.items():
        with pytest.raises(BackstayError, match="unknown"):
            admit(
                {
                    "no_such_field": 1,
                    "text": "x",
                    "steps": [{"tool": "a.b"}],
                    "request_id": "r1",
                    "verdict": "approve",
                    "by": "a",
                }
                if noun not in {"policy", "profiles"}
                else {"no_such_field": {"no_such_field": 1} if noun == "profiles" else 1}
            )


@promise("docs:docs")
async def test_the_plan_of_the_quickstart_runs(documented):
    (block,) = [block for block in BLOCKS if block.noun == "plan" and block.place.startswith("docs/quickstart.md")]
    task = {"plan": yaml.safe_load(block.text), "input": {"days": 60, "to": "ana@example.com"}}
    run = await Backstay(documented.engine.client).start(task)
    async for event in run.events():
        if event.name == "approval.asked":
            await run.approve(event.data["request"], by="ana@example.com")

    result = await run.result()

    assert result.success, result
    body = documented.engine.mailbox.rows("SELECT body FROM sent ORDER BY id DESC LIMIT 1")[0][0]
    late = len(documented.engine.mailbox.rows("SELECT 1 FROM invoices WHERE paid = 0"))
    assert body.endswith("invoices are overdue by more than 60 days.")
    assert 0 < int(body.split()[0]) <= late
    await run.undo(by="ana@example.com")


@promise("docs:schemas")
def test_the_schemas_are_those_of_the_code():
    kept = {path.name: path.read_text(encoding="utf-8") for path in PLACE.glob("*.json")}

    assert kept == schemas(), "run: python -m docs.generate_schemas"


@promise("docs:schemas")
def test_no_schema_is_that_of_an_inner_shape():
    inner = {noun.__name__ for noun in OfRun.__subclasses__()}

    assert inner.isdisjoint(json.loads(text).get("title") for text in schemas().values())
