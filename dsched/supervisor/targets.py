"""Where the children of a system serve their metrics, as a file that Prometheus reads (``file_sd_configs``)."""

import json
from collections.abc import Sequence
from pathlib import Path

from dsched.observe.address import HOST_VARIABLE, PORT_VARIABLE
from dsched.supervisor.children import Spec

FILE = "metrics-targets.json"


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
