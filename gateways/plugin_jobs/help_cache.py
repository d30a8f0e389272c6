"""All that the plugins can do, kept on disk by a hash of their files, so that a start need not ask them."""

import hashlib
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateways.plugin_jobs.places import DaemonPaths
from system.folders import code_hash

if TYPE_CHECKING:
    import subprocess

_FILE = "plugins-help.json"
_FORM = 3
_MOST_S = 180.0
_OTHERS = 0o077


class HelpCache:
    """Know the actions of every plugin; ask those again that were added or changed."""

    def __init__(self, place: DaemonPaths, describe: Sequence[str]) -> None:
        """`describe`: the command that prints what the plugins can do whose names are appended to it."""
        self._place = place
        self._describe = describe
        self._asking: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._turn = threading.Lock()
        self._unsure: dict[str, dict[str, Any]] = {}
        """Those that could not be asked, which says nothing of themselves: they are asked again."""
        self._entries: dict[str, dict[str, Any]] = {}
        self._toolbox = ""

    def load(self) -> None:
        """Take over what an earlier daemon has kept, and bring it up to date. Raises PlaceInvalid."""
        try:
            kept = json.loads((self._place.home / _FILE).read_bytes())
            if kept["form"] == _FORM:
                self._toolbox, self._entries = kept["toolbox"], kept["plugins"]
        except (OSError, ValueError, KeyError, TypeError):
            self._entries = {}
        self.refresh()

    def refresh(self, *, everything: bool = False) -> None:
        """Ask the plugins that were added or changed, or all; safe to call from any thread. Raises PlaceInvalid."""
        with self._turn:
            self._refresh(everything=everything)

    def _refresh(self, *, everything: bool) -> None:
        folders = self._place.plugins()
        toolbox = hashlib.sha256(self._place.toolbox_text().encode()).hexdigest()
        hashes = {name: code_hash(folder) for name, folder in folders.items()}
        known = {} if everything or toolbox != self._toolbox else self._entries
        kept = {name: entry for name, entry in known.items() if entry["hash"] == hashes.get(name)}
        # This daemon tries one that could not be loaded again only when asked for, or changed.
        missing = [name for name in hashes if name not in kept]
        found = self._described(missing) if missing else {}
        asked = {name: {"hash": hashes[name], **found.get(name, _UNKNOWN)} for name in missing}
        self._unsure = {name: entry for name, entry in asked.items() if entry["unsure"]}
        entries = kept | {name: entry for name, entry in asked.items() if name not in self._unsure}
        changed = (toolbox, entries) != (self._toolbox, self._entries)
        self._toolbox, self._entries = toolbox, entries
        if changed and not self._ended:
            self._keep()

    def end(self) -> None:
        """Ask no plugin any more, and end the question that is under way."""
        self._ended = True
        if (asking := self._asking) is not None:
            asking.kill()

    @property
    def plain(self) -> dict[str, Any]:
        """Return the actions of every plugin that could be loaded, as `help` shows them."""
        return {
            "plugins": {name: entry["actions"] for name, entry in sorted(self._entries.items()) if entry["actions"]}
        }

    def reason(self, plugin: str) -> str | None:
        """Return why a plugin cannot be used, or None."""
        entry = self._entries.get(plugin) or self._unsure.get(plugin)
        return None if entry is None else entry["reason"]

    def schema(self, plugin: str, action: str) -> Mapping[str, Any] | None:
        """Return the JSON Schema of an action's arguments; None for one that does not exist."""
        return self._entries.get(plugin, _UNKNOWN)["schemas"].get(action)

    def is_parallel(self, plugin: str) -> bool:
        """Return whether several jobs of a plugin may run at the same time."""
        return bool(self._entries.get(plugin, _UNKNOWN)["parallel"])

    def _described(self, names: Sequence[str]) -> dict[str, Any]:
        if self._ended:
            return {}
        import subprocess  # noqa: PLC0415 - not needed where no plugin has changed

        command = [*self._describe, *names]
        asking = self._asking = subprocess.Popen(  # noqa: S603 - this very program
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=self._place.folder
        )
        if self._ended:
            asking.kill()  # it was started just then
        try:
            said, _ = asking.communicate(timeout=_MOST_S)
            return json.loads(said)
        except (subprocess.TimeoutExpired, ValueError):
            sys.stderr.write("backstay plugins: the plugins could not be asked what they do\n")
            return {}
        finally:
            self._asking = None
            asking.kill()
            asking.wait()

    def _keep(self) -> None:
        """Write what is known, whole or not at all; without a place for it, the next start asks again.

        Why a plugin cannot be used is not kept: it may be something outside its folder, which changes unseen.
        """
        from system.files import write_whole  # noqa: PLC0415 - not needed where no plugin has changed

        home = self._place.home
        usable = {name: entry for name, entry in self._entries.items() if entry["reason"] is None}
        kept = {"form": _FORM, "toolbox": self._toolbox, "plugins": usable}
        try:
            make_home(home)
            write_whole(home / _FILE, json.dumps(kept).encode(), durable=False)
        except OSError as error:
            sys.stderr.write(f"backstay plugins: {home}: the help cannot be kept: {error.strerror}\n")


_UNKNOWN: dict[str, Any] = {
    "actions": {},
    "schemas": {},
    "parallel": False,
    "reason": "it could not be asked what it does",
    "unsure": True,
}


def make_home(home: Path) -> None:
    """Make the folder of backstay's own files, for this user only, and trust what this user has just made."""
    if home.is_dir():
        return
    home.mkdir(mode=0o777 & ~_OTHERS, parents=True)
    from backstay.errors import BackstayError  # noqa: PLC0415 - at most once in the life of a folder
    from backstay.trust import trust  # noqa: PLC0415 - the same

    try:
        trust(home, os.environ)  # noqa: TID251 - backstay.variables would load a reader of .env files
    except BackstayError as error:
        sys.stderr.write(f"backstay plugins: {error}\n")
