"""Speak to MCP servers over stdio and HTTP: connect, list, call, relay their questions.

May import: backstay, system, toolbox.configuration, toolbox.oauth, toolbox.processes, toolbox.providers,
toolbox.schema.
"""
