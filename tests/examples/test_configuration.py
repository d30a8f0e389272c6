"""The example's toolbox and policy, held against the server they speak of."""

import json
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from mcp import Client

from examples.mailbox.faults import Faults
from examples.mailbox.seed import seed
from examples.mailbox.server import mailbox
from tests.requirements import promise

TOOLBOX = Path("examples/toolbox.json").read_text(encoding="utf-8")
POLICY = Path("examples/policy.yaml").read_text(encoding="utf-8")


@promise("demo:configured")
async def test_the_toolbox_declares_only_tools_and_arguments_that_the_mailbox_has(tmp_path):
    path = tmp_path / "mailbox.db"
    await seed(path)
    async with Client(mailbox(path, Faults())) as client:
        arguments = {tool.name: set(tool.input_schema["properties"]) for tool in (await client.list_tools()).tools}
    declared = json.loads(TOOLBOX)["providers"]["mail"]["tools"]
    assert declared["send_email"]["idempotency_argument"] in arguments["send_email"]
    assert declared["send_email"]["idempotent"] is False
    for name, declaration in declared.items():
        assert name in arguments
        for companion in (declaration.get("undo"), declaration.get("verify")):
            assert companion is None or set(companion["arguments"]) <= arguments[companion["tool"]]


@promise("demo:configured")
def test_the_policy_lets_reads_pass_and_asks_before_every_send():
    policy = yaml.safe_load(POLICY)
    assert policy["default"] == {"read_only": "allow", "write_safe": "ask", "restricted_write": "ask"}
    assert [rule["tool"] for rule in policy["ask"]] == ["mail.send_email"]
    writes = ("mail.send_email", "mail.recall_email", "mail.delete_message")
    assert not [name for name in writes for pattern in policy["allow"] if fnmatchcase(name, pattern)]
