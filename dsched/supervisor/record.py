"""``children.json`` in the data folder: the supervisor's children as they are now, for `dsched status`."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from dsched.errors import DschedError
from dsched.supervisor.children import Child

FILE = "children.json"


class ChildRecord(msgspec.Struct, frozen=True):
    """One child; ``pid`` 0 while it does not run, ``started_at`` the last start in ms since the epoch (0: never)."""

    name: str
    state: str
    pid: int
    restarts: int
    started_at: int


def write(data_dir: Path, children: Iterable[Child]) -> None:
    """Leave the children's state in the data folder."""
    records = [
        ChildRecord(child.spec.name, child.state.value, child.pid, child.restarts, child.started_at_ms)
        for child in children
    ]
    temporary = data_dir / (FILE + ".new")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(records), indent=1))
    temporary.replace(data_dir / FILE)


def remove(data_dir: Path) -> None:
    """Take the file away."""
    (data_dir / FILE).unlink(missing_ok=True)


def read(data_dir: Path) -> list[ChildRecord]:
    """The children of the system with this data folder; empty where there is none.

    Raises:
        DschedError: the file cannot be read.
    """
    try:
        return msgspec.json.decode((data_dir / FILE).read_bytes(), type=list[ChildRecord])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise DschedError(f"{data_dir / FILE} cannot be read ({error}); remove it and run dsched up again") from error
