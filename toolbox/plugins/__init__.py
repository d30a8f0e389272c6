"""Make tools of argparse programs: find them, read their parsers, run them.

May import: backstay, toolbox.configuration, toolbox.processes, toolbox.providers.
"""
