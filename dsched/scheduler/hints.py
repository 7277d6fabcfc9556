"""Queueing hints: which rejected pods an event may help.

A pod that was rejected comes back when one of the plugins that rejected it registered for the event and its hint
function, asked about this very pod, says Queue.

Source: pkg/scheduler/backend/queue/scheduling_queue.go ``isPodWorthRequeuing``, ``moveAllToActiveOrBackoffQueue``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import random
from typing import NamedTuple

from dsched.errors import PluginError
from dsched.framework.extender import EXTENDER
from dsched.framework.interface import Action, ClusterEvent, Hint, HintFn, Registration, Resource
from dsched.framework.runtime import Framework
from dsched.framework.validation import PluginFailure, answered
from dsched.log import logger
from dsched.metrics import collect
from dsched.model.meta import PodKey
from dsched.model.pod import Pod
from dsched.model.queues import PLUGIN
from dsched.scheduler.queue import PendingPods, QueuedPod

_log = logger(__name__)

_HINTS = {Hint.QUEUE: "Queue", Hint.SKIP: "QueueSkip"}
"""As metrics have them. Source: pkg/scheduler/metrics/metrics.go ``QueueingHintResultQueue``."""

_Registered = dict[tuple[str, str], dict[str, list[Registration]]]
"""(resource, action) to plugin and its registrations; one without a hint function means that every such event helps."""


class _Named(NamedTuple):
    """What tells which claim a pod has to name, or which group it has to be of, for an event to help it."""

    by_group: bool
    of: Callable[[ClusterEvent], str | None]


class Hints:
    """The registrations of all profiles."""

    def __init__(self, frameworks: Mapping[str, Framework]) -> None:
        self._registered: dict[str, _Registered] = {
            name: _registrations(framework) for name, framework in frameworks.items()
        }
        self._per_class = {name: _per_class(framework) for name, framework in frameworks.items()}
        self._interested_in: dict[tuple[Resource, Action], frozenset[str]] = {}
        self._silent: dict[str, frozenset[str]] = {name: _silent(framework) for name, framework in frameworks.items()}
        self._named = _named(self._registered, self._silent, self._per_class)
        self._labels = {profile: _labels(registered) for profile, registered in self._registered.items()}
        self._divided = any(framework.plugin(PLUGIN) is not None for framework in frameworks.values())

    def helped(self, event: ClusterEvent, pending: PendingPods, emptied: set[int] | None = None) -> list[QueuedPod]:
        """Unschedulable and gated pods that the event may have made schedulable, without those that are on their way
        into the queue already.

        Args:
            emptied: by identity, the classes that have no others left; those are added of which this event helps all.
                For a caller that marks whom he is given as on their way before he asks about the next event.
        """
        found: list[list[QueuedPod]] = []
        for plugin in self._interested(event) if pending.any_rejected else ():
            named = self._named.get((event.resource.value, event.action.value, plugin))
            # An event about a claim or a group helps its pods; to look at all takes the longer, the more pods wait.
            name = None if named is None else _answered(plugin, named, event)
            by_group = named is not None and named.by_group and name is not None
            if name is None:
                rejected = pending.rejected_by(plugin)
            elif by_group:
                rejected = iter([pending.rejected_of(name, plugin)])
            else:
                rejected = iter([pending.rejected_naming(name, plugin)])
            for pods in rejected:
                if pods and (helped := self._helped(plugin, event, pods, emptied, by_group=by_group)):
                    found.append(helped)
        if len(found) == 1:
            return found[0]
        return list({id(pod): pod for pods in found for pod in pods}.values())  # some were rejected by two plugins

    def _helped(
        self,
        plugin: str,
        event: ClusterEvent,
        pods: Mapping[PodKey, QueuedPod],
        emptied: set[int] | None,
        *,
        by_group: bool,
    ) -> list[QueuedPod]:
        """Those pods of a class, or of a group, that the plugin, which rejected them, would have tried again."""
        one = next(iter(pods.values()))
        if not by_group and plugin not in self._per_class[one.info.pod.spec.scheduler_name]:
            rest = [pod for pod in pods.values() if not pod.leaving and self._help(event, pod, [plugin])]
            return [pod for pod in rest if self._concerns(event, pod)]
        if not self._help(event, one, [plugin]) or (emptied is not None and id(pods) in emptied):
            return []
        if event.resource is Resource.ASSIGNED_POD and event.action is Action.DELETE:
            if not event.old.node_name and not self._concerns(event, one):  # its priority is that of its class
                return []
            itself = pods.get(event.old.key)
            if itself is not None and not self._concerns(event, itself):
                return [pod for pod in pods.values() if not pod.leaving and pod is not itself]
        if emptied is not None:
            emptied.add(id(pods))
        return [pod for pod in pods.values() if not pod.leaving]

    def _concerns(self, event: ClusterEvent, pod: QueuedPod) -> bool:
        """Whether hints are asked about the event at all. That the pod's own reservation was released frees nothing for
        the pod itself; and the end of a promise, nothing for pods of higher priority than the promised one's, but where
        queues divide the cluster: there promises hold for all.

        Source: pkg/scheduler/schedule_one.go ``handleBindingCycleError``; eventhandlers.go ``getLEPriorityPreCheck``.
        """
        if event.resource is not Resource.ASSIGNED_POD or event.action is not Action.DELETE:
            return True
        about: Pod = event.old
        if about.node_name:
            return about.uid != pod.uid
        return self._divided or pod.info.priority <= about.spec.priority

    def helps(self, event: ClusterEvent, pod: QueuedPod) -> bool:
        """Whether the event may have made this pod schedulable."""
        return self._help(event, pod, pod.plugins)

    def heeded(self, resource: Resource, action: Action, pod: QueuedPod) -> bool:
        """Whether any of the plugins that rejected the pod wants to hear of such events at all."""
        profile = pod.info.pod.spec.scheduler_name
        hears = self._registered.get(profile, {}).get((resource.value, action.value), {}).keys()
        return bool(pod.plugins & (hears | self._silent.get(profile, frozenset())))

    def registered(self, plugin: str, pod: QueuedPod) -> Sequence[str]:
        """Labels of the events that a plugin of the pod's profile has registered for."""
        return self._labels.get(pod.info.pod.spec.scheduler_name, {}).get(plugin, ())

    def end_pause(self, event: ClusterEvent, pod: QueuedPod) -> bool:
        """Whether the event may be what a plugin that said Pending waits for: then the pod is tried at once."""
        return bool(pod.waiting) and self._help(event, pod, pod.waiting)

    def _help(self, event: ClusterEvent, pod: QueuedPod, plugins: Iterable[str]) -> bool:
        profile = pod.info.pod.spec.scheduler_name
        registered = self._registered.get(profile, {}).get((event.resource.value, event.action.value), {})
        for plugin in plugins:
            if plugin in self._silent.get(profile, frozenset()):
                return True
            if any(_asked(plugin, each.hint, pod, event) is Hint.QUEUE for each in registered.get(plugin, ())):
                return True
        return False

    def _interested(self, event: ClusterEvent) -> frozenset[str]:
        """The plugins that registered for such events, and where they are about more than a pod without a node, those
        that never say."""
        kind = (event.resource, event.action)
        interested = self._interested_in.get(kind)
        if interested is None:
            names = {
                plugin
                for registered in self._registered.values()
                for plugin in registered.get((event.resource.value, event.action.value), ())
            }
            if event.resource not in (Resource.POD, Resource.PENDING_POD):
                names.update(*self._silent.values())
            interested = self._interested_in[kind] = frozenset(names)
        return interested


def _silent(framework: Framework) -> frozenset[str]:
    """Plugins to which every event matters, as they do not say which do.

    Source: runtime/framework.go ``fillEnqueueExtensions``.
    """
    return frozenset(plugin.name for plugin in framework.plugins if not hasattr(plugin, "events_to_register"))


def _per_class(framework: Framework) -> frozenset[str]:
    """Plugins whose hints are the same for all pods of a class, as are those of plugins that never say, and of
    extenders."""
    return _silent(framework) | {
        EXTENDER,
        *(plugin.name for plugin in framework.plugins if getattr(plugin, "hints_per_class", False)),
    }


def _named(
    registered: Mapping[str, _Registered],
    silent: Mapping[str, frozenset[str]],
    per_class: Mapping[str, frozenset[str]],
) -> dict[tuple[str, str, str], _Named]:
    """(resource, action, plugin) to what says which claim or group an event is about, where every profile agrees."""
    found: dict[tuple[str, str, str], _Named | None] = {}
    for profile, events in registered.items():
        others = silent[profile] | per_class[profile]
        for (resource, action), plugins in events.items():
            for plugin, registrations in plugins.items():
                key = resource, action, plugin
                (first, *more) = [_named_by(each) for each in registrations]
                clear = first is not None and not more and plugin not in others and found.get(key, first) is not None
                found[key] = first if clear else None
    return {key: named for key, named in found.items() if named is not None}


def _named_by(registration: Registration) -> _Named | None:
    if registration.group is not None:
        return _Named(by_group=True, of=registration.group)
    return None if registration.claim is None else _Named(by_group=False, of=registration.claim)


def _answered(plugin: str, named: _Named, event: ClusterEvent) -> str | None:
    """The claim or group that an event is about; None where it may help any pod."""
    try:
        return answered(plugin, (str, type(None)), named.of, event)
    except PluginFailure as failure:
        _log.warning("event not understood, all pods looked at", extra={"action": "hint", "error": str(failure)})
        return None


def _asked(plugin: str, hint: HintFn | None, pod: QueuedPod, event: ClusterEvent) -> Hint:
    """A hint function that fails counts as Queue: a needless attempt is better than a pod left behind."""
    if hint is None:
        return Hint.QUEUE
    started = collect.now() if random() < collect.SAMPLED else 0.0
    try:
        said = answered(plugin, (Hint,), hint, pod.info.pod, event)
        if started:
            collect.hint_call(plugin, event.label, collect.now() - started, _HINTS[said])
        return said
    except PluginFailure as failure:
        if started:
            collect.hint_call(plugin, event.label, collect.now() - started, "Error")
        _log.warning(
            "queueing hint failed, pod queued",
            extra={"action": "hint", "pod": pod.key, "uid": pod.uid, "plugin": plugin, "error": str(failure)},
        )
        return Hint.QUEUE


def _registrations(framework: Framework) -> _Registered:
    registered: _Registered = {}
    for plugin in framework.plugins:
        if hasattr(plugin, "events_to_register"):
            try:
                registrations = plugin.events_to_register()
            except Exception as error:
                raise PluginError(f"plugin {plugin.name}: events_to_register failed: {error!r}") from error
            if not framework.profile.features.since(37) and _passes_over_taints(registrations):
                registrations = [*registrations, _TAINTS]
            _register(registered, plugin.name, registrations)
    if framework.extenders is not None:
        _register(registered, EXTENDER, _FOR_EXTENDERS)
    return registered


def _register(registered: _Registered, name: str, registrations: Sequence[Registration]) -> None:
    for registration in registrations:
        for action in registration.actions:
            event = (registration.resource.value, action.value)
            registered.setdefault(event, {}).setdefault(name, []).append(registration)


def _passes_over_taints(registrations: Sequence[Registration]) -> bool:
    """Whether a plugin wants to hear of nodes that come, but not of those whose taints change.

    Source: pkg/scheduler/scheduler.go ``buildQueueingHintMap`` (kubernetes issue 109437); until v1.36.
    """
    nodes = [each for each in registrations if each.resource is Resource.NODE]
    hears = any(Action.UPDATE in each.actions and each.about_taints for each in nodes)
    return any(Action.ADD in each.actions for each in nodes) and not hears


def _after_taints_changed(pod: Pod, event: ClusterEvent) -> Hint:
    """A node has other taints, or was uncordoned.

    Source: framework/events.go ``extractNodeTaintsChange``, ``extractNodeSpecUnschedulableChange``.
    """
    before, after = event.old.spec, event.new.spec
    uncordoned = before.unschedulable and not after.unschedulable
    return Hint.QUEUE if uncordoned or before.taints != after.taints else Hint.SKIP


def _after_node_changed(pod: Pod, event: ClusterEvent) -> Hint:
    """A node has become another one in what may let somebody onto it.

    Source: framework/events.go ``NodeSchedulingPropertiesChange``.
    """
    old, new = event.old, event.new
    changed = (
        old.spec.pod_preemption_policy != new.spec.pod_preemption_policy
        or old.status.allocatable != new.status.allocatable
        or old.status.declared_features != new.status.declared_features
        or old.metadata.labels != new.metadata.labels
        or old.metadata.annotations != new.metadata.annotations
    )
    return Hint.QUEUE if changed else _after_taints_changed(pod, event)


_FOR_EXTENDERS = (
    Registration(Resource.NODE, frozenset({Action.ADD, Action.DELETE})),
    Registration(Resource.NODE, frozenset({Action.UPDATE}), _after_node_changed),
    *(
        Registration(resource, frozenset(Action))
        for resource in (
            Resource.POD,
            Resource.ASSIGNED_POD,
            Resource.PV,
            Resource.PVC,
            Resource.CSI_NODE,
            Resource.CSI_DRIVER,
            Resource.CSI_STORAGE_CAPACITY,
            Resource.STORAGE_CLASS,
            Resource.RESOURCE_CLAIM,
            Resource.DEVICE_CLASS,
            Resource.POD_GROUP,
        )
    ),
)
"""What extenders hear of, which cannot register themselves. Source: framework/types.go ``UnrollWildCardResource``;
runtime/framework.go ``NewFramework``."""

_TAINTS = Registration(Resource.NODE, frozenset({Action.UPDATE}), _after_taints_changed)


def _labels(registered: _Registered) -> Mapping[str, Sequence[str]]:
    """Plugin to the labels of the events it registered for."""
    found: dict[str, list[str]] = {}
    for (resource, action), plugins in registered.items():
        for plugin in plugins:
            found.setdefault(plugin, []).append(f"{resource}{action}")
    return found
