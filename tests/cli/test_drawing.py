"""How events look at the terminal."""

import pytest

from backstay.cli.render import event_line, style_of
from backstay.task.event import Event

READ = {"tool": "mail.read", "request": '{"id":1}'}


@pytest.mark.parametrize(
    ("name", "data", "red"),
    [
        ("action.failed", READ, True),
        ("model.failed", {}, True),
        ("program.ended", {"success": False}, True),
        ("program.ended", {"success": True}, False),
        ("action.called", READ, False),
    ],
)
def test_what_failed_is_red_and_what_succeeded_is_not(name, data, red):
    event = Event(n=1, name=name, at="2026-11-20T12:00:00", text="mail.read: not there", data=data)
    assert (style_of(event) == "red") is red
    assert ('mail.read {"id":1}: not there' in event_line(event)) is bool(data.get("tool"))
