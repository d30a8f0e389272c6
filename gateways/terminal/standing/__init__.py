"""The commands `schedule ...` and `trigger ...`: start runs at set times, or when another program sends something.

May import: activities, backstay, gateways.terminal, opening, people.
"""
