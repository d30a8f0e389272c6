"""The command `policy test`: compare the rulings of a policy with those that a file of cases expects."""

from pathlib import Path
from typing import Any

from pydantic import Field

from backstay.errors import SettingsInvalid, TaskInvalid
from backstay.frozen import Frozen
from backstay.policies.engine_tools import ENGINE_TOOLS, rule_on_any
from backstay.policies.policy import Policy
from backstay.policies.ruling import Permission, Ruling
from backstay.settings import Settings
from backstay.shown import one_line
from backstay.tools.tool import Tool
from backstay.yaml_text import DatesAsText, as_json
from gateways.terminal.exit_codes import DONE, FAILED
from gateways.terminal.flags import Output, User, today
from gateways.terminal.session import silence_logs
from gateways.terminal.terminal import Terminal

_WIDTH = 300
_PATIENCE_S = 15.0
"""How long servers that are starting are waited for."""


class PolicyCase(Frozen):
    """Hold one call, and what the policy must say of it."""

    tool: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict)
    expected: Permission
    rule: str = ""
    """What must be in the line that names the rule; empty: any rule will do."""


async def compare(cases: Path, *, policy: Path | None = None, user: User = "singleton", output: Output = "text") -> int:
    """Compare what the policy says of cases with what a file expects; the exit code is 1 if anything differs.

    Parameters
    ----------
    cases
        A YAML or JSON file: a list of {tool, arguments, expected: allow | ask | deny, rule}.
    policy
        The policy to test; by default the one of the worker.
    """
    from opening import read_policy, yaml_of

    settings, terminal = Settings.load(), Terminal()
    wanted = read_cases(yaml_of(cases, DatesAsText), cases)
    tested = read_policy(settings.policy) if policy is None else policy_of(policy, "--policy")
    facts = await facts_of_all(settings, user)
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(wanted, 1):
        found = ruling_on(tested, facts, case.tool, case.arguments)
        said = ("unknown tool", "") if found is None else (found.verdict, found.rule)
        good = said[0] == case.expected and case.rule in said[1]
        rows.append({"case": number, **case.plain(), "verdict": said[0], "by": said[1], "good": good})
    wrong = [row for row in rows if not row["good"]]
    lines = [*map(_told, wrong), f"{len(rows)} cases: {len(rows) - len(wrong)} as expected, {len(wrong)} not"]
    terminal.results(output, rows, lines)
    return FAILED if wrong else DONE


def policy_of(path: Path, named: str) -> Policy:
    """Return the policy of a file that was named; raises SettingsInvalid where there is none, unlike for a worker."""
    from opening import read_policy

    if not path.is_file():
        raise SettingsInvalid(f"{named}: there is no file {path}; name the policy to rule by")
    return read_policy(path)


def read_cases(said: Any, path: Path) -> list[PolicyCase]:
    """Return the cases that a file holds; raises SettingsInvalid."""
    if not isinstance(said, list) or not said:
        raise SettingsInvalid(f"{path}: give a list of cases, such as - {{tool: mail.send_email, expected: ask}}")
    found: list[PolicyCase] = []
    for number, case in enumerate(said, 1):
        try:
            found.append(PolicyCase.admit(as_json(case)))
        except (TaskInvalid, ValueError) as error:
            raise SettingsInvalid(f"{path}: case {number}: {error}") from None
    return found


def _told(row: dict[str, Any]) -> str:
    wanted = row["expected"] + (f" by {row['rule']!r}" if row["rule"] else "")
    return one_line(
        f"case {row['case']}: {row['tool']} {row['arguments']}: expected {wanted}, and it is {row['verdict']} "
        f"({row['by']})",
        _WIDTH,
    )


async def facts_of_all(settings: Settings, user: str) -> dict[str, Tool]:
    """Return what a ruling needs to know of each tool that runs of a user may call."""
    from activities.resources import facts_of
    from opening import open_toolbox

    silence_logs(settings)
    async with open_toolbox(settings) as toolbox:
        catalog = await toolbox.catalog(user, patience_s=_PATIENCE_S)
    return {name: facts_of(catalog, definition) for name, definition in catalog.definitions.items()}


def ruling_on(policy: Policy, facts: dict[str, Tool], tool: str, arguments: dict[str, Any]) -> Ruling | None:
    """Return what a policy says of a call in a new run; None for a tool that nobody knows."""
    known = ENGINE_TOOLS.get(tool) or facts.get(tool)
    return None if known is None else rule_on_any(policy, known, arguments, today=today())
