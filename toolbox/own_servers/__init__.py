"""Let users add MCP servers of their own, and offer each of them theirs.

May import: backstay, system, toolbox.configuration, toolbox.mcp, toolbox.providers.
"""
