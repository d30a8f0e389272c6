"""Sign in at MCP servers: find out where, be known there, and get and renew tokens, by addresses that servers name.

May import: backstay, system, toolbox.configuration.
"""
