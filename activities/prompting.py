"""Render the prompts, which are files."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

FOLDER = Path(__file__).parent / "prompts"
_ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True)


@cache
def _source(name: str) -> str:
    return (FOLDER / f"{name}.md.j2").read_text(encoding="utf-8")


def prompt(name: str, **variables: Any) -> str:
    """Return one prompt, filled in."""
    return _ENVIRONMENT.from_string(_source(name)).render(**variables).strip()


def prompt_hash() -> str:
    """Return the first 16 hex digits of the hash over all prompt files."""
    together = "\0".join(_source(name) for name in ("planner", "closing", "actions"))
    return hashlib.sha256(together.encode()).hexdigest()[:16]
