"""Start nsjail with a profile, and prove that the profile confines.

May import: backstay, sandbox.images, sandbox.limits, system.
"""
