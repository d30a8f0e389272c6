"""Draw requests and runs as Slack's blocks; what others wrote is shown and never obeyed.

May import: backstay, gateways.slack, people.
"""
