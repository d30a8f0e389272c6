"""The commands `policy test`, `policy try` and `policy learn`: what a policy says of cases and calls, or could say.

May import: activities, backstay, gateways.terminal, opening.
"""
