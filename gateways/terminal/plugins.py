"""The commands `plugins ...`: serve command-line plugins to clients that start this program, and grant their jobs."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from backstay.errors import SettingsInvalid
from backstay.rooms import house
from backstay.settings import Settings
from backstay.variables import process_environment
from gateways.terminal.flags import Output
from gateways.terminal.terminal import Terminal

Globs = Annotated[tuple[str, ...], Parameter(negative="")]
Local = Annotated[bool, Parameter(negative="")]
_GRANT = "jobs"


def serve(*, local: Local = False, lanes: Literal["plugin", "one"] = "plugin") -> None:
    """Run plugins for a client that writes requests to stdin, as JSON lines, and reads answers from stdout.

    Parameters
    ----------
    local
        Run jobs in this process, one after another, without Temporal; they do not survive it.
    lanes
        plugin: the jobs of each plugin run one after another; one: the jobs of all plugins do.
    """
    _become([*(["--local"] if local else []), *(["--lanes", "one"] if lanes == "one" else [])])


def mcp(*, local: Local = False) -> None:
    """Offer plugins as MCP tools to a client that starts this command and speaks MCP over stdin and stdout.

    Parameters
    ----------
    local
        Run calls in this process, one after another, without Temporal; they do not survive it.
    """
    _become(["--mcp", *(["--local"] if local else [])])


def grant(plugin: str, /, *actions: str, leave_out: Globs = (), output: Output = "text") -> None:
    """Let jobs of a plugin run without asking, as long as its files are what they are now.

    The grant is in toolbox.json, where workers read it as they start; without an action, it is revoked.

    Parameters
    ----------
    plugin
        The plugin, by the name of its folder.
    actions
        What may run without asking; the daemon's `help` shows them.
    leave_out
        Glob of files that may change, such as a session that the plugin writes: `*.session`.
    """
    terminal, settings = Terminal(), Settings.load()
    from system.files import write_whole
    from toolbox.configuration import commented
    from toolbox.configuration import load as loading

    text = loading.read(settings.toolbox)
    folders = loading.checked(text, settings.toolbox).plugin_folders(settings.toolbox.absolute().parent)
    if plugin not in folders:
        known = ", ".join(folders) or "none"
        raise SettingsInvalid(f"there is no plugin {plugin!r} in {settings.toolbox}; it has {known}")
    place = ("providers", plugin, _GRANT)
    if isinstance(_within(commented.read(text), place), dict):
        text = commented.remove(text, place)
    granted: dict[str, Any] = {}
    if actions:
        granted = {"unasked": list(actions), "sha256": _hash_of(folders[plugin], leave_out)}
        granted |= {"leave_out": list(leave_out)} if leave_out else {}
        text = commented.add(text, place, granted)
    loading.checked(text, settings.toolbox)
    write_whole(settings.toolbox, text.encode(), mode=settings.toolbox.stat().st_mode & 0o777)
    what = f"{plugin}: {', '.join(actions)} run without asking" if actions else f"{plugin}: every job asks"
    terminal.say(f"{what}; workers know it when they start again", "green")
    terminal.results(output, {"plugin": plugin, "granted": granted}, [plugin])


def _become(flags: list[str]) -> None:
    script = house() / "gateways" / "plugins_stdio.py"
    os.execve(sys.executable, [sys.executable, str(script), *flags], process_environment())  # noqa: S606 - to become the daemon is the purpose


def _hash_of(folder: Path, leave_out: tuple[str, ...]) -> str:
    from system.folders import folder_hash

    return folder_hash(folder, leave_out)


def _within(found: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        found = found.get(name) if isinstance(found, dict) else None
    return found
