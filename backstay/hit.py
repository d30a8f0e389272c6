"""What a search finds."""

from typing import Any

from pydantic import Field

from backstay.noun import Noun


class Hit(Noun):
    """One answer of `search_tools`."""

    provider: str
    tool: str
    """`provider.tool`."""
    short_description: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    """summary: type by name, a trailing `?` marks optional; full: the JSON Schema."""
    available: bool = True
    reason: str | None = None
    """Why it is not available."""
    path: str = ""
    """Where the tool's own file would lie beneath the toolbox root."""
    mcp_tool_name: str = ""
