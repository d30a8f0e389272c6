"""The commands that serve gateways: ways in for people.

May import: backstay, gateways.links, gateways.slack, gateways.terminal, gateways.web, opening, store.
"""
