"""Ask people, take their decisions, and tell what becomes of both.

May import: backstay, workflows.dispatch, workflows.state.
"""
