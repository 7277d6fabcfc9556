"""The extenders of a configuration, asked in its order: those whose failure is ignored come last.

Source: pkg/scheduler/schedule_one.go ``findNodesThatPassExtenders``, ``prioritizeNodes``, ``extendersBinding``;
framework/preemption/preemption.go ``callExtenders``.
"""

import logging
from collections.abc import Mapping, Sequence

from dsched.clock import Clock
from dsched.config import Extender
from dsched.extenders import preemption, wire
from dsched.extenders.client import Call, Client
from dsched.extenders.errors import SILENT, UNCLEAR, CallFailed, Ending
from dsched.extenders.limits import BIND_ANSWER_BYTES, Reasons
from dsched.extenders.objects import Objects
from dsched.framework import extender as extending
from dsched.framework.extender import BindFailure, ExtenderFailure, Filtering, ReadObjects, Said, Scoring, Victims
from dsched.framework.interface import unresolvable, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.log import cut, logger
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod

_log = logger(__name__)


class Webhook:
    """One extender: its settings and the client that calls it."""

    def __init__(self, extender: Extender, clock: Clock | None) -> None:
        self.settings = extender
        self.client = Client(extender, clock)
        self.name = self.client.name
        self._managed = frozenset(resource.name for resource in extender.managed_resources)

    def interested(self, pod: Pod) -> bool:
        """Whether the pod asks for a resource that the extender manages; every pod, where it manages none.

        Source: pkg/scheduler/extender.go ``IsInterested``.
        """
        return not self._managed or any(
            not self._managed.isdisjoint(amounts)
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for amounts in (container.resources.requests, container.resources.limits)
        )


class Extenders:
    """Used by one thread."""

    def __init__(
        self, configured: Sequence[Extender], read: ReadObjects | None = None, clock: Clock | None = None
    ) -> None:
        """
        Args:
            configured: in calling order.
            read: where the pods and nodes that are sent are read from, whole; without it they are sent with the
                fields that scheduling reads.

        Raises:
            PluginError: the TLS settings of one cannot be used.
        """
        self._objects = Objects(read)
        self._webhooks = [Webhook(extender, clock) for extender in configured]

    def _interested(self, pod: PodInfo) -> list[Webhook]:
        return [webhook for webhook in self._webhooks if webhook.interested(pod.pod)]

    def concerned(self, pod: PodInfo) -> bool:
        """Whether an extender has a say in where this pod goes."""
        return any(webhook.interested(pod.pod) for webhook in self._webhooks)

    # -- filter and prioritize -------------------------------------------------------------------------------------

    def filter(self, pod: PodInfo, nodes: Sequence[Node]) -> Filtering:
        """Ask one after the other, each about what the one before has left.

        Raises:
            ExtenderFailure: one failed that must not be ignored.
        """
        left = list(nodes)
        said: dict[str, Said] = {}
        left_out: dict[NodeName, str] = {}
        for webhook in self._interested(pod):
            if not left:
                break
            if not webhook.settings.filter_verb:
                continue
            try:
                result = webhook.client.ask(
                    webhook.settings.filter_verb, self._args(webhook, pod, left), wire.filter_result
                )
                kept = _kept(webhook, result, left)
            except CallFailed as failure:
                _ignore(webhook, pod, failure)
                continue
            reasons = Reasons()
            for name, message in result.failed.items():
                said[name] = Said(webhook.name, unschedulable(reasons.told(message)))
            for name, message in result.unresolvable.items():
                said[name] = Said(webhook.name, unresolvable(reasons.told(message)))
            left_out |= {node.name: webhook.name for node in left if node.name not in kept}
            left = [node for node in left if node.name in kept]
        return Filtering(tuple(node.name for node in left), said, left_out)

    def prioritize(self, pod: PodInfo, nodes: Sequence[Node]) -> Sequence[Scoring]:
        """Ask all at the same time; who fails has no say."""
        asked = [webhook for webhook in self._interested(pod) if webhook.settings.prioritize_verb]
        calls = [
            webhook.client.begin(webhook.settings.prioritize_verb, self._args(webhook, pod, nodes)) for webhook in asked
        ]
        found: list[Scoring] = []
        for webhook, call in zip(asked, calls, strict=True):
            try:
                scores = webhook.client.answer(call, wire.priorities)
            except CallFailed as failure:
                _tell(webhook, pod, failure)
            else:
                found.append(Scoring(webhook.name, webhook.settings.weight, scores))
        return found

    def _args(self, webhook: Webhook, pod: PodInfo, nodes: Sequence[Node]) -> bytes:
        encoded = self._objects.pod(pod.pod)
        if webhook.settings.node_cache_capable:
            return wire.args(encoded, None, [node.name for node in nodes])
        return wire.args(encoded, self._objects.nodes(nodes), None)

    # -- preempt ---------------------------------------------------------------------------------------------------

    def preempt(
        self, pod: PodInfo, candidates: Mapping[NodeName, Victims], snapshot: Snapshot
    ) -> Mapping[NodeName, Victims]:
        """Which of the candidates to go on with, and with which victims.

        Raises:
            ExtenderFailure: one failed that must not be ignored.
        """
        left = candidates
        for webhook in self._interested(pod):
            settings = webhook.settings
            if not left:
                break
            if not settings.preempt_verb:
                continue
            body = preemption.args(self._objects, pod.pod, left, meta=settings.node_cache_capable)
            try:
                result = webhook.client.ask(settings.preempt_verb, body, wire.preemption_result)
                left = preemption.victims(webhook.name, result, snapshot.table, ignorable=settings.ignorable)
            except CallFailed as failure:
                _ignore(webhook, pod, failure)
            except preemption.NoVictims as error:
                raise ExtenderFailure(str(error)) from error
        return left

    # -- bind ------------------------------------------------------------------------------------------------------

    @property
    def bind_timeout_s(self) -> float:
        """How long binding by an extender may take."""
        return max((each.client.timeout_s for each in self._webhooks if each.settings.bind_verb), default=0.0)

    def binds(self, pod: PodInfo) -> bool:
        """Whether an extender binds this pod."""
        return self._binder(pod) is not None

    def _binder(self, pod: PodInfo) -> Webhook | None:
        """A configuration has one binder at most."""
        return next((each for each in self._interested(pod) if each.settings.bind_verb), None)

    def bind(self, pods: Sequence[tuple[PodInfo, NodeName]]) -> list[BindFailure | None]:
        """Have pods bound that `binds`, all at the same time: None where the extender says that it is done."""
        calls = []
        for pod, node in pods:
            webhook = self._binder(pod)
            if webhook is None:
                raise ValueError(f"pod {pod.key} is bound by no extender")
            body = wire.binding_args(pod.pod, node)
            call = webhook.client.begin(webhook.settings.bind_verb, body, repeatable=False, most=BIND_ANSWER_BYTES)
            calls.append((webhook, call))
        return [_bound(webhook, call) for webhook, call in calls]

    def ignores_failure_to_bind(self, pod: PodInfo) -> bool:
        """Whether the Bind plugins bind the pod when the extender fails."""
        webhook = self._binder(pod)
        return webhook is not None and webhook.settings.ignorable


def _bound(webhook: Webhook, call: Call) -> BindFailure | None:
    try:
        error = webhook.client.answer(call, wire.binding_error)
    except CallFailed as failure:
        return BindFailure(str(failure), failure.ending in UNCLEAR)
    return BindFailure(cut(error), unclear=False) if error else None


def _kept(webhook: Webhook, result: wire.FilterResult, asked: Sequence[Node]) -> frozenset[str]:
    """Names of the nodes that an extender lets through.

    Raises:
        CallFailed: it says that it failed, or lets through what it was not asked about.
    """
    if result.error:
        raise CallFailed(Ending.ERROR, cut(result.error))
    names = result.node_names if webhook.settings.node_cache_capable else None
    kept = names if names is not None else result.nodes or ()
    known = {node.name for node in asked}
    for name in kept:
        if name not in known:
            raise CallFailed(
                Ending.ERROR,
                f'extender "{webhook.name}" claims a filtered node "{cut(name)}" which is not found in the input node '
                "list",
            )
    return frozenset(kept)


def _ignore(webhook: Webhook, pod: PodInfo, failure: CallFailed) -> None:
    """Go on without an extender, where that is allowed.

    Raises:
        ExtenderFailure: it is not.
    """
    if not webhook.settings.ignorable:
        raise ExtenderFailure(str(failure)) from failure
    _tell(webhook, pod, failure)


def _tell(webhook: Webhook, pod: PodInfo, failure: CallFailed) -> None:
    """While the breaker is open the metric tells enough."""
    if failure.ending is Ending.SKIPPED:
        return
    _log.log(
        logging.WARNING if failure.ending in SILENT else logging.INFO,
        "extender passed over",
        extra={"action": "extend", "pod": pod.key, "uid": pod.uid, "extender": webhook.name, "error": str(failure)},
    )


_role: type[extending.Extending] = Extenders
