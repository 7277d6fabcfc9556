"""The selector that default spread constraints get: what the pod's services and its controller select.

Source: pkg/scheduler/framework/plugins/helper/spread.go ``DefaultSelector``, ``GetPodServices``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from dsched.errors import SelectorError
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model import meta, selectors
from dsched.model.meta import LabelSelector
from dsched.model.pod import Pod
from dsched.model.selectors import Selector

Object = Mapping[str, Any]
Find = Callable[[str, str], Object | None]
"""An object by kind and name, in the pod's namespace."""
Answer = TypeVar("Answer")
_Ask = Callable[[Pod, Iterable[Object], Find], Answer]

SERVICE = "Service"
CONTROLLERS = (
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
)
"""API version and kind of the controllers whose selectors are looked at."""
_KINDS = (SERVICE, *(kind for _, kind in CONTROLLERS))


def default_selector(pod: Pod, services: Iterable[Object], find: Find) -> Selector:
    """The selector; one that matches everything where the pod has no service and no known controller.

    Args:
        services: those of the pod's namespace.
    """
    merged: dict[str, str] = {}
    for service in services:
        wanted = _spec(service).get("selector")
        if wanted is not None and selectors.labels_equal(_strings(wanted)).matches(pod.metadata.labels):
            merged |= _strings(wanted)
    return _with_controller(merged, pod, find)


def label_keys(pod: Pod, services: Iterable[Object], find: Find) -> frozenset[str]:
    """Keys of the labels of a pod on which its selector depends, and whether it selects the pod; the arguments are
    those of `default_selector`."""
    keys = {key for service in services for key in _spec(service).get("selector") or ()}
    return frozenset(keys.union(each.key for each in _with_controller({}, pod, find).requirements))


class DefaultSelectors:
    """Default selectors of a snapshot's pods, by class; looked up again only when services or controllers change."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._others_version = -1
        self._seen: tuple[object, ...] = ()
        self._services: dict[str, list[Object]] = {}
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
                lambda each: self._asked(label_keys, each, snapshot), key=attrgetter("unclaimed_key")
            )
            self._selectors = PerClass(
                lambda each: self._asked(default_selector, each, snapshot),
                key=lambda each: each.keyed_by(keys(each), claims=False),
            )

    def _asked(self, ask: _Ask[Answer], pod: PodInfo, snapshot: Snapshot) -> Answer:
        namespace = pod.pod.metadata.namespace
        services: Sequence[Object] = self._services.get(namespace, ())
        return ask(pod.pod, services, lambda kind, name: snapshot.others(kind).get(f"{namespace}/{name}"))


def _with_controller(merged: dict[str, str], pod: Pod, find: Find) -> Selector:
    """What the pod's services select, together with what its controller does."""
    owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    if owner is None or (owner.api_version, owner.kind) not in CONTROLLERS:
        return selectors.labels_equal(merged)
    controller = find(owner.kind, owner.name)
    wanted = None if controller is None else _spec(controller).get("selector")
    if owner.kind == "ReplicationController":
        return selectors.labels_equal(merged | _strings(wanted or {}))
    return Selector(selectors.labels_equal(merged).requirements + _controlled(wanted).requirements)


def _controlled(wanted: Any) -> Selector:
    """A ReplicaSet's or StatefulSet's label selector; one that is absent or not legal adds nothing."""
    if wanted is None:
        return selectors.NOTHING
    try:
        return selectors.label_selector(meta.from_builtins(wanted, LabelSelector))
    except (msgspec.ValidationError, SelectorError):
        return selectors.NOTHING


def _spec(value: Object) -> Object:
    return value.get("spec") or {}


def _strings(labels: Mapping[str, Any]) -> dict[str, str]:
    """Labels as read from JSON, where null stands for the empty text."""
    return {key: "" if value is None else str(value) for key, value in labels.items()}


def _by_namespace(snapshot: Snapshot) -> dict[str, list[Object]]:
    services: dict[str, list[Object]] = {}
    for key, service in snapshot.others(SERVICE).items():
        services.setdefault(key.partition("/")[0], []).append(service)
    return services
