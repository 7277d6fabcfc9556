"""Where the children of a system serve their metrics, as a file that Prometheus reads (``file_sd_configs``)."""

import json
import socket
from collections.abc import Sequence
from pathlib import Path

from dsched.errors import DschedError
from dsched.observe.address import HOST_VARIABLE, PORT_VARIABLE
from dsched.supervisor.children import Spec

FILE = "metrics-targets.json"


def check(specs: Sequence[Spec]) -> None:
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


def write(data_dir: Path, specs: Sequence[Spec]) -> None:
    """Write the file; none where no child serves metrics."""
    found = [
        {"targets": [f"{_bracketed(spec.environment[HOST_VARIABLE])}:{port}"], "labels": {"process": spec.name}}
        for spec in specs
        if (port := spec.environment.get(PORT_VARIABLE))
    ]
    if found:
        (data_dir / FILE).write_text(json.dumps(found, indent=2) + "\n")


def remove(data_dir: Path) -> None:
    """The system has stopped."""
    (data_dir / FILE).unlink(missing_ok=True)


def _bracketed(host: str) -> str:
    """An IPv6 address as it stands before a port; an address that means all is reached on the loopback."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host
