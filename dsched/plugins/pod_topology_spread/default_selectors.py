"""Default selectors of a snapshot's pods, looked up again only when services or controllers change."""

from collections.abc import Mapping, Sequence
from typing import Any

from dsched.arithmetic import default_selector
from dsched.arithmetic.default_selector import CONTROLLERS, SERVICE
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.selectors import Selector

_KINDS = (SERVICE, *(kind for _, kind in CONTROLLERS))


class DefaultSelectors:
    """The selector that spread constraints without one of their own get, by class of pods."""

    def __init__(self) -> None:
        self._looked_at: tuple[object, ...] = ()
        self._seen: tuple[object, ...] = ()
        self._services: dict[str, list[Mapping[str, Any]]] = {}
        self._selectors: PerClass[Selector]

    def of(self, pod: PodInfo, snapshot: Snapshot) -> Selector:
        """The selector for a pod; one that matches everything where nothing selects it."""
        looked_at = (snapshot, snapshot.others_version)
        if self._looked_at != looked_at:
            self._looked_at = looked_at
            self._follow(snapshot)
        return self._selectors(pod)

    def _follow(self, snapshot: Snapshot) -> None:
        now = (snapshot, *(snapshot.version_of(kind) for kind in _KINDS))
        if self._seen != now:
            self._seen = now
            self._services = _by_namespace(snapshot)
            self._selectors = PerClass(lambda each: self._select(each, snapshot))

    def _select(self, pod: PodInfo, snapshot: Snapshot) -> Selector:
        namespace = pod.pod.metadata.namespace
        services: Sequence[Mapping[str, Any]] = self._services.get(namespace, ())
        return default_selector.default_selector(
            pod.pod, services, lambda kind, name: snapshot.others(kind).get(f"{namespace}/{name}")
        )


def _by_namespace(snapshot: Snapshot) -> dict[str, list[Mapping[str, Any]]]:
    services: dict[str, list[Mapping[str, Any]]] = {}
    for key, service in snapshot.others(SERVICE).items():
        services.setdefault(key.partition("/")[0], []).append(service)
    return services
