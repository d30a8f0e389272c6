"""The command line: start runs, follow them, decide requests, and start the processes that serve them.

May import: backstay, gateways.terminal.asking, gateways.terminal.local.
"""
