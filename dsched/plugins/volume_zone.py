"""VolumeZone: a node that says where it is has to be where the pod's volumes say they are, by their labels.

Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsched.arithmetic import matching
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
from dsched.framework.table import NodeTable
from dsched.model import volumes
from dsched.model.migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONES_DELIMITER
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.volumes import WAIT_FOR_FIRST_CONSUMER, ClaimUse
from dsched.plugins.volumes import objects as volume_objects
from dsched.plugins.volumes.latest import Latest
from dsched.plugins.volumes.objects import VolumeObjects

ERR_REASON = "node(s) had no available volume zone"
NO_NAME = "PersistentVolumeClaim had no name"
NO_VOLUME_NO_CLASS = "PersistentVolumeClaim had no pv name and storageClass name"
NO_VOLUME = "PersistentVolume had no name"

_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEW_NAMES = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_CONFLICT = interface.unresolvable(ERR_REASON)


@dataclass(frozen=True, slots=True)
class _Place:
    """A label that nodes must have with one of these values; a beta label's values may stand under its new name."""

    label: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Places:
    places: tuple[_Place, ...]


class VolumeZone:
    name = "VolumeZone"
    label_blind = True
    hints_per_class = True
    filter_scope = Scope.CLUSTER
    version_has_objects = True
    pre_filter_scope = Scope.NODE
    """Of the Skip that pods without claims get; all others are filtered, which depends on the whole cluster."""

    def __init__(self, args: Any, handle: interface.Handle) -> None:
        self._handle = handle
        self._places_of = Latest(
            lambda pod, snapshot: _places_of(pod.pod, volume_objects.of(snapshot)), _objects_version
        )

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Skip for pods without claims; rejects a pod of which a volume cannot be looked up."""
        if not _claims(pod.pod):
            return interface.SKIP
        found = self._places_of(pod, snapshot)
        if isinstance(found, Status):
            return found
        state.write(_Places(found))
        return None

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """Nodes without any zone or region label pass."""
        kept = state.read(_Places)
        places = self._places_of(pod, self._handle.snapshot) if kept is None else kept.places
        if isinstance(places, Status):
            return Verdict.where(np.ones(matching.count(rows), dtype=np.bool_), places)
        if not places:
            return Verdict.where(matching.none(rows), _CONFLICT)
        somewhere = matching.none(rows)
        for label in _LABELS:
            somewhere |= table.label(label).ids[rows] != 0
        fits = np.ones(matching.count(rows), dtype=np.bool_)
        for place in places:
            column = table.label(place.label)
            matched = column.is_in(place.values, rows)
            if place.label in _NEW_NAMES:
                renamed = table.label(_NEW_NAMES[place.label]).is_in(place.values, rows)
                matched = np.where(column.ids[rows] != 0, matched, renamed)
            fits &= matched
        return Verdict.where(somewhere & ~fits, _CONFLICT)

    def claims_meaning(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """Where their volumes are."""
        places = self._places_of(pod, snapshot)
        return None if isinstance(places, Status) else places

    def answer_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """As the node objects say the rest: where the volumes are."""
        return self.claims_meaning(pod, snapshot)

    def events_to_register(self) -> Sequence[Registration]:
        changed = frozenset({Action.ADD, Action.UPDATE})
        return (
            Registration(Resource.STORAGE_CLASS, frozenset({Action.ADD}), _after_class_added),
            Registration(Resource.NODE, changed, _after_node_change, about_taints=False),
            Registration(Resource.PVC, changed, _after_claim_change),
            Registration(Resource.PV, changed, _after_volume_change),
        )


def _objects_version(snapshot: Snapshot) -> Hashable:
    return snapshot.others_version


def _claims(pod: Pod) -> list[ClaimUse]:
    """Claims that the pod names; those of ephemeral volumes are not looked at."""
    return [use for use in volumes.claims_of(pod) if not use.ephemeral]


def _places_of(pod: Pod, objects: VolumeObjects) -> tuple[_Place, ...] | Status:
    """Where the volumes of the pod's claims are; a status when that cannot be said (``getPVbyPod``)."""
    found: list[_Place] = []
    for use in _claims(pod):
        if not use.name:
            return interface.unresolvable(NO_NAME)
        claim = objects.claims.get(use.key)
        if claim is None:
            return interface.unresolvable(f'persistentvolumeclaim "{use.name}" not found')
        if not claim.spec.volume_name:
            status = _without_volume(volumes.class_of_claim(claim), objects)
            if status is not None:
                return status
            continue
        volume = objects.volume(claim.spec.volume_name)
        if volume is None:
            return interface.unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found')
        found += _places_in(volume.metadata.labels)
    return tuple(found)


def _without_volume(class_name: str, objects: VolumeObjects) -> Status | None:
    """What is said of a claim without a volume; None where it may wait for its first consumer."""
    if not class_name:
        return interface.unresolvable(NO_VOLUME_NO_CLASS)
    storage_class = objects.classes.get(class_name)
    if storage_class is None:
        return interface.unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
    if storage_class.volume_binding_mode is None:
        return interface.unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    waits = storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return None if waits else interface.unresolvable(NO_VOLUME)


def _places_in(labels: Mapping[str, str]) -> list[_Place]:
    """Labels may list several values; a list with an empty one says nothing (``getPVTopologies``)."""
    found: list[_Place] = []
    for label in _LABELS:
        values = frozenset(value.strip() for value in labels.get(label, "").split(ZONES_DELIMITER))
        if "" not in values:
            found.append(_Place(label, values))
    return found


def _after_class_added(pod: Pod, event: ClusterEvent) -> Hint:
    """Claims of the class may wait for their first consumer."""
    waits = event.new.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
    return Hint.QUEUE if waits else Hint.SKIP


def _after_node_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A node came, or has other labels."""
    old: Node | None = event.old
    new: Node = event.new
    return Hint.QUEUE if old is None or old.metadata.labels != new.metadata.labels else Hint.SKIP


def _after_claim_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A claim that the pod names came or changed."""
    changed = volumes.key_of(event.new)
    return Hint.QUEUE if any(use.key == changed for use in _claims(pod)) else Hint.SKIP


def _after_volume_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A volume came, or is somewhere else."""
    moved = event.old is None or _places_in(_labels(event.old)) != _places_in(_labels(event.new))
    return Hint.QUEUE if moved else Hint.SKIP


def _labels(volume: Mapping[str, Any]) -> Mapping[str, str]:
    return volume["metadata"].get("labels") or {}


_pre_filter: type[interface.PreFilterPlugin] = VolumeZone
_filter: type[interface.TableFilterPlugin] = VolumeZone
_enqueue: type[interface.EnqueueExtensions] = VolumeZone
_meaning: type[interface.ClaimsMeaning] = VolumeZone
_answers: type[interface.AnswerVersion] = VolumeZone
