"""Where every ``dsched`` begins, also ``python -m dsched``: signals first, then what takes long to load."""

# Before anything that takes a while to load, as `signal` itself does: Ctrl-C then would be told as a traceback.
import _signal  # type: ignore[import-not-found]

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import signal
import sys

from dsched import ending, garbage


def main() -> None:
    """Run the command that the process's arguments name."""
    ending.at_once_while_loading()
    if sys.argv[1:2] == ["leader"]:
        ending.deaf_to_requests()
    with garbage.not_looked_for():
        from dsched.cli.main import main as run

    try:
        ending.with_interrupts()
        try:
            run()
        finally:
            ending.at_once_while_loading()
    except KeyboardInterrupt:
        ending.by(signal.SIGINT)


if __name__ == "__main__":
    main()
