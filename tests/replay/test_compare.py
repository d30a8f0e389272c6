from tests.replay.compare import compared
from tests.requirements import promise


@promise("runs:gate")
def test_what_changed_of_a_shape_is_told_and_shapes_that_came_or_went():
    before = {"kept": ["open_run", "timer", "announce", "close_run"], "same": ["open_run"], "went": ["open_run"]}
    now = {"kept": ["open_run", "call_tool", "close_run"], "same": ["open_run"], "came": ["open_run"]}
    told = list(compared(before, now, ["announce"]))

    assert [line for line in told if "@@" not in line] == [
        "came: new",
        "kept: 3 commands, changed",
        "     open_run",
        "    -timer",
        "    +call_tool",
        "     close_run",
        "same: 1 commands, the same",
        "went: gone",
    ]
