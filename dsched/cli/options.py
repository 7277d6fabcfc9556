"""Options that many commands share, and how they find the system they are about."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsched import tracing
from dsched.cluster import opening
from dsched.cluster.opening import Kind
from dsched.errors import DschedError
from dsched.observe.address import HOST_VARIABLE, PORT_VARIABLE
from dsched.state import address, client, standings

if TYPE_CHECKING:
    from dsched.cluster.interface import Cluster
    from dsched.config import SchedulerConfiguration

RedisUrl = Annotated[
    str | None,
    typer.Option(
        "--redis-url",
        envvar="DSCHED_REDIS_URL",
        help="The system's Redis: redis://, rediss://, redis+sentinel://HOST:PORT,…/MASTER/DB or unix://.",
        show_default=False,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="DSCHED_DATA_DIR",
        help="Folder of a system started by 'dsched up' (default: under the user's data folder).",
        show_default=False,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", envvar="DSCHED_NAME", help="The system's name on its Redis (default: default).", show_default=False
    ),
]
SystemConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="DSCHED_CONFIG",
        help="KubeSchedulerConfiguration file; without it the configuration that the leader publishes.",
        show_default=False,
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        envvar=PORT_VARIABLE,
        min=0,
        max=65535,
        help="Serve /metrics, /livez, /readyz, /healthz, /configz, /flagz, /statusz on this port; nowhere without it.",
        show_default=False,
    ),
]
MetricsHost = Annotated[
    str,
    typer.Option("--metrics-host", envvar=HOST_VARIABLE, help="Address to serve them on; anybody may ask."),
]
ClusterKind = Annotated[
    Kind,
    typer.Option("--cluster", envvar=opening.KIND, help="What keeps nodes and pods: Redis, or a Kubernetes cluster."),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        envvar=opening.KUBECONFIG,
        help="Of the Kubernetes cluster (default: KUBECONFIG, the pod's service account, ~/.kube/config).",
        show_default=False,
    ),
]
KubeContext = Annotated[
    str | None,
    typer.Option("--kube-context", envvar=opening.CONTEXT, help="Context of the kubeconfig file.", show_default=False),
]

Otlp = Annotated[
    str | None,
    typer.Option(
        "--otlp",
        envvar=tracing.ENDPOINT,
        help="Send traces to this collector (OTLP over HTTP), e.g. http://127.0.0.1:4318; nowhere without it.",
        show_default=False,
    ),
]


def trace_to(otlp: str | None) -> None:
    """Have this process, and those that it starts, send traces.

    Raises:
        DschedError: what sends them is not installed.
    """
    if otlp:
        os.environ[tracing.ENDPOINT] = otlp
    tracing.check()


def chosen_cluster(kind: Kind, kubeconfig: Path | None, context: str | None) -> opening.Chosen:
    """What the options ask for; an empty one counts as not given."""
    file = str(kubeconfig.absolute()) if kubeconfig is not None and kubeconfig.name else None
    return opening.Chosen(kind, file, context or None)


def open_objects(redis_url: str | None, data_dir: Path | None, name: str | None, instead: str) -> client.Store:
    """Connect to the system a command means, which has to keep its objects in Redis.

    Args:
        instead: the command line to use with a Kubernetes cluster.

    Raises:
        DschedError: its objects are kept by a Kubernetes cluster.
        SystemNotFound, RedisUnavailable: as `open_store`.
    """
    store = open_store(redis_url, data_dir, name)
    if standings.cluster(store) == Kind.KUBERNETES.value:
        raise DschedError(
            f"this system schedules a Kubernetes cluster, which keeps nodes and pods itself; use: {instead}"
        )
    return store


def cluster_of(store: client.Store, config: "SchedulerConfiguration") -> "Cluster":
    """The cluster that a running system schedules; of a Kubernetes cluster, with the credentials of whoever asks.

    Raises:
        RedisUnavailable: Redis does not answer.
        ConfigError: there are no credentials.
    """
    asked = opening.from_environment()
    chosen = opening.Chosen(Kind(standings.cluster(store) or Kind.STANDALONE), asked.kubeconfig, asked.context)
    return opening.open_cluster(chosen, store, config, check=True)


def count_as_leader(store: client.Store) -> None:
    """For commands that add up what pods take up.

    Raises:
        ConfigError, RedisUnavailable: as `dsched.state.emulated.read`.
    """
    from dsched.state import emulated  # which takes as long to import as all the rest

    emulated.follow(store)


def open_store(redis_url: str | None, data_dir: Path | None, name: str | None) -> client.Store:
    """Connect to the system a command means.

    Raises:
        SystemNotFound: there is none at that address.
        RedisUnavailable: its Redis does not answer.
    """
    found = address.find(redis_url, data_dir, name)
    store = client.connect(found.redis_url, found.name)
    with client.reachable(store):
        store.redis.ping()
    return store
