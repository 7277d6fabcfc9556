"""VolumeBinding: the pod's volumes can be reached from its node, and claims that wait for a consumer get theirs there.

Reserve decides which volumes the claims get and counts with it; PreBind, in a binder, writes it and looks whether the
claims are bound. While they are not it says Wait, and wants to be asked again, until ``bindTimeoutSeconds`` are over.

With the feature StorageCapacityScoring, nodes are liked by how much of their storage the claims would use.

Source: pkg/scheduler/framework/plugins/volumebinding/{volume_binding,binder}.go.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import claims as claim_arithmetic
from dsched.arithmetic import matching, scores
from dsched.arithmetic.claims import (
    ELSEWHERE,
    MISSING,
    NO_SPACE,
    NO_VOLUME,
    Bound,
    PodClaims,
    Provisioning,
    Waiting,
    storage_scores,
)
from dsched.arithmetic.volumes import Want, reach
from dsched.clock import Clock, SystemClock
from dsched.config import Features, VolumeBindingArgs
from dsched.config.feature_gates import UNSAID
from dsched.errors import PluginError
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    Code,
    Hint,
    Normalization,
    PreFilterResult,
    Registration,
    Resource,
    Rows,
    Scope,
    Status,
    Verdict,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model import meta, migration, quantity, volumes
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.volumes import (
    LOST,
    MIGRATED_PLUGINS,
    WAIT_FOR_FIRST_CONSUMER,
    CsiStorageCapacity,
    PersistentVolumeClaim,
)
from dsched.plugins.volumes import assumptions, plan
from dsched.plugins.volumes import objects as volume_objects
from dsched.plugins.volumes.assumptions import VolumeAssumptions
from dsched.plugins.volumes.attachments import stranger
from dsched.plugins.volumes.latest import Latest
from dsched.plugins.volumes.objects import VolumeObjects
from dsched.plugins.volumes.plan import NotBound, Plan

ERR_REASONS: Mapping[int, str] = {
    ELSEWHERE: "node(s) didn't match PersistentVolume's node affinity",
    NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    NO_SPACE: "node(s) did not have enough free storage",
    MISSING: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
"""In the order in which they are told."""
TIMED_OUT = "binding volumes: context deadline exceeded"

_STATUSES = tuple(
    interface.unresolvable(*(reason for bit, reason in ERR_REASONS.items() if code & bit))
    for code in range(1, sum(ERR_REASONS) + 1)
)
"""By sum of reasons, from 1 on."""
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
_CHANGED = frozenset({Action.ADD, Action.UPDATE})


@dataclass(frozen=True, slots=True)
class _Claims:
    claims: PodClaims


class VolumeBinding:
    name = "VolumeBinding"
    label_blind = True
    takes_features = True
    hints_per_class = True
    filter_scope = Scope.CLUSTER
    version_has_objects = True
    pre_filter_scope = Scope.NODE
    """Of the Skip that pods without claims get; all others are filtered, which depends on the whole cluster."""
    normalization = Normalization.NONE
    pre_bind_needs_shared = True
    """PreBind has nothing to do for a pod for which Reserve has left no word."""

    def __init__(self, args: VolumeBindingArgs, handle: Any, features: Features = UNSAID) -> None:
        self._line: NDArray[np.int64] | None = None
        if features.enabled("StorageCapacityScoring"):
            self._line = scores.broken_line([(point.utilization, point.score) for point in args.shape])
        self.score_scope = Scope.NODE if self._line is None else Scope.CLUSTER
        self._timeout_ms = args.bind_timeout_seconds * 1000
        self._features = features
        self._handle = handle
        self._clock: Clock = getattr(handle, "clock", None) or SystemClock()
        self._claims_of = Latest(lambda pod, snapshot: _claims_of(pod.pod, snapshot), _version)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Skip for pods without claims; rejects a pod whose claims cannot be used, or should be bound by now."""
        if next(volumes.claims_of(pod.pod), None) is None:
            return interface.SKIP
        found = self._claims_of(pod, snapshot)
        if isinstance(found, Status):
            return found
        state.write(_Claims(found))
        return None

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """
        Raises:
            PluginError: PreFilter has not run.
        """
        kept = state.read(_Claims)
        if kept is None:
            raise PluginError("its PreFilter has not run; enable it at preFilter, too")
        return Verdict(claim_arithmetic.answer(kept.claims, table, rows).codes, _STATUSES)

    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        """Skip without StorageCapacityScoring, and for pods whose claims are all bound: every node would score 0."""
        kept = state.read(_Claims)
        return interface.SKIP if self._line is None or kept is None or not kept.claims.waiting else None

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        kept = state.read(_Claims)
        if self._line is None or kept is None:
            return np.zeros(matching.count(rows), dtype=np.int64)
        found = claim_arithmetic.answer(kept.claims, table.cluster, rows)
        return storage_scores(found, table.cluster, rows, self._line)

    def claims_meaning(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """Where the volumes of claims can be reached that are all bound; those that wait are told apart."""
        found = self._claims_of(pod, snapshot)
        return None if isinstance(found, Status) or found.waiting else found.bound

    def answer_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """As the nodes say the rest: where the volumes can be reached; None where some are still to be chosen."""
        return self.claims_meaning(pod, snapshot)

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Decide for the one node, with what this process counts with; Filter may have run elsewhere, or not at all."""
        if not pod.pod.spec.volumes or next(volumes.claims_of(pod.pod), None) is None:
            return None
        snapshot: Snapshot = self._handle.snapshot
        found = self._claims_of(pod, snapshot)
        if isinstance(found, Status):
            return found
        row = snapshot.table.index.get(node)
        if row is None:
            return Status(Code.ERROR, (f'node "{node}" not found',))
        if found.met_everywhere:
            return None
        answer = claim_arithmetic.answer(found, snapshot.table, np.array([row], dtype=np.intp))
        if answer.codes[0]:
            return _STATUSES[int(answer.codes[0]) - 1]
        plan.assume(answer, node, pod.uid, assumptions.of(snapshot))
        assumed = plan.plan(answer, node, self._clock.now_ms())
        if assumed.bindings or assumed.selections:
            state.shared[self.name] = assumed.packed()
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        assumptions.of(self._handle.snapshot).forget(pod.uid)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Whether Reserve has left claims to be bound."""
        return None if self.name in state.shared else interface.SKIP

    def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Write what Reserve decided, and look whether the claims are bound: Wait while they are not."""
        if self.name not in state.shared:
            return None
        assumed, cluster = Plan.unpacked(state.shared[self.name]), self._handle.cluster
        refusal = plan.carry_out(assumed, cluster)
        try:
            if refusal:
                # This may be asked anew while it waits, which is where kube-scheduler does no more than look.
                plan.look_for(assumed, cluster, self._features)
                return Status(Code.ERROR, (refusal,))
            lacking = plan.unbound(assumed, node, cluster, self._features)
        except NotBound as failure:
            return Status(Code.ERROR, (f"binding volumes: {failure}",))
        if not lacking:
            return None
        if self._clock.now_ms() - assumed.since_ms >= self._timeout_ms:
            return Status(Code.ERROR, (TIMED_OUT,))
        return Status(Code.WAIT, (f"waiting for persistentvolumeclaim {', '.join(lacking)} to be bound",))

    def events_to_register(self) -> Sequence[Registration]:
        return BINDING


def _version(snapshot: Snapshot) -> Hashable:
    """What the claims of a pod are taken from."""
    return snapshot.others_version, assumptions.of(snapshot).version


def _claims_of(pod: Pod, snapshot: Snapshot) -> PodClaims | Status:
    """The pod's claims, as they will be once earlier pods have their volumes; or why the pod fits nowhere with them.

    Raises:
        SelectorError, QuantityError: a claim or a volume holds nonsense.
        PluginError: a volume makes no sense to the driver that took it over.
    """
    objects, assumed = volume_objects.of(snapshot), assumptions.of(snapshot)
    unfit = _unfit(pod, objects)
    if unfit is not None:
        return unfit
    bound: list[Bound | None] = []
    waiting: list[Waiting] = []
    immediate = False
    for use in volumes.claims_of(pod):
        claim = assumed.claim(use.key)
        if claim is None:
            return Status(Code.ERROR, (f'error getting PVC "{use.key}"',))
        if volumes.fully_bound(claim):
            bound.append(_bound(claim.spec.volume_name, objects, assumed))
            continue
        found = _waiting(use.key, claim, objects, assumed)
        if isinstance(found, Status):
            return found
        immediate |= found is None
        waiting += [] if found is None else [found]
    if immediate:
        return interface.unresolvable(UNBOUND_IMMEDIATE)
    return PodClaims(tuple(bound), tuple(waiting))


def _unfit(pod: Pod, objects: VolumeObjects) -> Status | None:
    """What is wrong with the first claim that cannot be used."""
    for use in volumes.claims_of(pod):
        claim = objects.claims.get(use.key)
        reason = ""
        if claim is None and use.ephemeral:
            reason = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        elif claim is None:
            reason = f'persistentvolumeclaim "{use.name}" not found'
        elif claim.status.phase == LOST:
            reason = (
                f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
            )
        elif claim.metadata.deletion_timestamp:
            reason = f'persistentvolumeclaim "{use.name}" is being deleted'
        elif use.ephemeral and not volumes.made_for(claim, pod):
            reason = stranger(use, pod)
        if reason:
            return interface.unresolvable(reason)
    return None


def _bound(name: str, objects: VolumeObjects, assumed: VolumeAssumptions) -> Bound | None:
    offer = assumed.offer(name)
    if offer is None:
        return None
    plugin = migration.plugin_of(offer.volume.spec)
    migrated = objects.migrated_to(plugin.name) if plugin is not None and plugin.served else frozenset()
    if plugin is None or not migrated:
        return Bound(offer.terms)
    try:
        selector = migration.affinity(offer.volume, plugin)
    except PluginError as error:
        raise PluginError(f"could not translate pv: {error}") from error
    return Bound(offer.terms, migrated, reach(selector))


def _waiting(
    key: str, claim: PersistentVolumeClaim, objects: VolumeObjects, assumed: VolumeAssumptions
) -> Waiting | Status | None:
    """A claim that waits for its first consumer; None for one that should be bound by now (``IsDelayBindingMode``)."""
    class_name = volumes.class_of_claim(claim)
    storage_class = objects.classes.get(class_name) if class_name else None
    if storage_class is None:
        return None
    if storage_class.volume_binding_mode is None:
        return Status(Code.ERROR, (f'VolumeBindingMode not set for StorageClass "{class_name}"',))
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER or claim.spec.volume_name:
        return None
    driver = objects.drivers.get(storage_class.provisioner)
    tells = driver is not None and driver.spec.storage_capacity is True
    provisioning = Provisioning(claim, storage_class, objects.capacities.every() if tells else None)
    return Waiting(key, Want(claim), assumed.offers_of(class_name), provisioning)


def _hint(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP


def _after_node_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A node came, or has other labels."""
    old: Node | None = event.old
    new: Node = event.new
    return _hint(old is None or old.metadata.labels != new.metadata.labels)


def _after_class_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A class came, or allows other topologies."""
    return _hint(event.old is None or _topologies(event.old) != _topologies(event.new))


def _after_claim_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A claim that the pod uses came or changed."""
    changed = volumes.key_of(event.new)
    return _hint(any(use.key == changed for use in volumes.claims_of(pod)))


def _after_csi_node_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A CSINode came, or lists other migrated plugins."""
    if event.old is None:
        return Hint.QUEUE
    before, now = ((each["metadata"].get("annotations") or {}).get(MIGRATED_PLUGINS) for each in (event.old, event.new))
    return _hint((before or "") != (now or ""))


def _after_driver_change(pod: Pod, event: ClusterEvent) -> Hint:
    """The driver of a volume in the pod itself no longer minds where there is room."""
    minds_less = _minds_room(event.old) and not _minds_room(event.new)
    name = event.new["metadata"]["name"]
    return _hint(minds_less and any(each.csi is not None and each.csi.driver == name for each in pod.spec.volumes))


def _after_capacity_change(pod: Pod, event: ClusterEvent) -> Hint:
    """Room came, or there is more of it."""
    if event.old is None:
        return Hint.QUEUE
    before, now = (meta.from_builtins(each, CsiStorageCapacity).limit for each in (event.old, event.new))
    if now is None:
        return Hint.SKIP
    return _hint(before is None or quantity.value(now) > quantity.value(before))


def _topologies(storage_class: Mapping[str, Any]) -> Sequence[Any]:
    return storage_class.get("allowedTopologies") or ()


def _minds_room(driver: Mapping[str, Any]) -> bool:
    return bool((driver.get("spec") or {}).get("storageCapacity"))


BINDING: Sequence[Registration] = (
    Registration(Resource.STORAGE_CLASS, _CHANGED, _after_class_change),
    Registration(Resource.PVC, _CHANGED, _after_claim_change),
    Registration(Resource.PV, _CHANGED),
    Registration(Resource.NODE, _CHANGED, _after_node_change, about_taints=False),
    Registration(Resource.CSI_NODE, _CHANGED, _after_csi_node_change),
    Registration(Resource.CSI_DRIVER, frozenset({Action.UPDATE}), _after_driver_change),
    Registration(Resource.CSI_STORAGE_CAPACITY, _CHANGED, _after_capacity_change),
)
"""Any volume that comes or changes helps: claims are bound to volumes."""


_pre_filter: type[interface.PreFilterPlugin] = VolumeBinding
_filter: type[interface.TableFilterPlugin] = VolumeBinding
_pre_score: type[interface.PreScorePlugin] = VolumeBinding
_score: type[interface.TableScorePlugin] = VolumeBinding
_reserve: type[interface.ReservePlugin] = VolumeBinding
_pre_bind: type[interface.PreBindPlugin] = VolumeBinding
_pre_flight: type[interface.PreBindPreFlight] = VolumeBinding
_enqueue: type[interface.EnqueueExtensions] = VolumeBinding
_meaning: type[interface.ClaimsMeaning] = VolumeBinding
_answers: type[interface.AnswerVersion] = VolumeBinding
