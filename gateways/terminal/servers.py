"""The commands `toolbox ...`: add and remove servers, take over those of other hosts, propose safety classes.

Nothing is started before a person has seen how, and said yes.
"""

import os
import stat
import textwrap
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from backstay import trust as trusting
from backstay.errors import SettingsInvalid, ToolboxInvalid
from backstay.rooms import house
from backstay.settings import Settings, found_in
from backstay.shown import counted, one_line, shell_words
from backstay.variables import ENV_FILE, environment
from gateways.terminal.flags import Output
from gateways.terminal.session import silence_logs
from gateways.terminal.terminal import Terminal

_LONGEST_NAME = 80
_LONGEST_FAULT = 300
_WIDTH = 100
_EXAMPLE = Path(".env.example")
_NOT_SHARED = 0o002
StartAll = Annotated[
    bool, Parameter(negative="", help="Start the servers and accept what is proposed, without asking.")
]
Assigned = Annotated[tuple[str, ...], Parameter(negative="")]


async def add(
    name: str,
    /,
    *what: str,
    env: Assigned = (),
    header: Assigned = (),
    yes: StartAll = False,
    output: Output = "text",
) -> None:
    """Add a server to toolbox.json, ask it for its tools, and propose a safety class for each.

    Parameters
    ----------
    name
        How its tools are named: NAME.tool.
    what
        Its address, or behind `--` the command that starts it.
    env
        NAME=VALUE that the command finds in its environment; ${VARIABLE} is read from yours.
    header
        NAME=VALUE that is sent with each request to the address.
    """
    from toolbox.configuration.hosts import server_of

    if not what:
        raise SettingsInvalid(f"add: name a command or an address, such as: backstay toolbox add {name} -- COMMAND")
    is_address = len(what) == 1 and what[0].startswith(("http://", "https://"))
    entry: dict[str, Any] = {"url": what[0]} if is_address else {"command": what[0], "args": list(what[1:])}
    for field, given, flag in (("env", env, "--env"), ("headers", header, "--header")):
        entry |= {field: dict(_assignment(text, flag) for text in given)} if given else {}
    terminal = Terminal()
    settings = _begin(terminal)
    found = server_of(name, entry, settings.environment)
    _print_names(terminal, await take_over(terminal, [found], yes=yes), output)


async def take_from(file: Path | None = None, *, yes: StartAll = False, output: Output = "text") -> None:
    """Add the servers of Claude Desktop, Cursor or VS Code to toolbox.json, and propose safety classes.

    An entry that cannot be taken over is named, and the others are added.

    Parameters
    ----------
    file
        The file in which the other host names its servers.
    """
    from toolbox.configuration.hosts import host_files

    if file is None:
        known = " or ".join(shell_words(str(path)) for path in host_files(environment(None)))
        raise SettingsInvalid(f"import: name the file of a host; found on this machine: {known or 'none'}")
    terminal = Terminal()
    settings = _begin(terminal)
    added = await take_over(terminal, servers_of(terminal, file, settings), yes=yes)
    _print_names(terminal, added, output)


async def propose(*names: str, yes: StartAll = False, output: Output = "text") -> None:
    """Ask servers of toolbox.json for their tools, and propose a safety class for each that has none.

    Parameters
    ----------
    names
        The servers; all by default.
    """
    terminal, settings = Terminal(), Settings.load()
    known = _checked(settings.toolbox, _text(settings.toolbox)).servers
    _require_known(settings.toolbox, names, known)
    asked = names or tuple(name for name, server in known.items() if not server.disabled)
    if not asked:
        terminal.say(f"{settings.toolbox} names no server; add one with: backstay toolbox add NAME -- COMMAND")
    _require_person(terminal, asked, yes=yes)
    declared = await _classify(terminal, settings, asked, yes=yes)
    terminal.results(output, [{"server": name, "declared": declared.get(name, {})} for name in asked], ())


def remove(name: str, /, *, output: Output = "text") -> None:
    """Remove a server from toolbox.json, with all entries about its tools and about who sees them.

    Parameters
    ----------
    name
        The server, as its tools are named: NAME.tool.
    """
    from toolbox.configuration import commented

    terminal, settings = Terminal(), Settings.load()
    path = settings.toolbox
    text = _text(path)
    known = _checked(path, text)
    _require_known(path, [name], known.servers)
    ways = [["mcpServers", name], *([["providers", name]] if name in known.providers else [])]
    for user, entry in (known.users or {}).items():
        ways += [["users", user, "providers", name]] * entry.providers.count(name)
    for way in ways:
        text = commented.remove(text, way)
    _checked(path, text)
    _write(path, text, None)
    gone = list(dict.fromkeys(".".join(way[:-1] if way[0] == "users" else way) for way in ways))
    kept = f"; the variables that it read stay in {ENV_FILE}" if "${" in known.servers[name].model_dump_json() else ""
    terminal.say(f"removed from {path}: {', '.join(gone)}{kept}", "green")
    terminal.results(output, {"server": name, "removed": gone}, [name])


def _print_names(terminal: Terminal, servers: list[dict[str, Any]], output: Output) -> None:
    terminal.results(output, servers, [server["server"] for server in servers])


def claim_folder() -> None:
    """Raise SettingsInvalid if the current folder may hold files that its user has not looked at."""
    variables = environment(None)
    if trusting.is_trusted(Path(), variables):
        return
    own_home = trusting.is_trusted(Path(".backstay"), variables)
    if found := [name for name in found_in(Path(), {}) if name != ".backstay" or not own_home]:
        raise SettingsInvalid(
            f"{', '.join(found)}: there already, and not trusted; look at what is there, then run: backstay trust"
        )
    folder = Path().stat()
    if folder.st_uid != os.getuid() or folder.st_mode & _NOT_SHARED:
        raise SettingsInvalid(
            "this folder belongs to others, or others may write in it; make one of your own, or run: backstay trust"
        )


def trust_folder(terminal: Terminal) -> None:
    """Trust the current folder, after `claim_folder`, and say so."""
    variables = environment(None)
    if not trusting.is_trusted(Path(), variables):
        real = trusting.trust(Path(), variables)
        terminal.say(f"trusted: {real}; undo it with: backstay trust --remove {shell_words(str(real))}", "green")


def write_new(path: Path, template: str) -> bool:
    """Write a file that comes with backstay; return False if there is one already."""
    data = _template(template)
    try:
        # Exclusive: neither a file nor a link that is there is written through.
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        return False
    except OSError as error:
        raise SettingsInvalid(f"{path}: cannot be written: {error.strerror}; choose another folder") from None
    return True


def holds(path: Path, template: str) -> bool:
    """Return whether a file is still the one that comes with backstay."""
    return path.is_file() and not path.is_symlink() and path.read_bytes() == _template(template)


def _template(name: str) -> bytes:
    return (house() / "toolbox" / "starting" / name).read_bytes()


def servers_of(terminal: Terminal, file: Path, settings: Settings) -> list[Any]:
    """Return the servers that another host names in its file, and say which of them cannot be taken over."""
    from toolbox.configuration.hosts import servers_of

    servers, faults = servers_of(file, settings.environment)
    for fault in faults:
        terminal.say(f"left out: {one_line(fault, _LONGEST_FAULT)}", "yellow")
    return servers


async def take_over(terminal: Terminal, found: list[Any], *, yes: bool) -> list[dict[str, Any]]:
    """Ask about each server, add those that the person wants, and ask those for their tools that may be started.

    Returns the servers that were added, each with the classes that its tools were given.
    """
    settings = Settings.load()
    known = _checked(settings.toolbox, _text(settings.toolbox)).servers
    new = [server for server in found if server.name not in known]
    for server in found:
        if server.name in known:
            terminal.say(f"{server.name} is in {settings.toolbox} already and stays as it is", "yellow")
    if not new and len(found) == 1:
        instead = f"remove it with: backstay toolbox remove {shell_words(found[0].name)}; or rename it"
        raise SettingsInvalid(f"{found[0].name}: {settings.toolbox} names it already; {instead}")
    _require_person(terminal, [server.name for server in new], yes=yes)
    added, started = list[str](), list[str]()
    for server in new:
        answer = await _asked(terminal, server, settings.environment, yes=yes)
        if answer == "n":
            continue
        _keep(terminal, settings, server)
        terminal.say(f"added to {settings.toolbox}: {one_line(server.name, _LONGEST_NAME)}", "green")
        added.append(server.name)
        if answer == "y" and not server.entry.get("disabled"):
            started.append(server.name)
    declared = await _classify(terminal, Settings.load(), started, yes=yes)
    return [{"server": name, "declared": declared.get(name, {})} for name in added]


def _begin(terminal: Terminal) -> Settings:
    """Return the settings, after making the toolbox.json that servers are added to, if there is none."""
    settings = Settings.load()
    if not settings.names_toolbox and not os.path.lexists(settings.toolbox):
        claim_folder()
        write_new(settings.toolbox, "no_servers.json")
        trust_folder(terminal)
    return settings


def _require_known(path: Path, names: Iterable[str], known: Collection[str]) -> None:
    if strange := [name for name in names if name not in known]:
        raise SettingsInvalid(f"there is no server {strange[0]!r} in {path}; it names {', '.join(known) or 'none'}")


def _assignment(text: str, flag: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise SettingsInvalid(f"{flag}: expected NAME=VALUE")
    return name, value


def _require_person(terminal: Terminal, names: Iterable[str], *, yes: bool) -> None:
    listed = ", ".join(names)
    if listed and not yes and not terminal.interactive:
        raise SettingsInvalid(
            f"--yes: nobody can be asked here whether to start {listed}; look at how each is started, then give --yes"
        )


async def _asked(terminal: Terminal, server: Any, variables: Mapping[str, str], *, yes: bool) -> str:
    """Show a server as it would be started, and return y, a (add it only) or n."""
    entry, lines = server.entry, list[tuple[str, str]]()
    if "command" in entry:
        words = shell_words(str(entry["command"]), *map(str, entry.get("args") or ()))
        lines.append(("starts", words.removeprefix("-- ")))
    address = next((entry[name] for name in ("url", "serverUrl", "httpUrl") if entry.get(name)), None)
    if address is not None:
        lines.append(("asks", str(address)))
    if entry.get("cwd"):
        lines.append(("in", str(entry["cwd"])))
    given = {**(entry.get("env") or {}), **(entry.get("headers") or {})}
    if given:
        lines.append(("with", "  ".join(shell_words(f"{name}={value}") for name, value in given.items())))
    lines += [("kept", f"the value of {name} goes to {ENV_FILE}") for name in server.values]
    lines += [("needs", f"{name}, which is not set yet") for name in server.unset if name not in variables]
    lines += [("left out", name) for name in server.left_out]
    terminal.say(one_line(server.name, _LONGEST_NAME), "bold")
    for what, text in lines:
        terminal.say(f"    {what:<9} {text}")
    return "y" if yes else await _choice(terminal, "[y]es, add it and start it now for its tools, [a]dd it only, [n]o?")


async def _choice(terminal: Terminal, question: str) -> str:
    """Return the letter that a person chooses among those in brackets; n where the input ends."""
    while True:
        typed = await terminal.ask(question)
        letter = "n" if typed is None else typed.lower()[:1]
        if letter and f"[{letter}]" in question:
            return letter
        terminal.say("type one of the letters in brackets", "yellow")


def _keep(terminal: Terminal, settings: Settings, server: Any) -> None:
    """Write a server to toolbox.json and the values of its secrets to .env; nothing is written that is not valid."""
    from toolbox.configuration import commented

    path = settings.toolbox
    try:
        text = commented.add(_text(path), ["mcpServers", server.name], server.entry)
        everybody = _checked(path, text).users
        if everybody is not None and "*" in everybody:
            text = commented.add(text, ["users", "*", "providers", "-"], server.name)
        elif everybody is not None:
            terminal.say(f"`users` in {path} does not name {server.name} yet, so that nobody sees it", "yellow")
    except ValueError as error:
        raise ToolboxInvalid(f"{path}: {error}") from None
    _checked(path, text)
    if server.values:
        # Written first: values that toolbox.json refers to are there.
        claim_folder()
        assigned = {name: f"{name}={_quoted(value)}" for name, value in server.values.items()}
        _append(ENV_FILE, assigned, 0o600)
        trust_folder(terminal)
    if _EXAMPLE.is_file():
        _append(_EXAMPLE, {name: f"{name}=" for name in (*server.values, *server.unset)}, None)
    _write(path, text, None)


def _append(path: Path, lines: Mapping[str, str], mode: int | None) -> None:
    """Add lines for the variables that a file does not name yet."""
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    old = old if old.endswith("\n") or not old else f"{old}\n"
    new = "".join(f"{line}\n" for name, line in lines.items() if f"\n{name}=" not in f"\n{old}")
    if new:
        _write(path, old + new, mode)


def _quoted(value: str) -> str:
    """Return a value as dotenv reads it back."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


async def _classify(
    terminal: Terminal, settings: Settings, names: Iterable[str], *, yes: bool
) -> dict[str, dict[str, str]]:
    """Ask servers for their tools, show what is proposed, and write what the person accepts; return that."""
    from opening import open_toolbox, read_policy
    from toolbox.catalog.proposal import propose

    asked, declared = list(names), dict[str, dict[str, str]]()
    if not asked:
        return declared
    silence_logs(settings)
    policy = read_policy(settings.policy)
    async with open_toolbox(settings) as toolbox:
        listed = await toolbox.inspect(asked)
    for name, (definitions, reason) in listed.items():
        if reason is not None:
            terminal.say(f"{name} cannot be asked: {reason}", "yellow")
            terminal.say(f"    when it can be: backstay toolbox propose {shell_words(name)}")
            continue
        shown = [tool for tool in definitions if one_line(tool.mcp_name, _LONGEST_NAME) == tool.mcp_name]
        groups, restricted = propose(shown)
        restricted += [tool.mcp_name for tool in definitions if tool not in shown]
        terminal.say(f"{name}: {counted(len(definitions), 'tool')}", "bold")
        for group in groups:
            if await _accepted(terminal, group, policy, yes=yes):
                _declare(settings.toolbox, name, group)
                declared.setdefault(name, {}).update(dict.fromkeys(group.tools, group.safety.value))
        if restricted:
            tools, said = counted(len(restricted), "tool"), policy.default.restricted_write
            terminal.say(f"  restricted_write: {tools} left as they are; policy for that class: {said}")
            _list(terminal, restricted)
    return declared


async def _accepted(terminal: Terminal, group: Any, policy: Any, *, yes: bool) -> bool:
    grounds = "as the server says" if group.grounds == "server" else "by name alone"
    permission = policy.default.read_only_egress if group.egress else policy.default.of(group.safety)
    reach = " that reaches out" if group.egress else ""
    tools = counted(len(group.tools), "tool")
    head = f"  {group.safety.value}{reach}: {tools}, {grounds}; policy for that class: {permission}"
    terminal.say(head, "bold")
    _list(terminal, group.tools)
    return yes or await _choice(terminal, f"  declare {group.safety.value}? [y]es, [n]o") == "y"


def _list(terminal: Terminal, names: Iterable[str]) -> None:
    """Show all names; a hostile one is quoted, so that it cannot pass for two."""
    words = "  ".join(shell_words(one_line(name, _LONGEST_NAME)).replace(" ", "\0") for name in names)
    for line in textwrap.wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False):
        terminal.say(f"      {line.replace(chr(0), ' ')}", "dim")


def _declare(path: Path, provider: str, group: Any) -> None:
    """Write the class of tools; declarations of a tool that exist already stay."""
    from toolbox.configuration import commented

    text = _text(path)
    known = _checked(path, text).of(provider).tools
    whole = {tool: group.declaration() for tool in group.tools}
    try:
        if not known and "tools" not in (commented.read(text).get("providers") or {}).get(provider, {}):
            text = commented.add(text, ["providers", provider, "tools"], whole)
        else:
            for tool, declared in whole.items():
                fields = declared.items() if tool in known else [(None, declared)]
                for field, value in fields:
                    way = ["providers", provider, "tools", tool]
                    text = commented.add(text, way if field is None else [*way, field], value)
    except ValueError as error:
        raise ToolboxInvalid(f"{path}: {error}") from None
    _checked(path, text)
    _write(path, text, None)


def _text(path: Path) -> str:
    """Return the text of a toolbox.json; where there is none, that of one without servers."""
    from toolbox.configuration.load import read

    return read(path) if os.path.lexists(path) else "{}"


def _checked(path: Path, text: str) -> Any:
    """Return what a toolbox.json of this text says; raises ToolboxInvalid."""
    from toolbox.configuration.load import checked

    return checked(text, path)


def _write(path: Path, text: str, mode: int | None) -> None:
    from system.files import write_whole

    real = Path(os.path.realpath(path))
    kept = stat.S_IMODE(real.stat().st_mode) if mode is None and real.exists() else mode or 0o644
    try:
        write_whole(real, text.encode("utf-8"), mode=kept)
    except OSError as error:
        raise SettingsInvalid(f"{path}: cannot be written: {error.strerror}") from None
