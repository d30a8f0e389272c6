"""The commands `policy ...`: list, accept and remove remembered decisions, and explain a ruling."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from backstay.authority import Authority, principal
from backstay.errors import NotVerified, SettingsInvalid
from backstay.policies.accepted import AcceptedLine
from backstay.policies.engine_tools import ENGINE_TOOLS, rule_on_any
from backstay.policies.ruling import Ruling, rule_on_change
from backstay.settings import Settings
from backstay.shown import one_line
from backstay.tools.tool import Tool
from gateways.terminal.flags import By, Output, User, duration, json_object, today
from gateways.terminal.session import account_name, open_store, require_store, silence_logs
from gateways.terminal.terminal import Terminal

Session = Annotated[str | None, Parameter(help="The session that the run belongs to; its lines hold in no other one.")]
_WIDTH = 200


async def list_lines(*, user: str | None = None, output: Output = "text") -> None:
    """List the decisions that are remembered beyond their run, and those that wait to be accepted.

    Parameters
    ----------
    user
        Only those of this user.
    """
    settings, terminal = Settings.load(), Terminal()
    rows: list[dict[str, Any]] = []
    if settings.has_store:
        async with open_store(settings) as store:
            rows = [
                _row(kept)
                for kept in await store.accepted_lines.every()
                if user is None or principal(user) == kept.user_id
            ]
    if not rows:
        terminal.say("no decision is remembered", "dim")
    terminal.results(output, rows, map(_told, rows))


async def why(
    tool: str, arguments: str = "{}", *, user: User = "singleton", session: Session = None, output: Output = "text"
) -> None:
    """Explain how the policy would rule on a call in a new run: the rule that decides, and every line considered.

    Parameters
    ----------
    tool
        The tool, as provider.tool.
    arguments
        Its arguments as a JSON object.
    """
    from opening import read_policy

    settings, terminal = Settings.load(), Terminal()
    given = json_object(arguments, "ARGUMENTS", '{"to": "ana@example.com"}')
    policy = read_policy(settings.policy)
    user = principal(user)
    facts, digests = await _facts(settings, tool, user)
    kept: list[Any] = []
    lines: tuple[AcceptedLine, ...] = ()
    if settings.has_store:
        async with open_store(settings) as store:
            lines = await store.accepted_lines.holding(user, session)
            kept = await store.accepted_lines.every()
            known = (await store.definitions.digests()).get(tool)
        if known and known.isdisjoint(digests):
            facts = facts.model_copy(update={"changed": True})
    ruling = rule_on_any(policy, facts, given, lines=lines, today=today())
    ruling = rule_on_change(ruling, tool) if facts.changed else ruling
    obeyed = {line.id for line in lines}
    about = [row for row in kept if row.line is not None and (row.line.tool, row.user_id) == (tool, user)]
    looked_at = [_looked_at(row, facts, given, ruling, obeyed=row.id in obeyed) for row in about]
    found = {"tool": tool, "safety": facts.safety.value} | ruling.model_dump(
        mode="json", include={"verdict", "rule", "approvers", "quorum"}
    )
    terminal.results(output, found | {"lines": looked_at}, _explained(found, looked_at, ruling.authority))


async def accept(
    *lines: str,
    by: By = None,
    expires: str | None = None,
    output: Output = "text",
) -> None:
    """Accept lines that wait; only people who can write the policy's file may do so.

    Parameters
    ----------
    lines
        Ids of lines, or their beginnings, as `backstay policy list` shows them.
    expires
        After how long they end, such as 30d; by default never, or with their session.
    """
    ends = None if expires is None else time.time() + duration(expires, "--expires")
    await _changed(
        lines, output, lambda store, line: store.accept(line, principal(by or account_name()), expires_at=ends)
    )


async def remove(*lines: str, output: Output = "text") -> None:
    """Forget lines; open runs that began with them keep them. Only people who can write the policy's file may do so.

    Parameters
    ----------
    lines
        Ids of lines, or their beginnings, as `backstay policy list` shows them.
    """
    await _changed(lines, output, lambda store, line: store.remove(line))


async def accept_here(
    settings: Settings, lines: Sequence[str], by: str, agreed: Callable[[AcceptedLine], bool]
) -> bool:
    """Let lines hold if this process can write policy.yaml and has the store that they wait in; return whether it did.

    A person who can write the file could allow the same there. `agreed` returns whether a line is what the person has
    said: the run that names the lines may be anybody's.
    """
    if not _may_write(settings.policy) or not settings.has_store:
        return False
    async with open_store(settings) as store:
        kept = {row.id: row.line for row in await store.accepted_lines.every()}
        found = [kept.get(line) for line in lines]
        if any(line is None or not agreed(line) for line in found):
            return False
        for line in lines:
            await store.accepted_lines.accept(line, by)
    return True


async def _changed(names: tuple[str, ...], output: Output, change: Any) -> None:
    settings, terminal = Settings.load(), Terminal()
    if not names:
        raise SettingsInvalid("LINES: name the lines by id; `backstay policy list` shows them")
    require_store(settings)
    if not _may_write(settings.policy):
        raise NotVerified(
            f"BACKSTAY_POLICY: {settings.policy} cannot be written by {account_name()}; only who can write the policy "
            "may accept and remove lines, or people whom it names under `accepting`, when they decide"
        )
    async with open_store(settings) as store:
        every = await store.accepted_lines.every()
        found = [_named(every, name) for name in names]
        for kept in found:
            await change(store.accepted_lines, kept.id)
        after = {kept.id: kept for kept in await store.accepted_lines.every()}
    rows = [_row(after[kept.id]) if kept.id in after else _row(kept) | {"state": "removed"} for kept in found]
    terminal.results(output, rows, map(_told, rows))


def _named(every: list[Any], name: str) -> Any:
    found = [kept for kept in every if name and kept.id.startswith(name)]
    if len(found) != 1:
        what = "several lines begin" if found else "no line begins"
        raise SettingsInvalid(f"LINES: {what} with {name!r}; `backstay policy list` shows their ids")
    return found[0]


def _may_write(policy: Path) -> bool:
    """Return whether this process could change the file of the policy, or make one."""
    if policy.exists():
        return os.access(policy, os.W_OK)
    return os.access(policy.absolute().parent, os.W_OK)


async def _facts(settings: Settings, name: str, user: str) -> tuple[Tool, frozenset[str]]:
    """Return what a ruling needs to know of a tool, and the whole digests of its definition."""
    from activities.resources import facts_of
    from opening import open_toolbox

    silence_logs(settings)
    if name in ENGINE_TOOLS:
        return ENGINE_TOOLS[name], frozenset()
    async with open_toolbox(settings) as toolbox:
        catalog = await toolbox.catalog(user)
    definition = catalog.definitions.get(name)
    if definition is None:
        near = ", ".join(hit.tool for hit in catalog.search(name, limit=3)) or "none"
        raise SettingsInvalid(f"TOOL: there is no tool {name!r}; the closest are {near}")
    return facts_of(catalog, definition), catalog.pinned[name].digests


def _row(kept: Any) -> dict[str, Any]:
    line = kept.line
    state = kept.state if line is None or line.in_time(time.time()) else "expired"
    if line is None:
        return {"line": kept.id, "state": "unreadable", "user": kept.user_id, "verdict": kept.verdict}
    about = line.about if line.is_learned else "any"
    return {
        "line": kept.id,
        "state": state,
        "verdict": line.verdict,
        "scope": line.scope,
        "tool": line.tool,
        "arguments": line.arguments if line.args_digest else about,
        "user": line.user_id,
        "session": line.session_id,
        "by": line.by,
        "at": line.at,
        "request": line.request,
        "expires": line.expires,
        "definition": line.definition,
    }


def _told(row: dict[str, Any]) -> str:
    if row["state"] == "unreadable":
        return f"{row['line']:<14} unreadable; remove it"
    ends = f" until {row['expires']}" if row["expires"] else ""
    scope = f"session {row['session']}" if row["scope"] == "session" else row["scope"]
    said = f"{row['verdict']} {row['tool']} {row['arguments']}"
    whose = f"{scope} for {row['user']}{ends}, by {row['by']} on {row['at']}, asked in {row['request']}"
    return one_line(f"{row['line']:<14} {row['state']:<8} {said:<50} {whose}", 5 * _WIDTH)


def _looked_at(kept: Any, tool: Tool, arguments: dict[str, Any], ruling: Ruling, *, obeyed: bool) -> dict[str, Any]:
    line, row = kept.line, _row(kept)
    if not obeyed:
        told = f"it is of session {line.session_id}" if row["state"] == "holds" else f"not obeyed: {row['state']}"
    elif ruling.line == line.id:
        told = "decides"
    else:
        told = line.misfit(tool, arguments) or f"fits, but lines overrule only the default: {ruling.rule}"
    return {"line": line.id, "says": line.words, "arguments": row["arguments"], "here": told}


def _explained(found: dict[str, Any], looked_at: list[dict[str, Any]], authority: Authority) -> list[str]:
    people = authority.words if authority.restricts else "anyone who reaches the run"
    asked = [f"who may decide: {people}; needed: {found['quorum']}"] if found["verdict"] == "ask" else []
    lines = [f"  {one_line(line['says'], _WIDTH)}: {one_line(line['here'], _WIDTH)}" for line in looked_at]
    return [
        f"{found['tool']} ({found['safety']}): {found['verdict']}",
        f"rule: {found['rule']}",
        *asked,
        "lines looked at:" if lines else "lines looked at: none",
        *lines,
    ]
