"""Default selectors of a snapshot's pods, looked up again only when services or controllers change."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.pod import Pod
from dsched.model.selectors import Selector
from dsched.plugins.pod_topology_spread import default_selector
from dsched.plugins.pod_topology_spread.default_selector import CONTROLLERS, SERVICE

Answer = TypeVar("Answer")
_Ask = Callable[[Pod, Iterable[default_selector.Object], default_selector.Find], Answer]
_KINDS = (SERVICE, *(kind for _, kind in CONTROLLERS))


class DefaultSelectors:
    """The selector that spread constraints without one of their own get, by class of pods."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._others_version = -1
        self._seen: tuple[object, ...] = ()
        self._services: dict[str, list[Mapping[str, Any]]] = {}
        self._selectors: PerClass[Selector]
        self._label_keys: PerClass[frozenset[str]]

    def of(self, pod: PodInfo, snapshot: Snapshot) -> Selector:
        """The selector for a pod; one that matches everything where nothing selects it."""
        self._follow(snapshot)
        return self._selectors(pod)

    def label_keys(self, pod: PodInfo, snapshot: Snapshot) -> frozenset[str]:
        """Keys of the labels of a pod on which its selector depends, and on which it depends whether it selects the
        pod."""
        self._follow(snapshot)
        return self._label_keys(pod)

    def _follow(self, snapshot: Snapshot) -> None:
        if snapshot is self._snapshot and snapshot.others_version == self._others_version:
            return
        self._snapshot, self._others_version = snapshot, snapshot.others_version
        now = (snapshot, *(snapshot.version_of(kind) for kind in _KINDS))
        if self._seen != now:
            self._seen = now
            self._services = _by_namespace(snapshot)
            self._label_keys = keys = PerClass(
                lambda each: self._asked(default_selector.label_keys, each, snapshot), key=attrgetter("unclaimed_key")
            )
            self._selectors = PerClass(
                lambda each: self._asked(default_selector.default_selector, each, snapshot),
                key=lambda each: each.keyed_by(keys(each), claims=False),
            )

    def _asked(self, ask: _Ask[Answer], pod: PodInfo, snapshot: Snapshot) -> Answer:
        namespace = pod.pod.metadata.namespace
        services: Sequence[Mapping[str, Any]] = self._services.get(namespace, ())
        return ask(pod.pod, services, lambda kind, name: snapshot.others(kind).get(f"{namespace}/{name}"))


def _by_namespace(snapshot: Snapshot) -> dict[str, list[Mapping[str, Any]]]:
    services: dict[str, list[Mapping[str, Any]]] = {}
    for key, service in snapshot.others(SERVICE).items():
        services.setdefault(key.partition("/")[0], []).append(service)
    return services
