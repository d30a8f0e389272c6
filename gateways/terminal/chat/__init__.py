"""Talk with an agent at the terminal: each turn is a run that goes on from the one before.

May import: backstay, gateways.terminal, gateways.terminal.asking, gateways.terminal.memory, gateways.terminal.plans,
store.
"""
