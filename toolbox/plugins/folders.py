"""Follow which plugins there are, while their folder changes under a toolbox that is open."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from backstay.errors import ToolboxInvalid
from backstay.shown import one_line
from toolbox.configuration.configuration import Configuration, ProviderEntry
from toolbox.configuration.load import added_plugin
from toolbox.plugins.provider import PluginProvider
from toolbox.providers.provider import Provider

Open = Callable[[str, Path, ProviderEntry], PluginProvider]
_LONGEST_REASON = 500
_log = structlog.get_logger("toolbox")


class PluginFolders:
    """Know the plugins whose folders are there now; nothing is started for one until it is asked what it does."""

    def __init__(
        self, configuration: Configuration, path: Path, opened: Mapping[str, Provider], open_one: Open
    ) -> None:
        """Begin with those that were `opened` for the configuration of this file."""
        self._configuration = configuration
        self._path = path
        self._open = open_one
        # One that comes back is the same provider, so that the numbers of its lists of tools go on.
        self._known = dict(opened)
        self.added: dict[str, ProviderEntry] = {}
        """The settings of those that came after the file was read."""
        self._turn = asyncio.Lock()
        self.there: dict[str, Provider] = dict(opened)
        """The plugins whose folders are there."""
        self.refused: dict[str, str] = {}
        """Why others whose folders are there cannot be used, by name."""

    async def look(self) -> bool:
        """Look which folders there are; return whether others are there than before."""
        async with self._turn:
            before = self.there
            try:
                self.there, refused = await asyncio.to_thread(self._look)
                for name in refused.keys() - self.refused.keys():
                    _log.warning("plugins.refused", provider=name, reason=refused[name])
                self.refused = refused
            except OSError as error:
                # The plugins that were there are still used; a call says what is wrong with one.
                _log.warning("plugins.unreadable", reason=str(error))
            return self.there != before

    async def close(self) -> None:
        """Close all, also those whose folders are gone."""
        await asyncio.gather(*(provider.close() for provider in self._known.values()), return_exceptions=True)

    def _look(self) -> tuple[dict[str, Provider], dict[str, str]]:
        there: dict[str, Provider] = {}
        refused: dict[str, str] = {}
        for name, folder in self._configuration.plugin_folders(self._path.absolute().parent).items():
            try:
                there[name] = self._of(name, folder)
            except ToolboxInvalid as error:
                refused[name] = one_line(str(error), _LONGEST_REASON)
        return there, refused

    def _of(self, name: str, folder: Path) -> Provider:
        if name not in self._known:
            entry = added_plugin(self._configuration, name, self._path)
            self.added = {**self.added, name: entry}
            self._known[name] = self._open(name, folder, entry)
        return self._known[name]
