"""Decide at a terminal: at the prompt of `backstay attach`, and with the commands that a request names."""

import asyncio
import json
import re
import sys
from contextlib import AsyncExitStack
from typing import Any

import pytest

from backstay.approvals.verdicts import verdict_words
from tests.cli.commands import BACKSTAY, Done, Terminal, at_terminal, forked
from tests.e2e.approvals.doors.cases import Edit, End
from tests.e2e.approvals.doors.client import remembered, verdicts
from tests.e2e.approvals.doors.decoding import Shown, plain
from tests.e2e.approvals.doors.door import NotHere, Refused, Request, Told
from tests.e2e.approvals.doors.forms import KEPT, Field, Form
from tests.e2e.approvals.doors.screens import calls_of_terminal, request_of_terminal
from tests.e2e.approvals.doors.world import World
from tests.slack.workspace import KEY as SIGNING_KEY

MENU = "[d]etach?"
PROMPTS = "):"
REMEMBERED = re.compile(r"remembered for (.+?): ([\w.]+) \(line")
LONGEST_LINE = 4000
"""What a terminal takes of a line."""
EDITOR = """
import json
import sys
from pathlib import Path

change, file = (Path(name) for name in sys.argv[1:])
told = json.loads(change.read_text(encoding="utf-8"))
arguments = json.loads(file.read_text(encoding="utf-8"))
arguments = {name: value for name, value in arguments.items() if name not in told["drop"]} | told["set"]
file.write_text(json.dumps(arguments), encoding="utf-8")
"""
PROMPT, INLINE, COMMANDS = "prompt", "prompt in one line", "commands"


class TerminalDoor:
    """Sit at a terminal, one for each person and run; or only call commands."""

    at_once = True
    shows_record = True

    def __init__(self, world: World) -> None:
        self.world = world
        self._seats: dict[tuple[str, str], tuple[AsyncExitStack, Terminal]] = {}
        self._standing: dict[tuple[str, str], str] = {}
        """What stands at each of them."""
        self._editor = world.folder / "editor.py"
        self._editor.write_text(EDITOR, encoding="utf-8")

    def _how(self, handle: Any) -> str:
        return (PROMPT, INLINE, COMMANDS, PROMPT)[self.world.cases[handle.id].end.way]

    def _environment(self, handle: Any) -> dict[str, str]:
        more = {"BACKSTAY_APPROVER_KEY": SIGNING_KEY}
        if self._how(handle) == PROMPT:
            more["EDITOR"] = f"{sys.executable} -S {self._editor} {self._change(handle)}"
        return self.world.environment(**more)

    def _change(self, handle: Any):
        return self.world.folder / f"{handle.id}.change"

    async def _seat(self, handle: Any, by: str) -> Terminal:
        if (handle.id, by) not in self._seats:
            stack = AsyncExitStack()
            opening = at_terminal(
                *(*BACKSTAY, "attach", handle.id, "--by", by),
                environment=self._environment(handle),
                nursery=self.world.nursery,
            )
            self._seats[handle.id, by] = stack, await stack.enter_async_context(opening)
        return self._seats[handle.id, by][1]

    async def _command(self, handle: Any, *arguments: str) -> str:
        return (await self._done(handle, *arguments)).out

    async def _done(self, handle: Any, *arguments: str) -> Done:
        given = {"environment": self._environment(handle), "folder": self.world.folder}
        done = await forked(self.world.nursery, *arguments, **given)
        if done.code != 0:
            raise Refused(done.err)
        return done

    async def look(self, handle: Any, request: Request, by: str) -> list[Shown]:
        if self._how(handle) == COMMANDS:
            return calls_of_terminal(await self._command(handle, "show", handle.id, request["id"]))
        terminal, seat = await self._seat(handle, by), (handle.id, by)
        screen = self._standing.get(seat) or await terminal.shows(MENU)
        if not _is_about(screen, request) and "see the [o]ther plan" in screen.rpartition("\n")[2]:
            terminal.type("o")
            screen = await terminal.shows(MENU)
        self._standing[seat] = screen
        if not _is_about(screen, request):
            # Another one stands there, and is decided later.
            return calls_of_terminal(await self._command(handle, "show", handle.id, request["id"]))
        if "see the [w]hole" in screen.rpartition("\n")[2]:
            terminal.type("w")
            self._standing[seat] = screen = await terminal.shows(MENU)
            assert "[a]pprove" in screen.rpartition("\n")[2], "all of it stands there, and it cannot be approved"
        return calls_of_terminal(screen)

    def _stands(self, handle: Any, request: Request, by: str) -> bool:
        """Return whether a request stands at the seat of a person, where they decide it."""
        screen = self._standing.get((handle.id, by))
        return screen is not None and _is_about(screen, request)

    async def answer(self, handle: Any, request: Request, text: str, by: str) -> None:
        if self._how(handle) == COMMANDS:
            await self._command(handle, "answer", handle.id, request["id"], "--by", by, "--answer", text)
            return
        terminal = await self._seat(handle, by)
        self._standing[handle.id, by] = await terminal.shows("your answer (press Enter alone for other choices):")
        terminal.type(text)
        await self._taken(handle, by, "answer")

    async def fill(self, handle: Any, request: Request, form: Form, by: str) -> None:
        if self._how(handle) == COMMANDS:
            await self._fill_by_command(handle, request, form, by)
            return
        terminal = await self._seat(handle, by)
        self._standing[handle.id, by] = await terminal.shows(MENU)
        terminal.type("a")
        await terminal.shows("a single . stops")
        for _ in form.fields:
            asks = await terminal.shows(PROMPTS)
            at, field = _asked(asks, form)
            _check_field(asks, field)
            if form.wrong is not None and form.wrong[0] == at:
                terminal.type(form.wrong[1])
                said = await terminal.shows(PROMPTS)
                assert f"{form.wrong[1]}\n  " in said, said
            terminal.type("" if field.filled is KEPT else _line(asks, field))
        await self._taken(handle, by, "answer")

    async def _fill_by_command(self, handle: Any, request: Request, form: Form, by: str) -> None:
        named = ["--by", by, handle.id, request["id"]]
        if form.way == 0:
            await self._command(handle, "answer", *named, "--answer", json.dumps(form.answer))
            return
        fields = [("--field", f"{field.name}={field.line}") for field in form.fields if field.filled is not KEPT]
        flags = [flag for field in fields for flag in field] or ["--answer", json.dumps(form.answer)]
        if form.wrong is not None:
            at, said = form.wrong
            wrong = ["--field", f"{form.fields[at].name}={said}"]
            with pytest.raises(Refused):
                await self._command(handle, "answer", *named, *flags, *wrong)
        await self._command(handle, "answer", *named, *flags)

    async def edit(self, handle: Any, request: Request, edit: Edit, by: str) -> None:
        if not self._stands(handle, request, by):
            await self._edit_by_command(handle, request, edit, by)
            return
        inline = json.dumps(edit.set)
        if self._how(handle) == INLINE and (edit.drop or len(inline) > LONGEST_LINE):
            raise NotHere
        change = {"set": edit.set, "drop": edit.drop}
        self._change(handle).write_text(json.dumps(change), encoding="utf-8")
        terminal = await self._seat(handle, by)
        terminal.type("e")
        if len(request["calls"]) > 1:
            await terminal.shows("number:")
            terminal.type(str(edit.call))
        if self._how(handle) == INLINE:
            await terminal.shows("names: ")
            terminal.type(inline)
        await self._taken(handle, by, "modify")

    async def _edit_by_command(self, handle: Any, request: Request, edit: Edit, by: str) -> None:
        if request["proposal"] is None and len(request["calls"]) == 1:
            # Whoever names every call has them made at once.
            raise NotHere
        change: dict[str, Any] = {"verdict": "modify", "arguments": edit.set}
        change |= {"without": list(edit.drop)} if edit.drop else {}
        await self._approve_by_command(handle, request, by, "--calls", json.dumps({str(edit.call): change}))

    async def _approve_by_command(self, handle: Any, request: Request, by: str, *more: str) -> Told:
        digest = ("--args-digest", request["args_digest"]) if request["args_digest"] else ()
        done = await self._done(handle, "approve", handle.id, request["id"], "--by", by, *digest, *more)
        if self._stands(handle, request, by):
            del self._standing[handle.id, by]
        return REMEMBERED.findall(done.err)

    async def approve(self, handle: Any, request: Request, end: End, by: str) -> Told:
        flags = [flag for index in sorted(end.leave_out) for flag in ("--reject-step", str(index))]
        if end.change is not None:
            flags = ["--calls", json.dumps(verdicts(request, end))]
        elif request["proposal"] is None and end.leave_out:
            flags = ["--calls", json.dumps({str(index): {"verdict": "reject"} for index in end.leave_out})]
        narrowed = ["--no-processes"] if end.no_processes else []
        narrowed += ["--step-timeout", str(end.seconds)] if end.seconds else []
        narrowed += ["--option", "dry_run_only"] if end.dry_run else []
        held = [f"--{name.replace('_', '-')}={value}" for name, value in remembered(end).items()]
        if not self._stands(handle, request, by) or narrowed or end.change is not None or (held and end.leave_out):
            return await self._approve_by_command(handle, request, by, *flags, *narrowed, *held)
        terminal = await self._seat(handle, by)
        if end.remember:
            return await self._remember(handle, request, end, by)
        terminal.type("c" if end.leave_out else "a")
        for call in request["calls"] if end.leave_out else ():
            await terminal.shows(f"[{call['index']}] {call['tool']}: [a]pprove or [r]eject?")
            terminal.type("r" if call["index"] in end.leave_out else "a")
        await self._taken(handle, by, "approve")
        return []

    async def _remember(self, handle: Any, request: Request, end: End, by: str) -> Told:
        """Press the key of what is remembered, and say for which arguments."""
        terminal = await self._seat(handle, by)
        terminal.type("m")
        await terminal.shows(MENU)
        menu = terminal.screen
        word, key = {"run": ("for this r[u]n", "u"), "session": ("for this sess[i]on", "i")}.get(
            end.remember, ("ne[v]er", "v") if end.remember == "never" else ("a[l]ways", "l")
        )
        assert word in menu, menu
        terminal.type(key)
        await terminal.shows("[t]hese only?")
        terminal.type("n" if end.any_arguments else "t")
        if end.remember == "never":
            await terminal.shows("why?")
            terminal.type("not so")
        await self._taken(handle, by, end.verdict)
        tools = {call["tool"] for call in request["calls"]}
        async with asyncio.timeout(150):
            while {tool for _, tool in REMEMBERED.findall(terminal.screen)} != tools:
                terminal.changed.clear()
                await terminal.changed.wait()
        return REMEMBERED.findall(terminal.screen)

    async def reject(self, handle: Any, request: Request, end: End, by: str) -> Told:
        if not self._stands(handle, request, by):
            more = ["--never", f"--remember-arguments={remembered(end)['remember_arguments']}"] if end.remember else []
            named = (handle.id, request["id"], "--by", by)
            return REMEMBERED.findall((await self._done(handle, "reject", *named, "--comment", "not so", *more)).err)
        if end.remember:
            return await self._remember(handle, request, end, by)
        terminal = await self._seat(handle, by)
        terminal.type("r")
        await terminal.shows("why?")
        terminal.type("not so")
        await self._taken(handle, by, "reject")
        return []

    async def _taken(self, handle: Any, by: str, verdict: str, within_s: float = 150) -> None:
        """Wait until a decision is taken; raises Refused, with the menu standing there again, if it is not."""
        terminal = await self._seat(handle, by)
        said = verdict_words(verdict)
        taken = (f"decided: {said} by", f"recorded; it waits for others: {said} by")
        async with asyncio.timeout(within_s):
            while not any(text in terminal.screen for text in taken):
                terminal.changed.clear()
                if "not accepted: " in terminal.screen and MENU in terminal.screen.partition("not accepted: ")[2]:
                    raise Refused(await terminal.shows(MENU))
                await terminal.changed.wait()
        del self._standing[handle.id, by]

    async def leave(self, handle: Any) -> None:
        for key in [key for key in self._seats if key[0] == handle.id]:
            stack, _ = self._seats.pop(key)
            await stack.aclose()
            self._standing.pop(key, None)


def _asked(asks: str, form: Form) -> tuple[int, Field]:
    """Return which field a question is about: a form is asked in the order of its names."""
    said = plain(asks.rpartition("\n  ")[2].strip())
    found = [at for at, field in enumerate(form.fields) if said.startswith((f"{field.name}: ", f"{field.name} ("))]
    assert len(found) == 1, (asks, form)
    return found[0], form.fields[found[0]]


def _check_field(asks: str, field: Field) -> None:
    """Assert that the question for a value says what it is, what can be chosen, and what Enter takes."""
    asks = plain(asks.rpartition("\n  ")[2] if "\n  " in asks else asks)
    assert field.name.strip() in asks, (asks, field)
    assert field.schema.get("title", "") in asks, (asks, field)
    default = field.schema.get("default", KEPT)
    if default is not KEPT:
        assert f"default {default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)}" in asks
    assert ("required" if field.required else "optional") in asks
    for value, title in field.choices:
        assert value in asks, (asks, field)
        assert title in asks, (asks, field)


def _line(asks: str, field: Field) -> str:
    """Return what is typed for a value: a choice by its number, where it has one, and else as it reads."""
    values = [value for value, _ in field.choices]
    if field.kind == "choice":
        number = values.index(field.filled) + 1
        return str(number) if f"[{number}] {field.filled}" in plain(asks) else field.line
    return field.line


def _is_about(screen: str, request: Request) -> bool:
    return request_of_terminal(screen)[0].startswith(f"{request['id']} ")
