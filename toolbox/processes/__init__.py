"""Start the processes of command-line tools and stdio servers, with limits or in a jail.

May import: backstay, system.
"""
