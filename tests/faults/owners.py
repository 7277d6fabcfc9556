"""Which process is behind a TCP connection of this machine, by the kernel's tables."""

import os
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def owner(port: int, to: int) -> int:
    """The process whose socket is bound to 127.0.0.1:``port`` and connected to port ``to``; 0 when there is none. Of
    several (a socket that a fork has inherited) the youngest."""
    inode = _inode(port, to)
    return max(_having(f"socket:[{inode}]"), default=0) if inode else 0


def _inode(port: int, to: int) -> str:
    for line in (PROC / "net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port and int(fields[2].rpartition(":")[2], 16) == to:
            return fields[9]
    return ""


def _having(wanted: str) -> list[int]:
    found = []
    for process in PROC.iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with suppress(OSError):  # it has ended, or belongs to somebody else
                if any(_link(each) == wanted for each in (process / "fd").iterdir()):
                    found.append(int(process.name))
    return found


def _link(path: Path) -> str:
    with suppress(OSError):
        return str(path.readlink())
    return ""
