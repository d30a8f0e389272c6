"""Make tools of argparse programs: find them, read their parsers, run them.

May import: backstay, system, toolbox.configuration, toolbox.processes, toolbox.providers, toolbox.schema.
"""
