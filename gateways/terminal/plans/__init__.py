"""The commands `plan show`, `plan diff` and `plan export`: what became of the plans of a run.

May import: backstay, gateways.terminal, people.
"""
