"""FairShare: which queue a pod is of, whether it may be, and that no queue holds more than its limit.

Inside a queue pods are sorted as PrioritySort sorts them; whose queue's pod is next is worked out in
`dsched.scheduler.quota.picking`, which the leader asks where a profile sorts with this plugin.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dsched.config.feature_gates import UNSAID, Features
from dsched.config.types import SchedulerConfiguration
from dsched.engine.failed_attempt import FailedAttempt, FailedGroupAttempt
from dsched.errors import PluginError
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    Code,
    PodGroupPostFilterResult,
    PostFilterResult,
    Registration,
    Resource,
    Status,
)
from dsched.framework.interning import MOST_READ
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.model.meta import NodeName, key_of
from dsched.model.pod import Pod
from dsched.model.queues import QUEUE
from dsched.model.resource_claims import RESOURCE_CLAIM
from dsched.plugins.fair_share.reclaim import Reclaim
from dsched.plugins.priority_sort import PrioritySort

NAME = "FairShare"
UNKNOWN = 'queue "{queue}" does not exist'
BROKEN = 'queue "{queue}" cannot be used: {why}'
NO_LEAF = 'queue "{queue}" has queues below it; pods go into one of these'
NOT_ALLOWED = 'queue "{queue}" may not be used by pods of namespace "{namespace}"'
TOO_LARGE = 'pod requests {amount} of {resource}, more than the limit of queue "{queue}"'
FULL = 'queue "{queue}" would exceed its limit of {resource}'


class Arguments(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What the configuration may say of it.

    Attributes:
        kueue_label: whether ``kueue.x-k8s.io/queue-name`` names a pod's queue where its own label does not.
    """

    kueue_label: bool = False


class FairShare(PrioritySort):
    name = NAME
    takes_features = True
    pre_enqueue_reads = (QUEUE, "Namespace", RESOURCE_CLAIM)

    def __init__(self, args: Any, handle: Any, features: Features = UNSAID) -> None:
        """Without a leader that divides the cluster (``handle.queues``), it only sorts."""
        super().__init__(args, handle)
        decoded(args)
        self._queues: Any = getattr(handle, "queues", None)
        self._requested: dict[tuple[int, int], tuple[Pod, Mapping[str, int]]] = {}
        """By identity of spec and status a pod that keeps them, and what it requests."""
        self._tree: Any = None
        self._found: dict[tuple[str, str, int, int], tuple[Pod, str]] = {}
        """In `_tree`, by queue, namespace, identity of spec and status: a pod that keeps them, and what is wrong."""
        self._reclaim = Reclaim(handle, features) if self._queues is not None else None

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Whether the pod's queue is there, takes pods of its namespace, and is large enough for it."""
        if self._queues is None:
            return None
        name = self._queues.named(pod)
        wrong = self._wrong(name, pod) if name else ""
        return interface.unresolvable(wrong) if wrong else None

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """The pod is counted on its node already: whether that exceeds a limit above it."""
        if self._queues is None or not (name := self._queues.entry(pod).name):
            return None
        leaf = self._queues.tree.leaf(name)
        if leaf is None:
            return interface.unresolvable(self._wrong(name, pod.pod) or UNKNOWN.format(queue=name))
        for share, resource in leaf.exceeded():
            if self._queues.freed(pod).get(resource, 0):
                return Status(Code.UNSCHEDULABLE, (FULL.format(queue=share.name, resource=resource),))
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Nothing to do: who is on a node no more does not count."""

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        """Make room for the pod in its own queue by priority, in others by what these are due."""
        if self._reclaim is None:
            return PostFilterResult(None, interface.unschedulable(""))
        return self._reclaim.post_filter(attempt)

    def pod_group_post_filter(self, attempt: FailedGroupAttempt) -> PodGroupPostFilterResult:
        """Make room for a pod group as for a pod."""
        if self._reclaim is None:
            return PodGroupPostFilterResult(interface.unschedulable(""))
        return self._reclaim.pod_group_post_filter(attempt)

    def events_to_register(self) -> Sequence[Registration]:
        """Queues that come and change, labels of namespaces, claims that say what a pod asks for, and pods that leave
        room below a limit."""
        return (
            Registration(Resource.QUEUE, frozenset({Action.ADD, Action.UPDATE, Action.DELETE})),
            Registration(Resource.NAMESPACE, frozenset({Action.ADD, Action.UPDATE})),
            Registration(Resource.RESOURCE_CLAIM, frozenset({Action.ADD, Action.DELETE}), claim=_key),
            Registration(Resource.ASSIGNED_POD, frozenset({Action.DELETE})),
        )

    def _wrong(self, name: str, pod: Pod) -> str:
        """Why pods like this one are never taken into a queue; empty where they are."""
        tree, namespace = self._queues.tree, pod.metadata.namespace or "default"
        if pod.spec.resource_claims:
            return self._look_up(tree, name, namespace, pod)
        if tree is not self._tree or len(self._found) >= MOST_READ:
            self._tree, self._found = tree, {}
        key = name, namespace, id(pod.spec), id(pod.status)
        known = self._found.get(key)
        if known is None:
            known = self._found[key] = pod, self._look_up(tree, name, namespace, pod)
        return known[1]

    def _look_up(self, tree: Any, name: str, namespace: str, pod: Pod) -> str:
        share = tree.shares.get(name)
        if share is None:
            why = tree.broken.get(name)
            return BROKEN.format(queue=name, why=why) if why else UNKNOWN.format(queue=name)
        if share.children:
            return NO_LEAF.format(queue=name)
        allowed = share.queue.spec.namespaces
        if allowed and namespace not in allowed:
            return NOT_ALLOWED.format(queue=name, namespace=namespace)
        if not share.limited:
            return ""
        wanted = self._queues.requested([PodInfo(pod)]) if pod.spec.resource_claims else self._amounts(pod)
        for above in share.limited:
            for resource, limit in above.limits.items():
                if wanted.get(resource, 0) > limit:
                    amount = f"{wanted[resource]}m" if resource == "cpu" else str(wanted[resource])
                    return TOO_LARGE.format(amount=amount, resource=resource, queue=above.name)
        return ""

    def _amounts(self, pod: Pod) -> Mapping[str, int]:
        """What a pod requests; pods that were read alike have one spec and one status."""
        key = id(pod.spec), id(pod.status)
        known = self._requested.get(key)
        if known is None:
            if len(self._requested) >= MOST_READ:
                self._requested.clear()
            known = self._requested[key] = pod, amounts(PodInfo(pod))
        return known[1]


def _key(event: ClusterEvent) -> str:
    """``namespace/name`` of the claim that an event is about."""
    return key_of(event.old if event.new is None else event.new)


def arguments(config: SchedulerConfiguration) -> Arguments | None:
    """What a configuration says of it; None where its pods are not sorted by it, which holds for all profiles."""
    profile = config.profiles[0]
    if NAME not in [plugin.name for plugin in profile.plugins["queueSort"]]:
        return None
    return decoded(profile.args.get(NAME))


def takes_kueue_label(config: SchedulerConfiguration) -> bool:
    """Whether Kueue's label names a pod's queue where its own label does not."""
    found = arguments(config)
    return found is not None and found.kueue_label


def decoded(args: Any) -> Arguments:
    """
    Raises:
        PluginError: they are not what `Arguments` says.
    """
    given = args if isinstance(args, Mapping) else {}
    try:
        return msgspec.convert(given, Arguments)
    except msgspec.ValidationError as error:
        raise PluginError(f"arguments of plugin {NAME}: {error}") from error


_sort: type[interface.QueueSortPlugin] = FairShare
_pre_enqueue: type[interface.PreEnqueuePlugin] = FairShare
_post_filter: type[interface.PostFilterPlugin] = FairShare
_groups: type[interface.PodGroupPostFilterPlugin] = FairShare
_reserve: type[interface.ReservePlugin] = FairShare
_enqueue: type[interface.EnqueueExtensions] = FairShare
