"""The command `policy check`: compare the names of a policy with the toolbox before a typing error lets a call pass."""

import asyncio
from collections import Counter
from typing import Any

from backstay.policies.names import Finding, ProviderTools, findings, quota_findings, twins
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.terminal.exit_codes import DONE, FAILED
from gateways.terminal.flags import Output
from gateways.terminal.session import silence_logs
from gateways.terminal.terminal import Terminal

_PATIENCE_S = 15.0
"""How long servers that are starting are waited for."""
_WIDTH = 600


async def check(*, output: Output = "text") -> int:
    """Check the policy: its fields, the tools and people that it names, and what its conditions match.

    Exits with 1 if a line names what is not there; whatever is found, every line stays in force.
    """
    settings, terminal = Settings.load(), Terminal()
    silence_logs(settings)
    found = await compared(settings)
    counts = Counter(finding.state for finding in found)
    rows: list[dict[str, Any]] = [finding._asdict() for finding in found]
    if not rows:
        terminal.say(f"{settings.policy}: every name is there", "green")
    terminal.results(output, rows, map(told, found))
    return FAILED if counts["error"] else DONE


async def compared(settings: Settings) -> list[Finding]:
    """Return what is to be said of the policy, beside the toolbox; raises what makes either of them unreadable."""
    from opening import read_policy, yaml_of

    policy = await asyncio.to_thread(read_policy, settings.policy)
    if not settings.policy.exists():
        return []
    written = await asyncio.to_thread(yaml_of, settings.policy)
    return [*twins(written), *findings(policy, await _offered(settings))]


async def misnamed_quotas(settings: Settings) -> list[Finding]:
    """Return what is to be said of the quotas of profiles, beside the toolbox; raises as `compared` does."""
    from opening import read_profiles

    profiles = await asyncio.to_thread(read_profiles, settings.profiles)
    quotas = {name: profiles.named(name).budget.quotas for name in profiles}
    offered = await _offered(settings) if any(quotas.values()) else {}
    return [found for name, own in quotas.items() for found in quota_findings(f"{name}: quotas", own, offered)]


async def _offered(settings: Settings) -> dict[str, ProviderTools]:
    from opening import open_toolbox

    async with open_toolbox(settings) as toolbox:
        return await toolbox.offered(_PATIENCE_S)


def told(finding: Finding) -> str:
    """Return a finding in one line."""
    return one_line(f"{finding.state:<8} {finding.where}: {finding.said}", _WIDTH)
