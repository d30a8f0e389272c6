"""Schemas of the operator's files, as editors take them: what the engine takes fits, and a typing error does not."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from gateways.terminal.schema import schema
from tests.docs.blocks import HOUSE, blocks
from tests.requirements import promise
from toolbox.configuration import commented
from toolbox.configuration.load import load

FILES = {"toolbox": "json toolbox", "policy": "yaml policy", "profiles": "yaml profiles", "plan": "yaml plan"}
MISTYPED = {
    "toolbox": {"mcpServer": {}},
    "policy": {"denny": ["mail.*"]},
    "profiles": {"careful": {"stratagem": "conservative"}},
    "task": {"txt": "x"},
    "plan": {"stepz": []},
}


def validator(capsys, name):
    schema(name)
    printed = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(printed)
    return Draft202012Validator(printed)


@promise("clients:schemas")
@pytest.mark.parametrize("name", FILES)
def test_what_the_documents_show_fits_the_schema_of_its_file(capsys, name):
    checked, shown = validator(capsys, name), [block for block in blocks() if block.info == FILES[name]]
    read = commented.read if name == "toolbox" else yaml.safe_load
    assert shown
    assert {block.place: [fault.message for fault in checked.iter_errors(read(block.text))] for block in shown} == {
        block.place: [] for block in shown
    }


@promise("clients:schemas")
def test_the_files_of_the_examples_fit(capsys):
    for name, read in {"toolbox.json": commented.read, "policy.yaml": yaml.safe_load}.items():
        checked = validator(capsys, name.partition(".")[0])
        for path in (HOUSE / "examples").rglob(name):
            assert not [*checked.iter_errors(read(path.read_text(encoding="utf-8")))], path


@promise("clients:schemas")
@pytest.mark.parametrize("name", MISTYPED)
def test_a_field_that_there_is_not_is_marked(capsys, name):
    assert [*validator(capsys, name).iter_errors(MISTYPED[name])]


@promise("clients:schemas")
def test_a_toolbox_may_name_its_schema(tmp_path):
    path = tmp_path / "toolbox.json"
    path.write_text('{"$schema": "./toolbox.schema.json", "mcpServers": {}}', encoding="utf-8")
    configuration, _ = load(path, {})
    assert configuration.for_editors == "./toolbox.schema.json"
