"""The commands `memory ...`, and the server that offers one user's memory to other programs.

May import: backstay, gateways.mcp_serving, gateways.terminal, sandbox, store.
"""
