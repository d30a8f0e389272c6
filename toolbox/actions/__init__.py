"""Python functions as tools. A file of actions imports from here.

May import: backstay, toolbox.configuration, toolbox.providers, toolbox.schema.
"""

from toolbox.actions.tools import ActionError, Tools
from toolbox.actions.wrapper import action

__all__ = ["ActionError", "Tools", "action"]
