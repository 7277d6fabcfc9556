"""A stand-in for a leader or worker: writes down what happens to it.

Usage: child.py JOURNAL NAME [stubborn] [parent]. ``stubborn`` does not stop when asked; ``parent`` forks a process
that does not stop when asked either.
"""

import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    journal, name, *habits = sys.argv[1:]

    def note(word: str) -> None:
        with Path(journal).open("a") as output:
            output.write(f"{word} {name} {os.getpid()}\n")

    def asked_to_stop(number: int, frame: object) -> None:
        note("asked")
        if "stubborn" not in habits:
            sys.exit(0)

    signal.signal(signal.SIGTERM, asked_to_stop)
    if "parent" in habits and os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        name += "-forked"
    note("began")
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
