"""server.json and the documentation tell how the engine is started, and what its tools take."""

import json
import re
import tomllib

from backstay.settings import Settings
from gateways.engine_mcp.tools import TOLD, StartRunArguments
from gateways.terminal.app import TABLE
from tests.docs.blocks import names, table
from tests.engine import ROOT
from tests.requirements import promise

OF_TEMPORAL = {"TEMPORAL_ADDRESS"}
LISTED = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
"""Checked once against the published schema of 2025-12-11; the tests keep what that asks of the fields in use."""


@promise("clients:mcp-listed")
def test_it_names_the_package_of_this_version_and_the_command_that_serves():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (package,) = LISTED["packages"]
    assert LISTED["version"] == package["version"] == project["version"]
    assert (package["registryType"], package["identifier"]) == ("pypi", project["name"])
    assert package["transport"] == {"type": "stdio"}
    (argument,) = package["packageArguments"]
    assert argument["type"] == "positional"
    assert argument["value"] in TABLE["commands"]


@promise("clients:mcp-listed")
def test_it_has_the_form_that_registries_take():
    allowed = {"$schema", "name", "title", "description", "version", "packages", "repository", "websiteUrl", "remotes"}
    assert LISTED.keys() <= allowed
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", LISTED["name"])
    assert 1 <= len(LISTED["description"]) <= 100
    # Registries look for this in the package, to see that it is of the same author.
    assert f"<!-- mcp-name: {LISTED['name']} -->" in (ROOT / "README.md").read_text(encoding="utf-8")


@promise("clients:mcp-listed")
def test_every_variable_that_it_asks_for_is_a_setting_and_keys_are_secrets():
    known = {f"BACKSTAY_{name.upper()}" for name in Settings.model_fields} | OF_TEMPORAL
    (package,) = LISTED["packages"]
    for variable in package["environmentVariables"]:
        assert variable["name"] in known
        assert variable.keys() <= {"name", "description", "format", "isRequired", "isSecret", "placeholder"}
        assert variable.get("isSecret", False) == variable["name"].endswith("_KEY")


@promise("clients:mcp-listed")
def test_the_documentation_names_every_tool_and_every_field_of_a_start():
    tools = [name for row in table("docs/engine-mcp.md", "## The tools") for name in names(row[0])]
    assert tools == list(TOLD["tools"])
    text = (ROOT / "docs/engine-mcp.md").read_text(encoding="utf-8")
    fields = text.partition("`start_run` takes these")[2].partition("\n\n|")[2].partition("\n\n")[0]
    known = [name for line in fields.splitlines()[2:] for name in names(line.split("|")[0] or line.split("|")[1])]
    assert set(known) == set(StartRunArguments.model_fields)
