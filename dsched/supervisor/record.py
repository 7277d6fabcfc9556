"""What a supervisor leaves in the data folder about its children: ``children.json``, how they are now, for `dsched
status`; and where they serve their metrics, ``metrics-targets.json``, which Prometheus reads (``file_sd_configs``).
"""

import json
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from dsched.errors import DschedError
from dsched.observe.address import HOST_VARIABLE, PORT_VARIABLE
from dsched.supervisor.children import Child, Spec

FILE = "children.json"
TARGETS = "metrics-targets.json"


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


def check_ports(specs: Sequence[Spec]) -> None:
    """See that the ports can be had, before anything is started.

    Raises:
        DschedError: one is in use, is not this user's to take, or is none.
    """
    for spec in specs:
        port = spec.environment.get(PORT_VARIABLE)
        if port:
            _try(spec.name, spec.environment[HOST_VARIABLE], int(port))


def _try(name: str, host: str, port: int) -> None:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        raise DschedError(
            f"{name} cannot have port {port} on {host} for metrics ({error}); name another first port with "
            "--metrics-port: every process has one, in a row"
        ) from error


def write_targets(data_dir: Path, specs: Sequence[Spec]) -> None:
    """Leave where metrics are served; no file where no child serves metrics."""
    found = [
        {"targets": [f"{_bracketed(spec.environment[HOST_VARIABLE])}:{port}"], "labels": {"process": spec.name}}
        for spec in specs
        if (port := spec.environment.get(PORT_VARIABLE))
    ]
    if found:
        (data_dir / TARGETS).write_text(json.dumps(found, indent=2) + "\n")


def remove_targets(data_dir: Path) -> None:
    """Take that file away: the system has stopped."""
    (data_dir / TARGETS).unlink(missing_ok=True)


def _bracketed(host: str) -> str:
    """An IPv6 address as it stands before a port; an address that means all is reached on the loopback."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host
