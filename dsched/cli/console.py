"""What the commands print with: tables and messages for people; colours only on a terminal."""

import sys

from rich.console import Console

out = Console(soft_wrap=True, highlight=False)
"""Standard output: the answer."""
err = Console(stderr=True, soft_wrap=True, highlight=False)
"""Standard error: progress, warnings, errors."""


def write(text: str) -> None:
    """Print JSON or YAML for programs, as it is and with a line end: rich takes seconds over a large cluster's."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def left_out(kind: str, key: bytes, error: Exception) -> None:
    """Say of an object that cannot be read that it is left out."""
    name = key.decode(errors="replace")
    err.print(f"note: {kind} {name} cannot be read and is left out ({error}); see 'dsched fsck'", markup=False)
