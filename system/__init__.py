"""What touches the operating system for several rooms: durable files, locks, child processes, bounded output, frames.

May import the standard library and filelock; imported by sandbox, toolbox, store, `worker.py` and `backstay.cli`, and
never by code that runs inside a jail.
"""
