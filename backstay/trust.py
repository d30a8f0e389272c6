"""Remember, outside of them, the folders whose files this user obeys.

A folder comes with a clone or a download, and its files could name programs to start and a model to send everything to.
So they are obeyed only after the user has said so once: for this folder, not for those inside it. The folder is known
by its real path, not by what its files say, so a file that changes later is obeyed too, as a Makefile would be.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from backstay.errors import SettingsInvalid

VARIABLE = "BACKSTAY_TRUSTED"


def is_trusted(folder: Path, variables: Mapping[str, str]) -> bool:
    """Return whether the user has trusted this folder, by `trust` or by a variable of the process itself."""
    real = _real(folder)
    if any(part.strip() and _real(Path(part.strip())) == real for part in variables.get(VARIABLE, "").split(",")):
        return True
    with suppress(OSError, RuntimeError):
        return _record(real, variables).read_bytes() == os.fsencode(real)
    return False


def trust(folder: Path, variables: Mapping[str, str]) -> Path:
    """Remember that the user trusts this folder; return its real path. Raises SettingsInvalid."""
    real = _real(folder)
    try:
        record = _record(real, variables)
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record.write_bytes(os.fsencode(real))
    except (OSError, RuntimeError) as error:
        raise SettingsInvalid(f"XDG_STATE_HOME: the trust in {real} cannot be remembered: {error}") from None
    return real


def distrust(folder: Path, variables: Mapping[str, str]) -> Path:
    """Forget that the user trusts this folder; return its real path. Raises SettingsInvalid."""
    real = _real(folder)
    try:
        _record(real, variables).unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        raise SettingsInvalid(f"XDG_STATE_HOME: the trust in {real} cannot be forgotten: {error}") from None
    return real


def _record(real: Path, variables: Mapping[str, str]) -> Path:
    given = Path(variables.get("XDG_STATE_HOME", ""))
    state = given if given.is_absolute() else Path.home() / ".local" / "state"
    return state / "backstay" / "trusted" / hashlib.sha256(os.fsencode(real)).hexdigest()


def _real(folder: Path) -> Path:
    return Path(os.path.realpath(folder))
