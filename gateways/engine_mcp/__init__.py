"""Let programs that speak MCP start runs, follow them and read what they found; none of them decides anything.

May import: backstay, gateways.links, gateways.mcp_serving, people, store.
"""
