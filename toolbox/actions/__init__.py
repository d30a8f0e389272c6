"""Python functions as tools: what a file of actions imports."""

from toolbox.actions.tools import ActionError, Tools
from toolbox.actions.wrapper import action

__all__ = ["ActionError", "Tools", "action"]
