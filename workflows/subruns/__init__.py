"""Give parts of a task to sub-runs, wait for them, and take over what they have spent and done.

May import: backstay, workflows.calls, workflows.consent, workflows.context, workflows.dispatch, workflows.state.
"""
