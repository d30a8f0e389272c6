"""The commands `policy check`, `test`, `try` and `learn`: what a policy says of cases and calls, or could say.

May import: activities, backstay, gateways.terminal, opening.
"""
