"""Carry plans through their lives: check, propose, carry out, and keep what became of them.

May import: backstay, workflows.asking, workflows.calls, workflows.consent, workflows.context, workflows.programs,
workflows.state.
"""
