"""Draw requests and runs as Slack's blocks; others' words are shown and never obeyed.

May import: backstay, gateways.slack, people.
"""
