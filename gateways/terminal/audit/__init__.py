"""The commands `audit ...` and `ledger key`.

May import: backstay, gateways.terminal.
"""
