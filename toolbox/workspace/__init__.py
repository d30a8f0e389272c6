"""The built-in file and shell tools of a run's workspace.

May import: backstay, toolbox.providers.
"""
