"""Talk to the outside world for workflows: model, tools, sandbox and store.

May import: backstay, sandbox, store, system, toolbox.
"""
