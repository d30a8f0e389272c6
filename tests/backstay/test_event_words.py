from hypothesis import given
from hypothesis import strategies as st

from backstay.budgets.usage import ModelUsage
from backstay.shown import one_line
from backstay.task.event import Event, EventDraft, call_drafts, model_draft
from backstay.tools.tool import ToolResult
from tests.requirements import promise

NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N"], include_characters="._-"), min_size=1, max_size=120)
WORDS = st.text(st.sampled_from(list("ab:->. ")), max_size=40)


def event_of(draft: EventDraft) -> Event:
    return Event(n=1, at="2026-11-20T12:00:00.000+00:00", **draft.model_dump())


@promise("docs:events-said")
@given(NAMES, WORDS, st.integers(0, 9))
def test_what_a_call_came_to_is_said_without_its_tool(tool, words, step):
    failed = ToolResult(success=False, error=f"x{words}", error_type="OutcomeUnknown", timed_out=True)
    answered = ToolResult(success=True, snippet=f"x{words}")
    for result, told in ((failed, failed.error), (answered, answered.snippet)):
        draft, *_ = call_drafts(tool, {"id": 1}, result, effect=1, sources=None, step=step)
        assert event_of(draft).said == one_line(told, 200)
        assert draft.data.get("timed_out", False) is result.timed_out
    silent, *_ = call_drafts(tool, {}, ToolResult(success=True), effect=None, sources=None, step=step)
    assert event_of(silent).said == ""


@promise("docs:events-said")
def test_what_a_model_was_asked_is_said_without_the_step():
    asked = model_draft("gpt", ModelUsage(), 7, ["call_tool"], "ref")
    assert event_of(asked).text == "step 7: asked the model -> call_tool"
    assert event_of(asked).said == "asked the model -> call_tool"
    other = EventDraft(name="run.started", text="step 8: count", step_index=7)
    assert event_of(other).said == "step 8: count"
