"""What a leader process tells when somebody asks for its metrics, from another thread: what it holds in memory; and
which version of kube-scheduler it emulates, and its feature gates, as Kubernetes' components do.
"""

import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import dsched
from dsched import metrics
from dsched.config import Features
from dsched.leader.health import LeaderHealth, Stage
from dsched.metrics import collect
from dsched.scheduler.pod_groups import GroupCounts

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Go calls them."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a term holds.

    Attributes:
        pods: on nodes, assumed ones among them.
        events: names of events that are not applied yet.
        rejected: (plugin, profile) to the unschedulable and gated pods that it rejected.
    """

    nodes: int
    pods: int
    assumed: int
    events: Sequence[str]
    rejected: Counter[tuple[str, str]]


class Holding(Protocol):
    """Whoever can say what the present term holds."""

    progress: LeaderHealth

    def held(self) -> Held | None:
        """None while the process does not lead; from any thread."""
        ...

    def group_counts(self) -> GroupCounts:
        """None of any while the process does not lead; from any thread."""
        ...


class Memory(Collector):
    """The gauges of one leader process."""

    def __init__(self, name: str, leader: Holding) -> None:
        """
        Args:
            name: the system's.
        """
        self._name = name
        self._leader = leader

    def collect(self) -> Iterator[Metric]:
        """Every family; standbys have only those that say that they stand by."""
        progress = self._leader.progress
        leads = progress.stage is Stage.LEADING
        status, epoch, turned = metrics.LEADS.family(), metrics.EPOCH.family(), metrics.TURNED.family()
        status.add_metric([self._name], int(leads))
        epoch.add_metric([], progress.epoch)
        turned.add_metric([], progress.age_s if leads else 0)
        yield from (status, epoch, turned)
        held = self._leader.held() if leads else None
        if held is None:
            return
        size, events, rejected = (
            metrics.CACHE_SIZE.family(),
            metrics.INFLIGHT_EVENTS.family(),
            metrics.UNSCHEDULABLE_PODS.family(),
        )
        for kind, count in (("nodes", held.nodes), ("pods", held.pods), ("assumed_pods", held.assumed)):
            size.add_metric([kind], count)
        for event, count in Counter(held.events).items():
            events.add_metric([collect.event_name(event)], count)
        for (plugin, profile), count in held.rejected.items():
            rejected.add_metric([plugin, profile], count)
        yield from (size, events, rejected)


class EmulatedVersion(Collector):
    """The gauges of one leader process, standbys' too."""

    def __init__(self, features: Callable[[], Features]) -> None:
        self._features = features

    def collect(self) -> Iterator[Metric]:
        """The families; gates of dsched's own are in one of its own.

        Source: component-base metrics/version.go ``RegisterBuildInfo``, featuregate/feature_gate.go ``AddMetrics``.
        """
        features = self._features()
        build, enabled = metrics.BUILD_INFO.family(), metrics.FEATURE_ENABLED.family()
        build.add_metric(_build_info(features), 1)
        for name, stage, on in features.gates:
            enabled.add_metric([name, stage.value], int(on))
        own = metrics.OWN_FEATURE_ENABLED.family()
        for name, on in features.own_gates:
            own.add_metric([name], int(on))
        yield from (build, enabled, own)


def _build_info(features: Features) -> list[str]:
    """The values of the labels; nobody knows when dsched was built, and Go has no part in it."""
    version = features.version
    commit, dirty, _ = dsched.__commit__.partition("-dirty")
    tree = ("dirty" if dirty else "clean") if commit else ""
    return [
        str(version.major),
        str(version.minor),
        f"v{version}.0-dsched-{dsched.__version__}",
        commit,
        tree,
        "",
        "",
        sys.implementation.name,
        f"{sys.platform}/{_MACHINES.get(platform.machine(), platform.machine())}",
    ]
