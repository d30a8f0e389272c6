"""Run programs written by the model, and rehearse what they would do.

May import: backstay, workflows.asking, workflows.calls, workflows.consent, workflows.context, workflows.dispatch,
workflows.state.
"""
