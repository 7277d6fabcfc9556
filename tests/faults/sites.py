"""Plugins of other packages and configurations, as files that a system of an arena finds: made once a process."""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ROOT = Path(__file__).parents[2]
MAD = ROOT / "tests" / "integration" / "workers" / "plugin"
GANG = ROOT / "examples" / "02-gang-plugin" / "src"


@cache
def folder() -> Path:
    """For everything; it goes when this process ends."""
    made = Path(tempfile.mkdtemp(prefix="dsched-faults-site-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def installed(name: str, source: Path, offered: str) -> str:
    """A package as an installer leaves it; the PYTHONPATH with which it is found.

    Args:
        offered: its entry point of the group ``dsched.plugins``.
    """
    where = folder() / name
    if not where.exists():
        shutil.copytree(source, where, ignore=shutil.ignore_patterns("__pycache__"))
        metadata = where / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[dsched.plugins]\n{offered}\n")
    return os.pathsep.join(filter(None, (str(where), os.environ.get("PYTHONPATH"))))


def written(name: str, text: str) -> str:
    """A file; its path."""
    path = folder() / name
    path.write_text(text)
    return str(path)
