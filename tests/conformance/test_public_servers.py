"""What is compared of public servers, and what the documentation says of them; `make conformance` starts them."""

import base64
import hashlib
import json
import re

import pytest
from mcp.types import CallToolResult, ImageContent, TextContent

from tests.conformance.public_servers import SERVERS, difference, servers
from tests.conformance.scenarios import ROOT
from tests.requirements import promise
from toolbox.providers.answer import Answer, refused

PICTURE = b"picture"
NAME = hashlib.sha256(PICTURE).hexdigest()
TEXT = TextContent(type="text", text="3.10")
SENT = {
    "text": CallToolResult(content=[TEXT]),
    "structured": CallToolResult(content=[TEXT], structured_content={"price": "3.10"}),
    "picture": CallToolResult(
        content=[TEXT, ImageContent(type="image", mime_type="image/png", data=base64.b64encode(PICTURE).decode())]
    ),
    "error": CallToolResult(content=[TextContent(type="text", text="no such\nfile")], is_error=True),
}


@promise("tools:public-servers")
@pytest.mark.parametrize(
    ("sent", "got", "found"),
    [
        ("text", Answer(success=True, data="3.10"), None),
        ("text", Answer(success=True, data=3.1), "lost: ['3.10']"),
        ("text", refused("no"), "it failed here: no"),
        ("text", ValueError("no"), "the call raised ValueError('no')"),
        ("structured", Answer(success=True, data={"price": "3.10"}), None),
        ("structured", Answer(success=True, data={"price": "3.10", "beside": ["more"]}), None),
        ("structured", Answer(success=True, data={"price": 3.1}), "its structured content is another"),
        ("picture", Answer(success=True, data=["3.10", {"sha256": NAME}], files={NAME: PICTURE}), None),
        ("picture", Answer(success=True, data=["3.10"]), f"lost: ['the bytes {NAME}']"),
        ("error", refused("no such\nfile"), None),
        ("error", refused("no such file"), "lost: ['no such\\nfile']"),
        ("error", refused("no"), "lost: ['no such\\nfile']"),
        ("error", Answer(success=True, data="no such\nfile"), "its error is none here"),
    ],
)
def test_an_answer_that_lacks_or_changes_what_a_server_sent_is_told(sent, got, found):
    assert difference(SENT[sent], got) == found


@promise("tools:public-servers")
@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"rows": 1, "at": "now"}, None),
        ({"rows": 2.5, "at": "then", "_content": ["more"]}, None),
        ({"rows": "1", "at": "now"}, "its structured content is another"),
        ({"rows": 1}, "its structured content is another"),
    ],
)
def test_of_answers_that_hold_times_or_chance_the_form_is_compared(data, found):
    sent = CallToolResult(content=[], structured_content={"rows": 7, "at": "once"})
    assert difference(sent, Answer(success=True, data=data), varies=True) == found


@promise("tools:public-servers")
def test_every_server_is_pinned_to_the_version_that_is_named():
    packages = json.loads((SERVERS.parent / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    locks = "".join(file.read_text(encoding="utf-8") for file in SERVERS.parent.glob("*.lock"))
    pinned = packages | dict(re.findall(r"^([a-z0-9-]+)==(\S+)", locks, re.MULTILINE))
    assert {server.package: server.version for server in servers()}.items() <= pinned.items()
    assert "://" not in locks


@promise("tools:public-servers")
def test_the_documentation_names_the_servers_that_are_tried_with_their_versions():
    page = (ROOT / "docs" / "tools-mcp.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if "`make conformance` |" in line]
    named = {tuple(cell.strip(" `") for cell in row[1:4]) for row in rows}
    assert named == {(server.package, server.index, server.version) for server in servers()}
