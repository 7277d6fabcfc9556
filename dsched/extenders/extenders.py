"""The extenders of a configuration, asked in its order: those whose failure is ignored come last.

Source: pkg/scheduler/schedule_one.go ``findNodesThatPassExtenders``, ``prioritizeNodes``, ``extendersBinding``;
extender.go ``ProcessPreemption``; framework/preemption/preemption.go ``callExtenders``.
"""

import logging
from collections.abc import Mapping, Sequence

from dsched.clock import Clock
from dsched.config import Extender
from dsched.extenders import wire
from dsched.extenders.client import SILENT, UNCLEAR, Call, CallFailed, Client, Ending
from dsched.extenders.limits import BIND_ANSWER_BYTES, Reasons
from dsched.extenders.wire import Objects
from dsched.framework import extender as extending
from dsched.framework.extender import (
    AnsweredNode,
    BindFailure,
    ExtenderFailure,
    Filtering,
    ReadObjects,
    Said,
    Scoring,
    Victims,
)
from dsched.framework.interface import unresolvable, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
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
        answered: dict[NodeName, AnsweredNode] = {}
        said: dict[str, Said] = {}
        left_out: dict[NodeName, str] = {}
        for webhook in self._interested(pod):
            if not left:
                break
            if not webhook.settings.filter_verb:
                continue
            try:
                result = webhook.client.ask(
                    webhook.settings.filter_verb, self._args(webhook, pod, left, answered), wire.filter_result
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
            answered = {node.name: given for node in left if (given := kept[node.name] or answered.get(node.name))}
        return Filtering(tuple(node.name for node in left), said, left_out, answered)

    def prioritize(
        self, pod: PodInfo, nodes: Sequence[Node], answered: Mapping[NodeName, AnsweredNode]
    ) -> Sequence[Scoring]:
        """Ask all at the same time; who fails has no say.

        Args:
            answered: as `Filtering` has it.
        """
        asked = [webhook for webhook in self._interested(pod) if webhook.settings.prioritize_verb]
        calls = [
            webhook.client.begin(webhook.settings.prioritize_verb, self._args(webhook, pod, nodes, answered))
            for webhook in asked
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

    def _args(
        self, webhook: Webhook, pod: PodInfo, nodes: Sequence[Node], answered: Mapping[NodeName, AnsweredNode]
    ) -> bytes:
        encoded = self._objects.pod(pod.pod)
        if webhook.settings.node_cache_capable:
            return wire.args(encoded, None, [node.name for node in nodes])
        if answered:
            return wire.args(encoded, [answered[node.name].whole for node in nodes], None)
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
            body = _preemption_args(self._objects, pod.pod, left, meta=settings.node_cache_capable)
            try:
                result = webhook.client.ask(settings.preempt_verb, body, wire.preemption_result)
                left = _left_victims(webhook.name, result, snapshot.table, ignorable=settings.ignorable)
            except CallFailed as failure:
                _ignore(webhook, pod, failure)
            except _NoVictims as error:
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


def _kept(webhook: Webhook, result: wire.FilterResult, asked: Sequence[Node]) -> Mapping[NodeName, AnsweredNode | None]:
    """The nodes that an extender lets through, by name, and as it gives them where it gives them whole.

    Raises:
        CallFailed: it says that it failed, or lets through what it was not asked about.
    """
    if result.error:
        raise CallFailed(Ending.ERROR, cut(result.error))
    names = result.node_names if webhook.settings.node_cache_capable else None
    kept: dict[NodeName, AnsweredNode | None]
    if names is not None:
        kept = dict.fromkeys(map(NodeName, names))
    else:
        kept = {each.node.name: each for each in result.nodes or ()}
    known = {node.name for node in asked}
    for name in kept:
        if name not in known:
            raise CallFailed(
                Ending.ERROR,
                f'extender "{webhook.name}" claims a filtered node "{cut(name)}" which is not found in the input node '
                "list",
            )
    return kept


class _NoVictims(Exception):
    """An extender that must not be ignored names a node without victims."""


def _preemption_args(objects: Objects, pod: Pod, candidates: Mapping[NodeName, Victims], *, meta: bool) -> bytes:
    """The question: candidates by node, with their pods or, for ``meta``, with UIDs of these only."""
    if meta:
        named = {node: wire.meta_victims(victims) for node, victims in candidates.items()}
    else:
        named = {
            node: wire.full_victims(objects.pods([victim.pod for victim in victims.pods], node), victims.violations)
            for node, victims in candidates.items()
        }
    return wire.preemption_args(objects.pod(pod), named, meta=meta)


def _left_victims(
    extender: str, answer: Mapping[str, wire.MetaVictims], table: NodeTable, *, ignorable: bool
) -> dict[NodeName, Victims]:
    """The answer as candidates, in the table's order.

    Raises:
        CallFailed: it names nodes or pods that are not there.
        NoVictims: it names a node without victims, and is not ``ignorable``; else such nodes are left out.
    """
    found: dict[int, Victims] = {}
    for name, named in answer.items():
        row = table.index.get(NodeName(name))
        if row is None:
            raise CallFailed(Ending.ERROR, f'nodeinfo not found for node name "{cut(name)}"')
        there = {str(pod.uid): pod for pod in table.info(row).pods}
        for uid in named.uids:
            if uid not in there:
                raise CallFailed(
                    Ending.ERROR,
                    f"extender: {extender} claims to preempt pod (UID: &{{{cut(uid)}}}) on node: {name}, but the pod "
                    "is not found on that node",
                )
        found[row] = Victims(tuple(there[uid] for uid in named.uids), named.violations)
    for row, named_victims in sorted(found.items()):
        if not named_victims.pods:
            if not ignorable:
                raise _NoVictims(f'expected at least one victim pod on node "{table.names[row]}"')
            del found[row]
    return {table.names[row]: each for row, each in sorted(found.items())}


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
