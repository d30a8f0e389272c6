"""Tell the stories of plans: as lines at the terminal, and as Markdown for those who keep records."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from backstay.approvals.layout import argument_lines
from backstay.approvals.proposal import ProposalPart
from backstay.approvals.proposal_words import summary_words
from backstay.plans.review import Review
from backstay.shown import markdown_line, one_line, shown_arguments

_ALL = 10_000_000
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_FACTS = ("timeout_s", "retries", "transactional", "continue_on_failure", "limits")


def story_lines(story: dict[str, Any]) -> Iterator[str]:
    """Yield the story of a plan as lines."""
    yield from _head(story)
    for step in story["steps"]:
        yield from _step(step)
    if effects := story.get("estimated_side_effects"):
        yield f"changes: {', '.join(one_line(effect, 300) for effect in effects)}"
    for part in story.get("parts", []):
        who = one_line(ProposalPart.model_validate(part).authority.words, 2000)
        needed = f", {part['quorum']} needed" if part["quorum"] > 1 else ""
        yield f"part {part['part']}: {_numbers(part['steps'])}, decided by {who}{needed}"
    if story["approvals"]:
        yield "decisions:"
        yield from (f"  {_approval(approval)}" for approval in story["approvals"])
    if story["changes"]:
        yield f"what it changes in {one_line(story['parent'], 100)}:"
        yield from (f"  {line}" for line in change_lines(story["changes"]))
    if review := story["review"]:
        yield "review:"
        yield from (f"  {line}" for line in _review(review))
    if story["states"]:
        yield "states:"
        yield from (f"  {state['at'][:19]}  {_state(state)}" for state in story["states"])


def _review(review: dict[str, Any]) -> Iterator[str]:
    """Yield what a review found, check by check."""
    told = Review.model_validate(review)
    yield f"confidence {told.confidence:g}, {told.threshold:g} is enough"
    for check in told.checks:
        yield f"{check.words}{f'; report: {check.ref}' if check.ref else ''}"


def _head(story: dict[str, Any]) -> Iterator[str]:
    yield f"plan: {one_line(story['title'], 300) or 'untitled'} (id {one_line(story['plan_id'], 100)})"
    yield f"state {_state(story)}"
    author = f", by {one_line(story['author'], 200)}" if story["author"] else ""
    made = f", made {story['created_at'][:19]}" if story["created_at"] else ""
    yield f"version {story['version']}{author}{made}, hash {story['hash']}"
    if story["summary"]:
        yield f"its author says (nobody checked this): {one_line(story['summary'], 2000)}"
    relatives = {"changes": [story["parent"]] if story["parent"] else []}
    relatives |= {"changed by": story["children"], "proposed beside": story["alternatives"]}
    yield from (
        f"{how} {', '.join(one_line(name, 100) for name in names)}" for how, names in relatives.items() if names
    )


def _state(told: dict[str, Any]) -> str:
    return f"{told['state']} ({told['reason']})" if told["reason"] else str(told["state"])


def _standing(step: dict[str, Any]) -> str:
    """Return how far a step came, in words."""
    said = [f"{step['status']} ({step['reason']})" if step["reason"] else str(step["status"])]
    said += [f"made {step['attempt']} times"] if step["attempt"] > 1 else []
    said += ["could not be undone"] if step["undone"] in {"kept", "parked"} else []
    return ", ".join(said)


def _step(step: dict[str, Any]) -> Iterator[str]:
    marks = f"needed approval, part {step['part']}; " if step.get("needs_approval") else ""
    safety = f"  ({step['safety']})" if step.get("safety") else ""
    yield f"  [{step['idx']}] {one_line(step['action'], 200)}{safety}  {marks}{_standing(step)}"
    if step["summary"]:
        yield f"        {summary_words(one_line(step['summary'], 500))}"
    for name, value in shown_arguments(step["arguments"], _ALL).arguments.items():
        yield from (f"        {line}" for line in argument_lines(name, value))
    yield from (f"        {one_line(line, _ALL)}" for line in (step.get("diff_preview") or "").splitlines())
    yield from (f"        {fact}" for fact in _facts(step))


def _facts(step: dict[str, Any]) -> Iterator[str]:
    """Yield what else is to be said of a step."""
    if step.get("depends_on"):
        yield f"uses what {_numbers(step['depends_on'])} returned"
    yield from (f"{name}: {one_line(str(step[name]), 200)}" for name in _FACTS if name in step)
    how = f": {one_line(step['undo_how'], 500)}" if step.get("undo_how") else ""
    if how or step.get("safety") not in {"read_only", None}:
        yield f"{'can be undone' if step.get('undoable') else 'CANNOT BE UNDONE'}{how}"
    if step["error"]:
        yield f"error: {one_line(step['error'], 1000)}"
    if step["ref"]:
        yield f"result: {one_line(step['ref'], 100)}"


def _approval(approval: dict[str, Any]) -> str:
    """Return a decision on one line: who said what, about which version, and why."""
    sure = "verified" if approval["verified"] else "unverified"
    said = [str(approval["verdict"]), str(approval.get("option", ""))]
    said += [f"without {_numbers(approval['left_out'])}"] if approval.get("left_out") else []
    said += [f"narrowed to {json.dumps(approval['toggles'])}"] if approval.get("toggles") else []
    words = " ".join(part for part in said if part)
    why = f": {one_line(approval['comment'], 1000)}" if approval["comment"] else ""
    by = f"{one_line(approval['by'], 200)} ({sure})"
    return f"{approval['at'][:19]}  {by}: {words}, of {approval['args_digest'][:16]}{why}"


def change_lines(changes: dict[str, Any]) -> Iterator[str]:
    """Yield what a plan changes in another, step by step."""
    yield from changes["lines"]
    for step in changes["steps"]:
        numbers = [number for number in (step["was"], step["idx"]) if number is not None]
        name = " -> ".join(dict.fromkeys(f"[{number}]" for number in numbers))
        yield f"{_SIGNS[step['change']]} {name} {one_line(step['action'], 200)}  {step['change']}"
        yield from (f"    {line}" for line in step["lines"])
    if not changes["lines"] and not changes["steps"]:
        yield "nothing"


def markdown(workflow_id: str, stories: Sequence[dict[str, Any]], undone: list[dict[str, Any]]) -> str:
    """Return the stories of all plans of a run as one document; others' words are escaped."""
    lines = [f"# Plans of {markdown_line(workflow_id, 300)}", ""]
    for story in stories:
        lines += [f"## Plan: {markdown_line(story['title'] or 'untitled')} (id {markdown_line(story['plan_id'])})", ""]
        lines += [f"- {markdown_line(line, 4000)}" for line in _head(story)]
        lines += ["", "### Steps", ""]
        for step in story["steps"]:
            head, *rest = _step(step)
            lines.append(f"- {markdown_line(head.strip(), 2000)}")
            lines += [f"    - {markdown_line(line.strip(), _ALL)}" for line in rest]
        lines += _section("Expected changes", [one_line(e, 300) for e in story.get("estimated_side_effects", [])])
        lines += _section("Decisions", [_approval(approval) for approval in story["approvals"]])
        if story["changes"]:
            title = f"Changes to plan {one_line(story['parent'], 100)}"
            lines += _section(title, list(change_lines(story["changes"])))
        lines += _section("Review", list(_review(story["review"])) if story["review"] else [])
        lines += _section("States", [f"{state['at']} {_state(state)}" for state in story["states"]])
        lines.append("")
    taken = [f"effect {effect['effect']}, {effect['tool']}: {effect['state']}" for effect in undone]
    lines += ["## Undone", "", *(f"- {markdown_line(line)}" for line in taken)] if taken else []
    return "\n".join(lines).rstrip()


def _section(title: str, lines: list[str]) -> list[str]:
    return (
        ["", f"### {markdown_line(title)}", "", *(f"- {markdown_line(line, _ALL)}" for line in lines)] if lines else []
    )


def _numbers(numbers: list[int]) -> str:
    return f"step{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
