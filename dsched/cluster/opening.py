"""Which cluster a process works for, by what it was told: the one place that knows all kinds."""

import math
import os
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from dsched.errors import ConfigError
from dsched.model import coscheduling
from dsched.model.queues import PLUGIN
from dsched.state import devices
from dsched.state.client import Store

if TYPE_CHECKING:
    from dsched.cluster.interface import Cluster
    from dsched.cluster.kubernetes.access import Access
    from dsched.config import SchedulerConfiguration


class Kind(StrEnum):
    """What keeps nodes and pods."""

    STANDALONE = "standalone"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A cluster that was asked for.

    Attributes:
        kubeconfig, context: of a Kubernetes cluster; None for what `dsched.cluster.kubernetes.access` finds.
    """

    kind: Kind = Kind.STANDALONE
    kubeconfig: str | None = None
    context: str | None = None


KIND, KUBECONFIG, CONTEXT = "DSCHED_CLUSTER", "DSCHED_KUBECONFIG", "DSCHED_KUBE_CONTEXT"
"""Environment variables that say the same; an empty one counts as not set."""


def from_environment() -> Chosen:
    """What the environment asks for.

    Raises:
        ConfigError: there is no such kind.
    """
    text = os.environ.get(KIND) or Kind.STANDALONE
    if text not in list(Kind):
        raise ConfigError(f"{KIND}={text}: no such cluster; it can be {' or '.join(Kind)}")
    return Chosen(Kind(text), os.environ.get(KUBECONFIG) or None, os.environ.get(CONTEXT) or None)


def environment(chosen: Chosen) -> dict[str, str]:
    """The environment that asks for it."""
    return {KIND: chosen.kind.value, KUBECONFIG: chosen.kubeconfig or "", CONTEXT: chosen.context or ""}


def load(chosen: Chosen) -> None:
    """Import what opens it: for processes that are about to fork, so that each one that is forked need not."""
    if chosen.kind is Kind.STANDALONE:
        import dsched.cluster.standalone.cluster
    else:
        import dsched.cluster.kubernetes.cluster  # noqa: F401


def import_client(chosen: Chosen) -> None:
    """Import what reads credentials, which takes a while: for processes that are about to fork, or to be waited for.

    Raises:
        ConfigError: it is not installed.
    """
    if chosen.kind is Kind.KUBERNETES:
        from dsched.cluster.kubernetes import access

        access.import_client()


def open_access(chosen: Chosen, config: "SchedulerConfiguration | None") -> "Access":
    """The way to the API server of a Kubernetes cluster; credentials are read when they are first needed.

    Args:
        config: its clientConnection may name a kubeconfig file.
    """
    from dsched.cluster.kubernetes.access import Access

    named = None if config is None else config.client_connection.kubeconfig
    return Access(chosen.kubeconfig or named or None, chosen.context)


def open_cluster(chosen: Chosen, store: Store, config: "SchedulerConfiguration", *, check: bool = False) -> "Cluster":
    """The cluster; nothing is asked of it yet.

    Args:
        config: its clientConnection may name a kubeconfig file and says how many events are sent in a second; its
            first profile reports the events that belong to none.
        check: read the credentials now and not when they are first needed.

    Raises:
        ConfigError: there are no credentials for it, as far as that is checked.
    """
    translated = config.features.enabled(coscheduling.GATE)
    # Whoever only names a kind, as every command does, imports none.
    if chosen.kind is Kind.STANDALONE:
        from dsched.cluster.standalone.cluster import StandaloneCluster

        return StandaloneCluster(store, coscheduling=translated)
    from dsched.cluster.kubernetes.cluster import Kubernetes

    access = open_access(chosen, config)
    if check:
        access.load()
    qps = config.client_connection.qps
    a_second = qps if qps > 0 else math.inf
    holds = partial(devices.holds, store)
    groups = config.features.enabled("GenericWorkload")
    return Kubernetes(
        access,
        config.profiles[0].scheduler_name,
        events_a_second=a_second,
        holds=holds,
        groups=groups,
        queues=config.enables(PLUGIN),
        coscheduling=translated,
    )
