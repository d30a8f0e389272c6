"""Give all parts of a run its state, its activities, its requests and its calls in flight.

May import: backstay, workflows.asking, workflows.dispatch, workflows.state.
"""
