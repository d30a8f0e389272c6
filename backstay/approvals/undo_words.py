"""Say in words how a call is undone, from the call that undoes it as its template is described.

`recall_email(message_id=result.message_id)` becomes "recall_email, with message_id from its answer".
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from backstay.approvals.layout import said_shortly
from backstay.policies.policy import Policy, on_its_way, rule
from backstay.shown import one_line
from backstay.tools.tool import Safety, Tool

_LONGEST = 60
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_WHOLE = {"result": "its answer", "arguments": "its arguments"}
_ASKED = "; people must agree by "


class UndoTold(NamedTuple):
    """Tell whether what a tool does can be undone."""

    undoable: bool
    how: str | None
    """How it is undone, as its template is described and with the rule that asks first, or why it is not."""


def undo_told(tool: Tool, policy: Policy | None = None, today: str = "") -> UndoTold:
    """Return whether effects of a tool can be undone as far as it declares that, and as a policy lets people do it."""
    if (declared := tool.undo_declared) is None:
        return UndoTold(False, None)
    how = one_line(declared, 300)
    if policy is None or tool.undo_tool is None:
        return UndoTold(True, how)
    # A person may always undo a run by the operator's rules alone; those of a task hold for what it does by itself.
    policy = policy.operators
    undoing = Tool(name=tool.undo_tool, safety=Safety.WRITE_SAFE, undoes=tool.name)
    ruling = rule(policy, undoing, {}, purpose="undo", today=today)
    # Nobody is asked about what the undoing tool calls: the call is refused.
    reached = next(on_its_way(policy, Tool(name=tool.undo_tool, calls=tool.undo_calls), purpose="undo"), None)
    if ruling.verdict == "deny" or reached is not None:
        why = ruling if reached is None or ruling.verdict == "deny" else reached
        return UndoTold(False, one_line(f"denied by the policy: {why.rule}", 300))
    return UndoTold(True, one_line(f"{how}{_ASKED}{ruling.rule}", 600) if ruling.verdict == "ask" else how)


def undo_words(how: str, arguments: Mapping[str, Any]) -> str:
    """Return how a call with these arguments is undone, in words; any other text stays as it is."""
    how, asked, by = how.partition(_ASKED)
    return f"{_called(how, arguments)}{asked}{by}"


def _called(how: str, arguments: Mapping[str, Any]) -> str:
    name, opened, inside = how.partition("(")
    if not opened or not inside.endswith(")"):
        return how
    split = (part.partition("=") for part in _parts(inside[:-1]))
    said = [_given(argument, expression, arguments) for argument, _, expression in split]
    return f"{name}, with {', '.join(said)}" if said else name


def _parts(text: str) -> Iterator[str]:
    """Yield the arguments of a call as they are written, cut at commas outside of quotes and brackets."""
    depth, quote, begun, escaped = 0, "", 0, False
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote and not escaped else quote
            escaped = character == "\\" and not escaped
            continue
        quote = character if character in "\"'" else ""
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth == 0:
            yield text[begun:at].strip()
            begun = at + 1
    if rest := text[begun:].strip():
        yield rest


def _given(name: str, expression: str, arguments: Mapping[str, Any]) -> str:
    """Return what the undoing call is given for one argument."""
    source, _, path = expression.partition(".")
    plain = bool(path) and path.replace(".", "").replace("_", "").isalnum()
    if expression in _WHOLE:
        return _WHOLE[expression]
    if source == "result" and plain:
        return f"{name} from its answer" if path == name else f"{name} from its answer ({path})"
    if source == "arguments" and path in arguments and isinstance(arguments[path], str | int | float):
        return f"{name} {said_shortly(arguments[path], _LONGEST)}"
    if source == "arguments" and plain:
        return f"the same {name}" if path == name else f"{name} from its argument {path}"
    return f"{name} {said_shortly(expression, _LONGEST)}"
