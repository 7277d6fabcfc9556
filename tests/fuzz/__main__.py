"""``python -m tests.fuzz TARGET [-runs=N] [-seed=N] …``: what libFuzzer takes. A crash leaves its input as a file."""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dsched"]):
    from tests.fuzz.targets import SEEDS, TARGETS


def main() -> None:
    """Fuzz one target; ends the process."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        raise SystemExit(f"name one of {', '.join(TARGETS)}")
    target = sys.argv.pop(1)
    with tempfile.TemporaryDirectory(prefix="dsched-fuzz-") as corpus:
        for number, seed in enumerate(SEEDS[target]):
            (Path(corpus) / str(number)).write_bytes(seed)
        atheris.Setup([*sys.argv, corpus], TARGETS[target])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
