"""Use the system safely: durable files, locks, child processes, bounded output, frames, addresses that others name.

Code in `sandbox.guest` cannot import it: the image of a jail holds the standard library and the guest only.

May import: no other room.
"""
