"""The command `trust`: let the files of a folder be obeyed."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from backstay.cli.terminal import Terminal
from backstay.errors import SettingsInvalid
from backstay.settings import environment, found_in
from backstay.shown import shell_words
from backstay.trust import distrust
from backstay.trust import trust as remember


def trust(folder: Path = Path(), *, remove: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Trust a folder: from now on its files are obeyed, also when they change.

    Look at them first: they name programs that are started and models that are asked.

    Parameters
    ----------
    folder
        The folder; the current one by default. Folders inside it need trust of their own.
    remove
        No longer trust the folder.
    """
    if not folder.is_dir():
        raise SettingsInvalid(f"FOLDER: {folder} is not a folder; name one that exists")
    terminal, variables = Terminal(), environment(None)
    if remove:
        terminal.say(f"no longer trusted: {distrust(folder, variables)}", "yellow")
        return 0
    real = remember(folder, variables)
    found = ", ".join(found_in(real, {})) or "no file that is obeyed, yet"
    terminal.say(f"trusted: {real} ({found}); undo it with: backstay trust --remove {shell_words(str(real))}", "green")
    return 0
