"""The error that a tool's error is inside a program."""


class ToolError(Exception):
    """A tool did not do what it was asked to; `error_type` says in one word why, the text says it in full."""

    def __init__(self, message: str = "", error_type: str = "ToolError", tool: str = "") -> None:
        """Hold what the tool said."""
        super().__init__(message)
        self.error_type = error_type
        self.tool = tool
