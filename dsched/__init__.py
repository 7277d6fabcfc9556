"""dsched: a Kubernetes-compatible scheduler that runs as many processes around one Redis.

Rooms, in the order in which they may import one another: ``config``, ``errors``, ``clock``, ``log`` and ``metrics`` at
the base, then ``model`` < ``arithmetic`` < ``framework`` < ``plugins`` < ``state`` < ``cluster`` and ``observe`` <
``leader`` < ``conformance`` < ``cli``. The Celery processes live beside this package, in ``workers``.
"""

__version__: str
__commit__: str
"""What the code was built from: of an image the file ``commit.txt`` of its build, of a checkout what git says, with
``-dirty`` behind it where files differ; ``""`` where nobody knows."""


def __getattr__(name: str) -> str:
    """Version and commit are looked up when they are asked for: most processes never do."""
    if name == "__version__":
        from importlib.metadata import version

        found = version(__name__)
    elif name == "__commit__":
        found = _commit()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def _commit() -> str:
    import subprocess
    from pathlib import Path

    folder = Path(__file__).parent
    if (written := folder / "commit.txt").is_file():
        return written.read_text().strip()
    if not (folder.parent / ".git").exists():
        return ""
    words = ["git", "-C", str(folder.parent), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # no git, or a checkout that belongs to somebody else
        return ""
