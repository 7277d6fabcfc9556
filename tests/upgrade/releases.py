"""Two releases of dsched on one machine: the code of this checkout, and another that its processes tell from it."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tests.acceptance.system import environment

ROOT = Path(__file__).parents[2]
PACKAGES = ("dsched", "workers")
SPOKEN = Path("dsched/model/messages.py")
"""Where it stands which version of messages a process speaks."""


@dataclass(frozen=True)
class Release:
    """Code that processes can be started from.

    Attributes:
        name: for the names of processes and logs.
        version: what it calls itself.
        folder: with the packages and what tells their version; None for the code of this checkout.
    """

    name: str
    version: str
    folder: Path | None = None

    def environment(self, **more: str) -> dict[str, str]:
        """In which Python finds this release before any other."""
        found = environment(**more)
        if self.folder is not None:
            kept = os.environ.get("PYTHONPATH")
            found["PYTHONPATH"] = os.pathsep.join([str(self.folder), *([kept] if kept else [])])
        return found

    def says(self) -> str:
        """What ``dsched --version`` says: that the right code is found."""
        told = subprocess.run(
            [sys.executable, "-m", "dsched", "--version"],
            env=self.environment(),
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        )
        return told.stdout


def present() -> Release:
    """This checkout's."""
    return Release("new", metadata.version("dsched"))


def stamped(folder: Path) -> Release:
    """The same code that calls itself an older version, and speaks another version of messages."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / SPOKEN).read_text()
    other, times = re.subn(r"^VERSION = (\d+)$", lambda found: f"VERSION = {int(found[1]) + 1000}", text, flags=re.M)
    assert times == 1, f"{SPOKEN} does not say which version of messages is spoken"
    (folder / SPOKEN).write_text(other)
    return _told(folder, "0.0.1")


def of_history(revision: str, folder: Path) -> Release:
    """A commit's, as if it had been released before.

    Raises:
        subprocess.CalledProcessError: there is no such commit here.
    """
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, *PACKAGES], capture_output=True, check=True
    ).stdout
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    return _told(folder, "0.0.1")


def _told(folder: Path, version: str) -> Release:
    """Python asks the first distribution of a name on its path for the version."""
    told = folder / f"dsched-{version}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dsched\nVersion: {version}\n")
    return Release("old", version, folder)
