"""Run command-line plugins for clients that speak newline-delimited JSON, or MCP, over stdio.

May import: backstay, gateways.mcp_serving, gateways.served, sandbox, system, toolbox.
"""
