"""The commands that serve gateways: ways in for people.

May import: backstay, gateways.terminal.
"""
