"""Which hosts a command may reach: those that its call names, if the operator lists them or a person approves."""

from collections.abc import Sequence
from string import ascii_lowercase, digits
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field

from backstay.frozen import Frozen
from backstay.policies.accepted import AcceptedLine
from backstay.policies.ruling import Ruling
from backstay.shown import one_line
from backstay.tools.tool import Tool

NETWORKED = "shell.run"
"""The tool whose calls may name hosts."""
ARGUMENT = "network"
HTTPS, HTTP = 443, 80
_LONGEST = 253
_MOST_PORT = 65_535
_LONGEST_LABEL = 63
_SIGNS = frozenset(ascii_lowercase + digits + "-")
# Names for what is near: this machine, its network, and addresses that are written as names.
_NEAR = ("localhost", "local", "internal", "arpa", "onion")


class Site(NamedTuple):
    """Name one host, and the one port that is meant, if it is another than usual."""

    host: str
    port: int | None = None
    """None: 443 for HTTPS and 80 for HTTP."""

    @property
    def words(self) -> str:
        """Return the site as calls and policies write it."""
        return self.host if self.port is None else f"{self.host}:{self.port}"

    @property
    def ports(self) -> frozenset[int]:
        """Return the ports that may be reached."""
        return frozenset((HTTPS, HTTP)) if self.port is None else frozenset((self.port,))


def site(said: object) -> Site:
    """Read `host` or `host:port`, in lower case and without a dot at the end; raises ValueError, which says the fix."""
    if not isinstance(said, str):
        raise ValueError("not a string; name a host such as example.org")  # noqa: TRY004 - pydantic takes no other
    host, sign, port = said.partition(":")
    if not _is_name(host):
        raise ValueError(f"{one_line(said, 80)!a} is not the name of a host; write one like example.org, in lower case")
    if host.rpartition(".")[2] in _NEAR:
        raise ValueError(f"{one_line(said, 80)!a} is a name of something near, which is never reached")
    if not sign:
        return Site(host)
    if not (port.isascii() and port.isdecimal() and port[0] != "0" and int(port[:6]) <= _MOST_PORT):
        raise ValueError(f"{one_line(said, 80)!a} names no port; write one such as {host}:8443")
    return Site(host, int(port))


def _is_name(said: str) -> bool:
    """Return whether a string is a whole name of a host, and can be read as no address."""
    parts = said.split(".")
    plain = all(
        0 < len(part) <= _LONGEST_LABEL and _SIGNS.issuperset(part) and part == part.strip("-") for part in parts
    )
    return plain and len(parts) > 1 and len(said) <= _LONGEST and parts[-1][0] in ascii_lowercase


def _pattern(said: str) -> str:
    """Check one entry of a list: a site, or `*.` before one, for all names below it."""
    site(said.removeprefix("*."))
    return said


class NetworkPolicy(Frozen):
    """List the hosts that commands may reach; about others a person is asked, or they are denied."""

    allow: Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], Field(max_length=500)] = ()
    """Hosts such as `example.org`, `*.example.net` for all names below it, or `example.com:8443`."""
    others: Literal["ask", "deny"] = "ask"

    def lists(self, wanted: Site) -> bool:
        """Return whether the list has a site."""
        return any(_covers(entry, wanted) for entry in self.allow)


def _covers(entry: str, wanted: Site) -> bool:
    listed = site(entry.removeprefix("*."))
    named = wanted.host.endswith(f".{listed.host}") if entry.startswith("*.") else wanted.host == listed.host
    return named and (wanted.port == listed.port or (listed.port is None and wanted.port in (HTTP, HTTPS)))


def sites_of(arguments: dict[str, Any]) -> tuple[Site, ...]:
    """Return the sites that a call names; raises ValueError, which says the fix."""
    given = arguments.get(ARGUMENT)
    if given is None:
        return ()
    if not isinstance(given, list):
        raise ValueError("not a list; write the names of hosts, such as [example.org]")  # noqa: TRY004 - as above
    return tuple(dict.fromkeys(map(site, given)))


def rule_on_network(
    layers: Sequence[NetworkPolicy | None], tool: Tool, arguments: dict[str, Any], lines: Sequence[AcceptedLine] = ()
) -> Ruling | None:
    """Rule on the hosts that a call names, by the lists of a task and then of the operator; None: nothing against it.

    `lines`: a person who accepted the very same arguments has accepted their hosts too.
    """
    if tool.name != NETWORKED or not arguments.get(ARGUMENT):
        return None
    try:
        wanted = sites_of(arguments)
    except ValueError as error:
        return Ruling(verdict="deny", rule=f"{ARGUMENT}: {error}")
    *tasks, operators = layers
    # A rule that a task's own policy leaves out tightens nothing.
    lists = [listed for listed in tasks if listed is not None] + [operators or NetworkPolicy()]
    for listed in lists:
        unlisted = ", ".join(each.words for each in wanted if not listed.lists(each))
        if unlisted and listed.others == "deny":
            return Ruling(verdict="deny", rule=one_line(f"network: {unlisted}: not in network.allow", 500))
    unlisted = [each.words for each in wanted if not all(listed.lists(each) for listed in lists)]
    if not unlisted or _accepted(tool, arguments, lines):
        return None
    words = ", ".join(unlisted)
    return Ruling(
        verdict="ask",
        rule=one_line(f"network: reaches {words}; not in network.allow, which could list it: [{words}]", 500),
    )


def _accepted(tool: Tool, arguments: dict[str, Any], lines: Sequence[AcceptedLine]) -> bool:
    """Return whether somebody accepted these very arguments."""
    exact = (line for line in lines if line.verdict == "allow" and line.args_digest)
    return any(not line.misfit(tool, arguments) for line in exact)
