"""Speak with MCP servers over stdio and HTTP: connect, list, call, answer their questions."""
