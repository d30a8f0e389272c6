"""Start activities with the options of their kind, and pass on what they say went wrong.

May import: backstay, workflows.state.
"""
