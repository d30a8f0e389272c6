"""One program, whole: what must be the same wherever and whenever it runs."""

from typing import Any

from pydantic import Field

from backstay.noun import Noun
from backstay.tool import Tool


class Program(Noun):
    """Bundle a program with all that its run depends on; stored once, named by its ref."""

    source: str
    bindings: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Python source by provider and function."""
    tools: dict[str, Tool] = Field(default_factory=dict)
    """The declared set: what the program may call, by `provider.tool`."""
    parameters: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The JSON Schema of each declared tool's arguments."""
    seed: str
    """Where everything random in the program comes from."""
    now: float
    """When it starts, in seconds since 1970; its clock moves only with its journal."""
