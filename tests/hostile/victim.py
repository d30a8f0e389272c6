"""A process that minds its own business: it tells, when asked, which signals came and whether its memory is as it was."""

import json
import signal
import sys

came = []
secret = sys.argv[1].encode() * 20


def main():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
        signal.signal(number, lambda got, _: came.append(got))
    print(json.dumps({"address": id(secret) + 32}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"signals": came, "changed": secret != sys.argv[1].encode() * 20}), flush=True)


if __name__ == "__main__":
    main()
