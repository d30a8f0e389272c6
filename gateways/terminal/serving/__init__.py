"""The commands that serve gateways: ways in for people.

May import: activities, backstay, gateways.engine_mcp, gateways.links, gateways.listening, gateways.mcp_serving,
gateways.served, gateways.slack, gateways.terminal, gateways.web, opening, store, toolbox.
"""
