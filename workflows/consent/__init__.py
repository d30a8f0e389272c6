"""Settle whether a call may be made: by policy, by people, and with what they changed.

May import: backstay, workflows.asking, workflows.context, workflows.state.
"""
