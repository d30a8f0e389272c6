"""Read the lists and patterns that are in a file beside the module that uses them."""

import tomllib
from pathlib import Path
from typing import Any


def data_beside(module: str) -> dict[str, Any]:
    """Return what the TOML file with the name of a module holds; a module gives its `__file__`."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
