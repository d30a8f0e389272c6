"""Run programs in jails: start, pause, resume and replay them, and check what they send.

May import: backstay, sandbox.guest.programs, sandbox.images, sandbox.isolation, sandbox.limits, system.
"""
