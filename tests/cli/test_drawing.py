"""How events and ends of runs look at the terminal."""

import io

import pytest
from rich.console import Console

from backstay.effects.effect import Effect, EffectState
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.task.result import Outcome, Result
from backstay.tools.recipients import call_line
from gateways.terminal.render import budget_rows, ending_lines, event_line, style_of
from gateways.terminal.terminal import Terminal
from tests.requirements import promise

READ = {"tool": "mail.read", "arguments": {"id": 1}}


@promise("demo:failed-read")
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
    assert ('mail.read {"id":1}' in event_line(event)) is bool(data.get("tool"))


@promise("budget:shown")
def test_small_sums_and_limits_are_shown_in_full():
    (_, _, (_, _, _, text)) = budget_rows({"max_llm_cost_usd": 0.001}, {"llm_cost_usd": 0.00002})
    assert text == "0.00002/0.001"


@promise("clients:call-line")
def test_a_call_is_one_line_that_fits_where_people_follow_it_and_a_failure_says_all_of_why():
    told = {"tool": "mail.send_email", "arguments": {"body": "x" * 200, "to": "a@x.example"}}
    done = Event(n=1, name="action.called", at="2026-11-20T12:00:00", text=f"mail.send_email -> {'y' * 200}", data=told)
    why = f"mail.send_email: {'z' * 200}"
    failed = Event(n=2, name="action.failed", at="2026-11-20T12:00:00", text=why, data=told)

    assert [len(event_line(done, width=width)) <= width for width in (90, 120, 200)] == [True] * 3
    assert event_line(done, width=90).startswith('12:00:00  step 0  mail.send_email {"to":"a@x.example","body":')
    assert " -> yyy" in event_line(done, width=90)
    assert why.partition(": ")[2] in event_line(failed, width=90)
    assert call_line(told["tool"], told["arguments"]) in event_line(done)


@promise("clients:end")
@pytest.mark.parametrize(
    ("undo", "said"),
    [
        ("recall(id=1)", "1 change made; undo it with: backstay undo task-1"),
        (None, "1 change made; it cannot be undone"),
    ],
)
def test_the_end_of_a_run_names_an_undo_only_where_something_can_be_undone(undo, said):
    effect = Effect(id="task-1/r/1", n=1, tool="mail.send", args_digest="d", state=EffectState.APPLIED, undo=undo)
    result = Result(outcome=Outcome.COMPLETED, success=True, workflow_id="task-1", effects=(effect,))
    assert said in [line for line, _ in ending_lines(result)]


@promise("clients:end-unknown")
@pytest.mark.parametrize("state", [EffectState.DISPATCHED, EffectState.UNKNOWN, EffectState.DOUBTFUL])
def test_the_end_of_a_run_names_an_effect_of_which_nobody_knows_whether_it_took_place(state):
    effect = Effect(id="task-1/r/1", n=1, tool="mail.send", args_digest="d", state=state)
    result = Result(outcome=Outcome.CANCELLED, success=False, workflow_id="task-1", effects=(effect,))
    assert "1 change made; it cannot be undone" in [line for line, _ in ending_lines(result)]


@promise("clients:end-parts")
def test_the_end_of_a_run_tells_which_effects_can_be_undone_and_which_cannot():
    tools = [("crm.update", "restore(id=1)"), ("mail.send", None), ("mail.send", None)]
    effects = tuple(
        Effect(id=f"task-1/r/{n}", n=n, tool=tool, args_digest="d", state=EffectState.APPLIED, undo=undo)
        for n, (tool, undo) in enumerate(tools, 1)
    )
    result = Result(outcome=Outcome.COMPLETED, success=True, workflow_id="task-1", effects=effects)
    assert [line for line, _ in ending_lines(result)][-3:] == [
        "3 changes made; undo 1 of them with: backstay undo task-1",
        "  can be undone: crm.update",
        "  cannot be undone: mail.send (2 times)",
    ]


@promise("clients:narrow-lines")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["漢字" * 30, "plain words " * 30, "\u0301" * 400, "a\u0301漢" * 60])
@pytest.mark.parametrize(("indent", "width"), [(109, 80), (79, 80), (0, 1), (8, 9), (8, 24)])
def test_a_line_of_any_text_at_any_depth_goes_on_in_a_terminal_of_any_width(text, indent, width):
    terminal, screen = Terminal(), io.StringIO()
    terminal.console = Console(file=screen, force_terminal=True, color_system=None, width=width)

    terminal.show([(f"{' ' * indent}{text}", "")])

    shown, whole = screen.getvalue().splitlines(), one_line(text, 10_000).strip()
    assert "".join(line.partition("┆ ")[2] or line for line in shown).strip() == whole
    assert len(shown) < 2 * len(whole)
