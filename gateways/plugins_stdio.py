"""The plugin daemon as one file: `python3 plugins_stdio.py`, also by a symlink, from any folder, without arguments."""

import os
import sys

_OWN = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 - pathlib is not loaded yet, and its import is what is prepared here
_HOUSE = os.path.dirname(_OWN)  # noqa: PTH120 - the same

if __name__ == "__main__":
    # Python puts the folder of a script first, where the names of modules are not meant to be found.
    sys.path[:] = [_HOUSE, *(place for place in sys.path if place not in {_OWN, _HOUSE})]
    from gateways.plugin_jobs.serving import main

    sys.exit(main(os.path.abspath(__file__), sys.argv[1:]))  # noqa: PTH100 - as it was called: a symlink is kept
