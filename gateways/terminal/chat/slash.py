"""What a person can ask for in a chat besides a turn: `/undo`, `/budget` and the like."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from pydantic import ValidationError

from backstay.budgets.budget import Budget
from backstay.canonical import read_json
from backstay.client import Run
from backstay.errors import BackstayError, TaskInvalid
from backstay.shown import one_line
from gateways.terminal import control, tools
from gateways.terminal.chat.screen import ChatTerminal
from gateways.terminal.chat.turns import Turns
from gateways.terminal.plans import commands as plans
from gateways.terminal.render import budget_rows

_NOTHING_YET = "there are no turns yet, so there is nothing to show"


class Talking(Protocol):
    """The part of a chat that its commands need."""

    terminal: ChatTerminal
    turns: Turns
    by: str
    leaving: bool

    async def change_session(self, name: str) -> None:
        """Go over to another session."""
        ...


Slash = Callable[[Talking, str], Awaitable[None]]


async def obey(talk: Talking, line: str) -> None:
    """Do what a line says that begins with a slash; an error is shown, and the chat goes on."""
    name, rest = [*line.removeprefix("/").split(None, 1), "", ""][:2]
    command = COMMANDS.get(name.lower())
    if command is None:
        talk.terminal.say(f"there is no /{one_line(name, 40)}; /help says what there is", "yellow")
        return
    try:
        await command[1](talk, rest.strip())
    except BackstayError as error:
        talk.terminal.say(str(error), "red")


async def _help(talk: Talking, _: str) -> None:
    for name, (what, _command) in COMMANDS.items():
        talk.terminal.say(f"  /{name:<9} {what}")
    talk.terminal.say("  Esc        while it works: tell it something; Ctrl-C or Ctrl-D: leave, and it goes on")


def _run(talk: Talking) -> Run:
    run = talk.turns.last
    if run is None:
        raise TaskInvalid(_NOTHING_YET)
    return run


async def _undo(talk: Talking, _: str) -> None:
    run = _run(talk)
    shown = await control.previewed(run.id)
    while True:
        typed = await talk.terminal.ask("undo this? [y]es, [n]o:")
        if (typed or "").lower() not in {"y", "yes"}:
            talk.terminal.say("nothing was undone", "yellow")
            return
        now = await control.previewed(run.id, silent=True)
        if now.is_what_was_seen(shown.digest):
            break
        talk.terminal.say("nothing was undone: it has changed since it was shown; this is how it stands now", "yellow")
        shown = await control.previewed(run.id)
    await control.undo(run.id, by=talk.by, last_seen=shown.newest)


async def _budget(talk: Talking, given: str) -> None:
    limits = _limits(given)
    run = talk.turns.last
    if limits and run is not None and await run.is_known_as_open():
        told = await run.top_up(by=talk.by, **limits)
        talk.terminal.say(f"raised: {one_line(json.dumps(told), 500)}", "green")
        return
    if limits:
        budget = (talk.turns.fields.get("budget") or {}) | limits
        try:
            Budget.model_validate(budget)
        except ValidationError as error:
            fault = error.errors()[0]
            raise TaskInvalid(f"/budget: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
        talk.turns.fields["budget"] = budget
    if (own := talk.turns.fields.get("budget")) is not None:
        talk.terminal.say(f"  each turn from now on: {one_line(json.dumps(own), 500)}")
    if run is None:
        return
    told = await run.budget()
    for name, _used, _allowed, text in budget_rows(told.get("budget", {}), told.get("usage", {})):
        talk.terminal.say(f"  {name:<6} {text}")


def _limits(given: str) -> dict[str, Any]:
    """Read `max_steps=5 max_llm_cost_usd=0.5`."""
    limits: dict[str, Any] = {}
    for part in given.split():
        name, sign, value = part.partition("=")
        name = name.replace("-", "_")
        if name in limits:
            raise TaskInvalid(f"/budget: {one_line(name, 80)} is there twice; say once what it is to be")
        try:
            limits[name] = read_json(value)
        except ValueError:
            sign = ""
        if not sign or not name:
            raise TaskInvalid(f"/budget: {one_line(part, 80)!r} is not a limit; give one such as max_steps=5")
    return limits


async def _tools(talk: Talking, query: str) -> None:
    user = talk.turns.fields.get("user_id") or "singleton"
    await (tools.search(query, user=user) if query else tools.list_tools(user=user))


async def _plan(talk: Talking, plan_id: str) -> None:
    await plans.show(_run(talk).id, plan_id or "last")


async def _session(talk: Talking, name: str) -> None:
    if name:
        await talk.change_session(name)
    talk.terminal.say(f"  session {talk.turns.session}, {len(talk.turns.runs)} turns", "bold")
    for run in talk.turns.runs:
        talk.terminal.say(f"  {run.id}")


async def _model(talk: Talking, name: str) -> None:
    if name:
        talk.turns.fields["model"] = None if name == "-" else name
    chosen = talk.turns.fields.get("model")
    said = f"model {one_line(chosen, 200)}" if chosen else "the model that the operator has chosen"
    talk.terminal.say(f"  {said}{', from the next turn on' if name else ''}")


async def _quit(talk: Talking, _: str) -> None:
    talk.leaving = True


COMMANDS: dict[str, tuple[str, Slash]] = {
    "undo": ("undo what the last turn did", _undo),
    "budget": (
        "what was used; `/budget max_steps=5` sets a limit, or raises it by so much while a run works",
        _budget,
    ),
    "tools": ("the tools there are, or those that fit: `/tools send mail`", _tools),
    "plan": ("the plan of the last turn, or another one of it: `/plan p1`", _plan),
    "session": ("the turns so far; `/session ID` goes over to another session", _session),
    "model": ("which model is asked; `/model NAME` chooses another, `/model -` the usual one", _model),
    "help": ("this list", _help),
    "quit": ("leave", _quit),
}
