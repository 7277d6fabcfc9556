"""Another revision of this repository, in a folder of its own."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """Another revision in a folder of its own, which is gone afterwards.

    Raises:
        SystemExit: git has no such revision, or this is no clone; git has said so on standard error.
    """
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "checkout"
        done = subprocess.run([*git, "add", "--quiet", "--detach", str(folder), revision], check=False)
        if done.returncode:
            raise SystemExit(
                f"error: no revision {revision} here, see above; a shallow clone has few: git fetch --unshallow"
            )
        try:
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)
