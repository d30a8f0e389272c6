"""Call models and tools, find out what became of a call, and undo it.

May import: backstay, workflows.asking, workflows.consent, workflows.context, workflows.dispatch, workflows.state.
"""
