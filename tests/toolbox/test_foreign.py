"""The files of other hosts, in the words that each of them has: `others/hosts.yaml` names the reports."""

import json
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from backstay.errors import ToolboxInvalid
from tests.requirements import promise
from toolbox.configuration.configuration import ServerEntry
from toolbox.configuration.hosts import servers_of

CASES = yaml.safe_load((Path(__file__).parent / "others" / "hosts.yaml").read_text(encoding="utf-8"))


@promise("tools:others-hosts")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_servers_of_a_file_are_taken_over_one_by_one(tmp_path, case):
    file = tmp_path / f"mcp.{case.get('form', 'json')}"
    file.write_text(case.get("text") or json.dumps(case["file"]), encoding="utf-8")
    servers, faults = servers_of(file, {})
    assert {server.name: server.entry for server in servers} == case["kept"]
    assert len(faults) == len(case.get("faults", ()))
    for word, fault in zip(case.get("faults", ()), faults, strict=True):
        assert word in fault


@promise("tools:others-hosts")
def test_a_file_without_a_server_that_can_be_taken_over_is_refused(tmp_path):
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"a": {"enabled": true}, "b": 7}}', encoding="utf-8")
    with pytest.raises(ToolboxInvalid, match=r"mcpServers\.a.*'b' is not an object"):
        servers_of(file, {})


@promise("tools:offered")
@pytest.mark.parametrize(
    ("said", "offered"),
    [
        ({"enabled_tools": ["read_*"]}, ["read_file"]),
        ({"allowedTools": ["read_file", "send"]}, ["read_file", "send"]),
        ({"availableTools": ["*"], "disabled_tools": ["*_file"]}, ["send"]),
        ({"exclude_tools": ["s*d"]}, ["read_file"]),
        ({"include": []}, []),
    ],
)
def test_the_tools_of_an_entry_are_named_as_any_host_does(said, offered):
    entry = ServerEntry.model_validate({"command": "x"} | said)
    assert [tool for tool in ("read_file", "send") if entry.offers(tool)] == offered


@promise("tools:others-hosts")
@pytest.mark.parametrize("name", ["enabled", "isActive", "is_active", "isEnabled", "active"])
def test_a_server_is_switched_off_as_any_host_does(name):
    assert ServerEntry.model_validate({"command": "x", name: False}).disabled
    assert not ServerEntry.model_validate({"command": "x", name: True}).disabled
    assert ServerEntry.model_validate({"command": "x", name: "False", "disabled": 0}).disabled
    with pytest.raises(ValidationError, match=f"`{name}` says neither true nor false"):
        ServerEntry.model_validate({"command": "x", name: "perhaps"})
