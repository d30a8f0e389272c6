"""A plugin without argparse."""

import json
import sys

if "--help" in sys.argv:
    print("usage: words WORD...\n\nSay the words back.")
else:
    print(json.dumps(sys.argv[1:]))
