"""VolumeRestrictions: a disk that only one pod, or only readers, may use on a node; a claim that only one pod may use.

Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import matching
from dsched.errors import PluginError
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    Hint,
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
from dsched.framework.table import NodeInfo, NodeTable
from dsched.model import volumes
from dsched.model.pod import Pod
from dsched.model.volumes import READ_WRITE_ONCE_POD
from dsched.plugins.volumes import objects as volume_objects
from dsched.plugins.volumes import usage as volume_usage
from dsched.plugins.volumes.latest import Latest
from dsched.plugins.volumes.usage import DiskUse

ERR_REASON_DISK = "node(s) had no available disk"
ERR_REASON_ONE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

_STATUSES = (interface.unschedulable(ERR_REASON_DISK), interface.unschedulable(ERR_REASON_ONE_POD))
_DISK, _ONE_POD = 1, 2


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the pod uses.

    Attributes:
        exclusive: names of its claims that only one pod may use.
        clashes: how many of these are in use, anywhere in the cluster.
        follows: whether pods that come and go for the sake of argument count. Where there are no disks and no claim was
            in use, kube-scheduler's PreFilter says Skip, and nobody asks about nominated pods either.
    """

    disks: tuple[DiskUse, ...]
    exclusive: frozenset[str]
    clashes: int
    follows: bool


class VolumeRestrictions:
    name = "VolumeRestrictions"
    label_blind = True
    hints_per_class = True
    filter_scope = Scope.CLUSTER
    version_has_objects = True
    pre_filter_scope = Scope.NODE
    """Of the Skip that pods without such volumes get; all others are filtered, which depends on the whole cluster."""

    def __init__(self, args: Any, handle: interface.Handle) -> None:
        self._exclusive = Latest(_exclusive, _objects_version)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Skip for pods without disks and claims; rejects a pod of which a claim is missing."""
        disks = _disks(pod.pod)
        if not disks and all(claim.ephemeral for claim in volumes.claims_of(pod.pod)):
            return interface.SKIP
        exclusive = self._exclusive(pod, snapshot)
        if isinstance(exclusive, Status):
            return exclusive
        clashes = _clashes(exclusive, snapshot)
        state.write(_Wanted(disks, frozenset(exclusive), clashes, follows=bool(disks or clashes)))
        return None

    def claims_meaning(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """Claims that are there mean nothing, unless only one pod may use them."""
        return None if self._exclusive(pod, snapshot) != {} else ()

    def answer_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """For pods without disks: which of their claims only one pod may use, and how many of these are in use."""
        exclusive = self._exclusive(pod, snapshot)
        if isinstance(exclusive, Status) or _disks(pod.pod):
            return None
        return frozenset(exclusive), _clashes(exclusive, snapshot)

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None:
        """Another pod joins a node, for the sake of argument."""
        _count(state, other.pod, 1)
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None:
        """Another pod leaves its node, for the sake of argument."""
        _count(state, other.pod, -1)
        return None

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """
        Raises:
            PluginError: PreFilter has not run.
        """
        wanted = state.read(_Wanted)
        if wanted is None:
            raise PluginError("its PreFilter has not run; enable it at preFilter, too")
        index = np.full(matching.count(rows), _ONE_POD if wanted.clashes > 0 else 0, dtype=np.int32)
        if wanted.disks:
            index[_clashing(wanted.disks, table)[rows]] = _DISK
        return Verdict(index, _STATUSES)

    def events_to_register(self) -> Sequence[Registration]:
        deleted = frozenset({Action.DELETE})
        return (
            Registration(Resource.ASSIGNED_POD, deleted, _after_pod_deleted),
            Registration(Resource.POD, deleted, _after_pod_deleted),
            Registration(Resource.NODE, frozenset({Action.ADD})),
            Registration(Resource.PVC, frozenset({Action.ADD}), _after_claim_added),
        )


def _objects_version(snapshot: Snapshot) -> Hashable:
    return snapshot.others_version


def _exclusive(pod: PodInfo, snapshot: Snapshot) -> dict[str, str] | Status:
    """Keys by names of the pod's claims that only one pod may use; a status where one of its claims is missing."""
    known = volume_objects.of(snapshot).claims
    found: dict[str, str] = {}
    for use in volumes.claims_of(pod.pod):
        if use.ephemeral:
            continue
        claim = known.get(use.key)
        if claim is None:
            return interface.unresolvable(f'persistentvolumeclaim "{use.name}" not found')
        if READ_WRITE_ONCE_POD in claim.spec.access_modes:
            found[use.name] = use.key
    return found


def _clashes(exclusive: Mapping[str, str], snapshot: Snapshot) -> int:
    """How many of these are in use."""
    if not exclusive:
        return 0
    usage = volume_usage.of(snapshot.table)
    return sum(usage.claim_used(key) for key in exclusive.values())


def _disks(pod: Pod) -> tuple[DiskUse, ...]:
    return tuple(use for use in map(volume_usage.disk_use, pod.spec.volumes) if use is not None)


def _clashing(disks: Sequence[DiskUse], table: NodeTable) -> NDArray[np.bool_]:
    """Rows with pods that use one of the disks in a way that does not go together."""
    usage = volume_usage.of(table)
    flags = np.zeros(len(table), dtype=np.bool_)
    for use in disks:
        for disk in use.disks:
            flags[usage.holders(disk, writers_only=use.read_only)] = True
    return flags


def _count(state: CycleState, other: Pod, sign: int) -> None:
    """Claims are told apart by their names alone here, whatever namespace the other pod is in, as in the source."""
    wanted = state.read(_Wanted)
    if wanted is not None and wanted.follows:
        used = sum(not claim.ephemeral and claim.name in wanted.exclusive for claim in volumes.claims_of(other))
        state.write(replace(wanted, clashes=wanted.clashes + sign * used))


def _after_pod_deleted(pod: Pod, event: ClusterEvent) -> Hint:
    """A pod is gone with which this one could not share a disk, or which used one of its claims."""
    gone: Pod = event.old
    if volumes.namespace_of(gone.metadata) != volumes.namespace_of(pod.metadata):
        return Hint.SKIP
    theirs = [disk for use in _disks(gone) for disk in use.disks]
    written = {disk for use in _disks(gone) if not use.read_only for disk in use.disks}
    for use in _disks(pod):
        if any(disk in (written if use.read_only else theirs) for disk in use.disks):
            return Hint.QUEUE
    shared = {use.key for use in volumes.claims_of(pod) if not use.ephemeral}
    used = any(use.key in shared for use in volumes.claims_of(gone) if not use.ephemeral)
    return Hint.QUEUE if used else Hint.SKIP


def _after_claim_added(pod: Pod, event: ClusterEvent) -> Hint:
    """A claim that the pod names is there."""
    added = volumes.key_of(event.new)
    named = any(use.key == added for use in volumes.claims_of(pod) if not use.ephemeral)
    return Hint.QUEUE if named else Hint.SKIP


_pre_filter: type[interface.PreFilterPlugin] = VolumeRestrictions
_extensions: type[interface.PreFilterExtensions] = VolumeRestrictions
_filter: type[interface.TableFilterPlugin] = VolumeRestrictions
_enqueue: type[interface.EnqueueExtensions] = VolumeRestrictions
_meaning: type[interface.ClaimsMeaning] = VolumeRestrictions
_answers: type[interface.AnswerVersion] = VolumeRestrictions
