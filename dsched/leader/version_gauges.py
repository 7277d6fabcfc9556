"""Which version of kube-scheduler a leader process emulates, and its feature gates, as Kubernetes' components do."""

import platform
import sys
from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import dsched
from dsched import metrics
from dsched.config import Features

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Go calls them."""


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
