"""Which commands the shell of a workspace may run, as the operator says in toolbox.json."""

from pydantic import Field

from toolbox.strict import Strict


class CommandLists(Strict):
    """Hold which commands an operator allows and denies; the wall is the jail, and not these."""

    allow: list[str] | None = None
    """None: all that are not denied."""
    deny: list[str] = Field(default_factory=list)
