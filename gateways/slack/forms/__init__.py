"""Ask in modals for what does not fit on a button, and read what people fill in.

May import: backstay, gateways.slack, gateways.slack.drawing, people.
"""
