"""What comes out of a jail is read as what an enemy may have written."""

import json

import pytest

from backstay.errors import SandboxLost
from sandbox.workspaces.answers import MOST_ANSWER, read_answer
from tests.requirements import promise

FILE = {"path": "a", "size": 1, "sha256": "a" * 64}


def framed(text: bytes, size: int | None = None) -> bytes:
    return (len(text) if size is None else size).to_bytes(4, "big") + text


def said(value: object) -> bytes:
    return framed(json.dumps(value).encode())


@promise("workspaces:answers")
def test_an_honest_answer_is_returned_and_a_refusal_is_one_line():
    assert read_answer("write_file", said({"ok": FILE})) == FILE
    assert read_answer("write_file", said({"error": "a\nb\x1b[31m"})) == "a b<U+001B>[31m"


@promise("workspaces:answers")
@pytest.mark.parametrize(
    "forged",
    [
        b"",
        b"\0\0",
        framed(b"{}", 3),
        framed(b'{"ok": {}}') + b"more",
        framed(b'{"ok": 1', None),
        framed(b"x" * 10, MOST_ANSWER + 1),
        framed(b'{"ok": {"path": "a", "size": NaN, "sha256": ""}}'),
        framed(b'{"ok": ' * 200 + b"1" + b"}" * 200),
        framed(b'{"error": "\xff"}'),
        framed(b'{"error": "\\ud800"}'),
        framed(b"1" * 5000),
        said([]),
        said({}),
        said({"ok": FILE, "error": "both"}),
        said({"ok": FILE, "more": 1}),
        said({"ok": FILE | {"before": "0" * 64, "after": "0" * 64}}),
        said({"ok": FILE | {"size": -1}}),
        said({"ok": FILE | {"size": True}}),
        said({"ok": FILE | {"size": "1"}}),
        said({"ok": FILE | {"sha256": "../../etc/passwd"}}),
        said({"ok": {"path": "a"}}),
        said({"error": {"not": "a text"}}),
    ],
)
def test_a_forged_answer_is_not_believed(forged):
    with pytest.raises(SandboxLost):
        read_answer("write_file", forged)
