"""A process that minds its own business: asked, it tells which signals came and whether its memory is as it was."""

import json
import signal
import sys

came = []
secret = sys.argv[1].encode() * 20


def tell(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
        signal.signal(number, lambda got, _: came.append(got))
    tell(address=id(secret) + 32)
    for _ in sys.stdin:
        tell(signals=came, changed=secret != sys.argv[1].encode() * 20)


if __name__ == "__main__":
    main()
