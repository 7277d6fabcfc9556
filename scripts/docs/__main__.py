"""Writes the reference pages, and the other files that the code says: ``python -m scripts.docs``.

With ``--check`` nothing is written, and the exit code is 1 where a file is not what the code says.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from scripts.docs.declared import ROOT

WRITERS = tuple(
    import_module(f"scripts.docs.{name}")
    for name in (
        "bench_tables",
        "chart_pages",
        "cli_pages",
        "config_pages",
        "explain_pages",
        "keys",
        "metric_tables",
        "plugin_pages",
        "users",
        "version_pages",
    )
)
"""Each has ``files()``: what the files are to hold that it writes."""


def outdated() -> dict[Path, str]:
    """The files that do not hold what they are to hold, with that."""
    wanted = {path: text for writer in WRITERS for path, text in writer.files().items()}
    return {path: text for path, text in wanted.items() if not path.is_file() or path.read_text() != text}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what is outdated, or name it."""
    parser = argparse.ArgumentParser(prog="python -m scripts.docs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where something is outdated")
    check = parser.parse_args(arguments).check
    found = outdated()
    for path, text in found.items():
        print(f"{path.relative_to(ROOT)} {'is outdated' if check else 'written'}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    if check and found:
        print("run: python -m scripts.docs", file=sys.stderr)
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
