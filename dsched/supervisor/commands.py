"""How each process of a system is started, and what it finds in its environment."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dsched import emulation
from dsched.cluster import opening
from dsched.cluster.opening import Chosen
from dsched.emulation import Asked
from dsched.observe.address import HOST_VARIABLE, LOOPBACK, PORT_VARIABLE
from dsched.supervisor.children import Spec

LEADERS_FIRST = 0
"""A leader gives its lease back when it stops, while Redis and the workers are still there."""
WORKERS_NEXT = 1
REDIS_LAST = 2

TEMPORARY = "tmp"
"""Folder in the data folder for the temporary files of the children: a worker that is killed leaves some behind."""

WORKER_OPTIONS = (
    *("--pool", "prefork", "--concurrency", "1", "-O", "fair"),
    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    *("--loglevel", "INFO"),
)


@dataclass(frozen=True, slots=True)
class System:
    """What `dsched up` was asked for.

    Attributes:
        data_dir: absolute; data, logs and the address of the system.
        redis_url: of a Redis that runs already; None for an embedded one.
        name: the system's name on its Redis.
        config: absolute path of a KubeSchedulerConfiguration, None for the defaults.
        mode: how the leader evaluates: ``auto``, ``local`` or ``distributed``.
        decisions: absolute path of the file that leaders append their decisions to.
        cluster: what keeps nodes and pods.
        emulated: the version and the feature gates that leaders are asked to emulate.
        metrics_port: the first child's port for metrics, each further one has the next; None for none.
        metrics_host: address that they listen on.
    """

    data_dir: Path
    redis_url: str | None = None
    name: str = "default"
    leaders: int = 1
    evaluators: int = 2
    binders: int = 2
    config: Path | None = None
    mode: str = "auto"
    decisions: Path | None = None
    cluster: Chosen = field(default_factory=Chosen)
    emulated: Asked = field(default_factory=Asked)
    metrics_port: int | None = None
    metrics_host: str = LOOPBACK


def specs(system: System) -> list[Spec]:
    """The children of the system, Redis left out."""
    found = [
        *(_leader(system, number) for number in range(1, system.leaders + 1)),
        *(_worker("evaluator", number) for number in range(1, system.evaluators + 1)),
        *(_worker("binder", number) for number in range(1, system.binders + 1)),
    ]
    # Where none are wanted the variable is emptied, for children inherit the user's environment.
    return [replace(spec, environment=_metrics(system, number)) for number, spec in enumerate(found)]


def environment(system: System, redis_url: str) -> dict[str, str]:
    """What every child finds in its environment besides what the supervisor has; an empty value counts as not set."""
    found = {
        "DSCHED_REDIS_URL": redis_url,
        "DSCHED_NAME": system.name,
        "DSCHED_CONFIG": str(system.config or ""),
        "DSCHED_DATA_DIR": str(system.data_dir),
        "TMPDIR": str(system.data_dir / TEMPORARY),
        "PYTHONUNBUFFERED": "1",
        **opening.environment(system.cluster),
        **emulation.environment(system.emulated),
    }
    if "PYTHONPATH" in os.environ:
        found["PYTHONPATH"] = _absolute_paths(os.environ)
    return found


def _metrics(system: System, number: int) -> dict[str, str]:
    port = "" if system.metrics_port is None else str(system.metrics_port + number)
    return {PORT_VARIABLE: port, HOST_VARIABLE: system.metrics_host}


def _leader(system: System, number: int) -> Spec:
    name = f"leader-{number}"
    options = ["--identity", name, "--mode", system.mode]
    if system.decisions is not None:
        options += ["--decisions", str(system.decisions)]
    return Spec(name, (sys.executable, "-m", "dsched", "leader", *options), LEADERS_FIRST, grace_s=10.0)


def _worker(kind: str, number: int) -> Spec:
    name = f"{kind}-{number}"
    worker = (sys.executable, "-m", "workers", kind, "--hostname", f"{name}@%h")
    return Spec(name, (*worker, *WORKER_OPTIONS), WORKERS_NEXT, grace_s=15.0)


def _absolute_paths(environ: Mapping[str, str]) -> str:
    """PYTHONPATH with absolute folders, because children run in another folder than the user."""
    folders = environ["PYTHONPATH"].split(os.pathsep)
    return os.pathsep.join(str(Path(folder).absolute()) for folder in folders)
