"""The command line: start runs, follow them, decide requests, and start the processes that serve them.

May import: activities, backstay, gateways.mail, gateways.served, gateways.terminal.asking, gateways.terminal.local,
gateways.terminal.policies, opening, people, sandbox, store, system, toolbox.
"""
