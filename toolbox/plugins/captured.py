"""A plugin's parser as the capture printed it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Argument(_Facts):
    """Hold one argument of a parser."""

    kind: Literal["store", "const", "boolean", "count", "append", "extend"]
    dest: str
    options: tuple[str, ...] = ()
    """As they are written, such as `-v` and `--verbose`; none for what is told by its place."""
    nargs: int | str | None = None
    type: Literal["string", "integer", "number", "boolean", "json"] = "string"
    required: bool = False
    hidden: bool = False
    help: str = ""
    default: Any = None
    choices: tuple[Any, ...] | None = None
    span: tuple[int, int] | None = None
    """The smallest and the largest of choices that are a range."""

    @property
    def many(self) -> bool:
        """Whether one mention of it takes a list."""
        return self.nargs not in {None, "?", 0}


class Exclusive(_Facts):
    """Name arguments of which at most one may be given."""

    members: tuple[int, ...]
    required: bool = False


class Parser(_Facts):
    """Hold a parser and those of its subcommands."""

    summary: str = ""
    description: str = ""
    prefixes: str = "-"
    file_prefixes: str = ""
    """A word that begins with one of these is replaced by what a file holds."""
    arguments: tuple[Argument, ...] = ()
    exclusive: tuple[Exclusive, ...] = ()
    commands: dict[str, "Parser"] = Field(default_factory=dict)
