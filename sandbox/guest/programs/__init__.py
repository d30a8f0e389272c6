"""The runtime of a program inside its jail: clock, event loop, tool calls, self-test.

May import: no other room.
"""
