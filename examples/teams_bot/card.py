"""Paint a request as an Adaptive Card, and read what people fill in of it.

What others wrote stands in runs of text, of which Teams makes no format, no link and no mention.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.fields import FormField, as_typed
from backstay.canonical import digest_of
from backstay.errors import DecisionRefused
from backstay.shown import clipped_words, one_line
from examples.teams_bot.activity import Activity
from people.requests import posted as shown
from people.requests.editing import change_words, edit_of, edited_arguments
from people.requests.entered import Edit, FormEntry, Typed, remembering
from people.requests.form import DecisionForm
from people.requests.key import RequestKey

MOST = 36_000
"""Characters of a card; Teams takes 40,000, of which links and what is around the card take some."""
SHOWN, ENDING = 28_000, 4_000
"""Characters of what is shown in it, and how many of them are kept for its end."""
_LONGEST = 3_000
_IN_A_ROW = 6
"""How many buttons Teams shows of a row."""
_STYLES = {"primary": "positive", "danger": "destructive"}
_BOLD = {"weight": "Bolder"}
_LOOKS = {
    "heading": {"size": "Large", **_BOLD},
    "note": {"size": "Small", "isSubtle": True},
    "call": _BOLD,
    "end": _BOLD,
}
Json, Options = dict[str, Any], Sequence[tuple[str, str]]


def painted(posted: shown.PostedRequest) -> tuple[Json, str]:
    """Return the card of a request, and what it leaves out; empty when it shows everything."""
    body, hidden = _body(posted)
    request, links = posted.request, posted.request.links
    missing = shown.left_out(request, hidden)
    if posted.is_open and missing and "approve" in request.options:
        where = "on the page" if links.page else "at a terminal, with backstay attach"
        body.append(_line("end", f"Not all of it is shown here ({missing}); look at it and approve it {where}."))
    data = {"backstay": RequestKey.of(posted.workflow_id, request).value, "seen": digest_of(body)}
    form, actions, left = DecisionForm.of(request), list[Json](), MOST - _size(body)
    for choice in shown.offered_choices(posted, hidden):
        action = _action(choice, form, request, data)
        # A form that has no room, such as of hundreds of calls, is filled in on the page.
        if _size(action) < left:
            actions.append(action)
            left -= _size(action)
    named = {"Look at all of it" if missing else "The request": links.page, "The run in Temporal": links.web_ui}
    actions += [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in named.items() if url]
    rows = [actions[at : at + _IN_A_ROW] for at in range(0, len(actions), _IN_A_ROW)]
    return card([*body, *({"type": "ActionSet", "actions": row} for row in rows)]), missing


def card(body: Sequence[Json], actions: Sequence[Json] = ()) -> Json:
    """Return a card, as large as Teams lets it be."""
    return {"type": "AdaptiveCard", "version": "1.5", "msteams": {"width": "Full"}, "body": body, "actions": actions}


def told(words: str) -> Json:
    """Return a card that only says something."""
    return card([_line("text", words)])


def edit_card(request: ApprovalRequest, call: RequestedCall, whole: Mapping[str, Any], key: RequestKey) -> Json:
    """Return the form in which the arguments of one call are changed, which are given whole."""
    fields = [*enumerate(edited_arguments(whole, _LONGEST))]
    offered = [(at, each) for at, each in fields if len(each.text) <= _LONGEST]
    inputs = [_text(f"argument{at}", one_line(each.name, 80), each.text, lines=True) for at, each in offered]
    left = ", ".join(one_line(each.name, 80) for at, each in fields if (at, each) not in offered)
    note = [_line("note", f"Too long for a form, and left as they are: {left}")] if left else []
    data = {"backstay": key.value, "choice": "change", "call": str(call.index), "seen": digest_of(inputs)}
    send = {"type": "Action.Submit", "title": "Ask again", "data": data}
    return card([_line("text", change_words(request, call)), *inputs, *note, _text("comment", "Comment")], [send])


def edit_in(sent: Activity, call: int, whole: Mapping[str, Any]) -> Edit:
    """Return what a person changed of a call; raises EntryRefused."""
    names = {f"argument{at}": each.name for at, each in enumerate(edited_arguments(whole, _LONGEST))}
    given = sent.value or {}
    return edit_of(call, whole, {name: sent.text(field) for field, name in names.items() if field in given})


def entered_in(sent: Activity, form: DecisionForm) -> FormEntry:
    """Return what a person filled in of a card; raises EntryRefused, or DecisionRefused for no card of ours."""
    comment = sent.text("comment")
    match choice := sent.text("choice"):
        case "approve" | "dry_run" | "happened" | "did_not_happen" | "retry":
            return FormEntry(choice)
        case "reject":
            return FormEntry("reject_stop" if sent.text("then") == "stop" else "reject", comment)
        case "remember":
            return remembering(sent.text("remember"), sent.text("arguments") or "these", comment)
        case "choose":
            limits = {limit.field: typed for limit in form.limits if (typed := sent.text(limit.field).strip())}
            none = sent.text("processes") == "no"
            return FormEntry("approve", comment, left_out=sent.numbers("out"), no_processes=none, limits=limits)
        case "answer":
            fields: dict[tuple[str, ...], Typed] = {}
            for at, field in enumerate(form.fields):
                fields[field.path] = sent.numbers(f"field{at}") if field.choices else sent.text(f"field{at}")
            return FormEntry("answer", answer=sent.text("answer"), fields=fields)
        case _:
            raise DecisionRefused("this card is of another version; look for a newer one")


def _body(posted: shown.PostedRequest) -> tuple[list[Json], int]:
    """Return what a card shows, and how many characters of the request have no room in it.

    Behind the first line that has no room, nothing more is shown before the end: it would seem to belong elsewhere.
    """
    parts, left, hidden, ends_at = list[Json](), SHOWN - ENDING, 0, 0
    for kind, lines in shown.paragraphs(posted, expiry=True):
        if kind == "end":
            left, ends_at = (left if not hidden else 0) + ENDING, len(parts)
        for line in "\n".join(lines).split("\n"):
            part = _line(kind, line)
            left -= _size(part) if line else 0
            if left < 0:
                hidden, left = hidden + len(line), -1
            elif line:
                parts.append(part)
    return parts[:ends_at] + ([_line("end", clipped_words(hidden))] if hidden else []) + parts[ends_at:], hidden


def _line(kind: str, line: str) -> Json:
    # Several spaces are shown as one, and only the head of a call stands at the margin.
    told = line.lstrip(" ")
    look = _LOOKS.get("call" if kind == "code" and told == line else kind)
    text = "\u00a0" * (len(line) - len(told)) + told
    run = {"type": "TextRun", "text": text, **look} if look else text
    return {"type": "RichTextBlock", "inlines": [run], **({} if look else {"spacing": "None"})}


def _size(part: Any) -> int:
    """Return how many characters something takes, as Teams counts them."""
    return len(json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode("utf-16-le")) // 2


def _action(choice: shown.OfferedChoice, form: DecisionForm, request: ApprovalRequest, data: Json) -> Json:
    """Return the button of a choice, which sends it, or opens what is filled in first."""
    style = {"style": _STYLES[choice.style]} if choice.style else {}
    send = {"type": "Action.Submit", "title": choice.title, "data": {**data, "choice": choice.name}, **style}
    if not (inputs := _inputs(choice.name, form, request)):
        return send | ({"data": send["data"] | {"call": str(form.calls[0].index)}} if choice.name == "modify" else {})
    form_card = card(inputs, [send | {"title": choice.title.removesuffix("…")}])
    return {"type": "Action.ShowCard", "title": choice.title, "card": form_card, **style}


def _inputs(choice: str, form: DecisionForm, request: ApprovalRequest) -> list[Json]:
    comment = _text("comment", "Comment", lines=True)
    match choice:
        case "reject":
            ends = [("go_on", "The run goes on without it"), ("stop", "The run stops, and what it did is undone")]
            return [comment | {"label": "Why? The model reads it."}, _choice("then", "And then?", ends, "go_on")]
        case "remember":
            which = [("these", "The same arguments only"), ("any", "Any arguments")]
            how = _choice("remember", "What is decided?", shown.remember_options(request), request.may_remember[0])
            return [how, _choice("arguments", "For which calls?", which, "these"), comment]
        case "choose":
            own = [_choice("out", "Leave these out", shown.call_options(form.calls), several=True)]
            starts = [("yes", "It may start them"), ("no", "It may start none")]
            processes = [_choice("processes", form.processes, starts, "yes")] if form.processes else []
            limits = [_text(each.field, f"{each.label}; at most {each.most:g}") for each in form.limits]
            return [*own, *processes, *limits, comment]
        case "answer":
            fields = [_field(f"field{at}", each) for at, each in enumerate(form.fields) if each.kind != "nothing"]
            return fields if form.fields else [_text("answer", "Your answer", lines=True)]
        case "modify" if len(form.calls) > 1:
            offered = shown.call_options(form.calls)
            return [_choice("call", "Which one is to be changed?", offered, offered[0][0])]
        case _:
            return []


def _field(name: str, field: FormField) -> Json:
    if field.choices:
        options = [(str(at), each.title or as_typed(each.value)) for at, each in enumerate(field.choices)]
        held = field.default if isinstance(field.default, list) else [field.default]
        chosen = [str(at) for at, each in enumerate(field.choices) if each.value in held and field.default is not None]
        return _choice(name, field.line(), options, ",".join(chosen), several=field.kind == "choices")
    if field.kind == "yes or no":
        chosen = {True: "yes", False: "no"}.get(field.default, "") if isinstance(field.default, bool) else ""
        return _choice(name, field.line(), [("yes", "Yes"), ("no", "No")], chosen)
    return _text(name, field.line(), field.default_text, lines=field.kind in {"text", "JSON"})


def _text(name: str, label: str, value: str = "", *, lines: bool = False) -> Json:
    return {"type": "Input.Text", "id": name, "label": label, "value": value, "isMultiline": lines}


def _choice(name: str, label: str, options: Options, value: str = "", *, several: bool = False) -> Json:
    choices = [{"title": one_line(title, 200), "value": given} for given, title in options]
    said = {"type": "Input.ChoiceSet", "id": name, "label": label, "choices": choices, "value": value}
    return {**said, "wrap": True, "isMultiSelect": several}
