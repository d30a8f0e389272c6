"""Give a run a folder to work in: claims, file and command jails, effects and undo.

May import: backstay, sandbox.images, sandbox.isolation, sandbox.limits, sandbox.network, sandbox.programs,
sandbox.snapshots, system.
"""
