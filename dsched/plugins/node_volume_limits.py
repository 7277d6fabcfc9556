"""NodeVolumeLimits: a node takes only so many volumes of a driver, as its CSINode says; with the feature
VolumeLimitScaling none of a driver that it does not have, where the CSIDriver asks for that.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/{csi,utils}.go.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np
from msgspec import ValidationError

from dsched.arithmetic import matching
from dsched.arithmetic.volumes import Offer
from dsched.config import Features
from dsched.config.feature_gates import UNSAID
from dsched.errors import PluginError, QuantityError
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
from dsched.framework.runners import row_numbers
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model import meta, migration, volumes
from dsched.model.pod import Pod
from dsched.model.volumes import CLAIM, PERSISTENT_VOLUME, CsiNode, PersistentVolumeClaim, VolumeAttachment
from dsched.plugins.object_views import Views
from dsched.plugins.volumes import attachments as volume_attachments
from dsched.plugins.volumes import objects as volume_objects
from dsched.plugins.volumes import usage
from dsched.plugins.volumes.attachments import UNLIMITED, Attachment, Attachments, Demand, MissingClaim, OnNode, Taken
from dsched.plugins.volumes.latest import Latest

ERR_REASON = "node(s) exceed max volume count"
ERR_REASON_NOT_INSTALLED = "{driver} CSI driver is not installed on the node"
_EXCEEDED = interface.unschedulable(ERR_REASON)
View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the pod would attach, or why that cannot be said: a claim is missing, or there was an error.

    Attributes:
        demand: how many of which drivers.
        kinds: all that tells them apart but which volumes they are.
    """

    taken: frozenset[Taken] = frozenset()
    demand: Demand = frozenset()
    kinds: Hashable = None
    missing: str = ""
    error: str = ""

    @staticmethod
    def of(taken: frozenset[Taken]) -> "_Wanted":
        drivers = Counter(each.attachment.driver for each in taken)
        kinds = Counter((each.attachment.driver, each.announced, each.in_tree) for each in taken)
        return _Wanted(taken, frozenset(drivers.items()), frozenset(kinds.items()))


class NodeVolumeLimits:
    name = "NodeVolumeLimits"
    label_blind = True
    takes_features = True
    hints_per_class = True
    filter_scope = Scope.CLUSTER
    version_has_objects = True
    pre_filter_scope = Scope.NODE
    """Of the Skip that pods without such volumes get; all others are filtered, which depends on the whole cluster."""

    def __init__(self, args: Any, handle: interface.Handle, features: Features = UNSAID) -> None:
        self._handle = handle
        self._announced = not features.since(36)
        self._needs_driver = features.enabled("VolumeLimitScaling")
        self._wanted = Latest(_wanted, _objects_version)
        self._which_matters = Latest(self._does_which_matter, _version)
        self._promised = (-1, frozenset[str]())

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Skip for pods that attach nothing."""
        if next(usage.attachable(pod.pod), None) is None:
            return interface.SKIP
        return None

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """It is asked about the very pod: what is attached already depends on which claims it has.

        Raises:
            PluginError: an ephemeral volume's claim belongs to another pod, or a source makes no sense.
        """
        snapshot = self._handle.snapshot
        wanted = self._wanted(pod, snapshot)
        if wanted.error:
            raise PluginError(wanted.error)
        if wanted.missing:
            return Verdict.where(np.ones(matching.count(rows), dtype=np.bool_), interface.unresolvable(wanted.missing))
        exceeded = matching.none(rows)
        if not wanted.taken:
            return Verdict.where(exceeded, _EXCEEDED)
        attachments = self._attachments(snapshot)
        close = np.flatnonzero(attachments.crowded(wanted.demand, rows))
        suspects = row_numbers(rows)[close].tolist()
        for at, row, node in zip(close, suspects, attachments.on(suspects), strict=True):
            exceeded[at] = _exceeds(wanted.taken, node, attachments, row)
        return self._with_drivers(Verdict.where(exceeded, _EXCEEDED), wanted.taken, attachments, rows)

    def _with_drivers(
        self, verdict: Verdict, wanted: frozenset[Taken], attachments: Attachments, rows: Rows
    ) -> Verdict:
        """The verdict, and nodes without a driver that has to be there; it is looked at before anything is counted.

        Source: nodevolumelimits/csi.go ``checkCSIDriverOnNode``. Of several drivers, upstream names any; here it is the
        first by name.
        """
        if not self._needs_driver:
            return verdict
        index, statuses = verdict.index.copy(), list(verdict.statuses)
        for each in sorted(wanted, key=lambda taken: taken.attachment.driver, reverse=True):
            driver = attachments.objects.drivers.get(each.attachment.driver)
            if driver is None or driver.spec.prevent_pod_scheduling_if_missing is not True:
                continue
            statuses.append(interface.unschedulable(ERR_REASON_NOT_INSTALLED.format(driver=driver.metadata.name)))
            np.putmask(index, attachments.lacks_driver(each, rows), len(statuses))
        return Verdict(index, tuple(statuses))

    def claims_meaning(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """How many volumes of which drivers, unless it matters which they are."""
        return None if self._which_matters(pod, snapshot) else self._wanted(pod, snapshot).kinds

    def answer_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """What it would attach, and what is attached to nodes that may not have room for it; the others have."""
        wanted = self._wanted(pod, snapshot)
        if wanted.error or wanted.missing:
            return None
        objects = volume_objects.of(snapshot)
        what = wanted.taken if self._which_matters(pod, snapshot) else wanted.kinds
        drivers = (objects.drivers.version, objects.nodes.version) if self._needs_driver else ()
        return what, self._attachments(snapshot).crowd(wanted.demand).number, drivers

    def _attachments(self, snapshot: Snapshot) -> Attachments:
        return volume_attachments.of(snapshot, announced=self._announced)

    def _does_which_matter(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether it matters which volumes the pod has. Not where all nodes have room for as many, with the pods that
        were promised them, nor where nobody else has one of them."""
        wanted = self._wanted(pod, snapshot)
        if wanted.error or wanted.missing:
            return True
        if not self._attachments(snapshot).crowd(wanted.demand).rows and not self._promised_uses(snapshot):
            return False
        return not self._used_by_nobody(pod, snapshot)

    def _used_by_nobody(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod has volumes of claims alone, each of which the claim has to itself, and no pod on a node nor
        one that was promised a node uses any of them. Where others describe volumes themselves, that is not known."""
        in_use, alone = usage.of(snapshot.table), sharing_of(snapshot).alone
        promised = self._promised_uses(snapshot)
        if in_use.inline or "" in promised:
            return False
        return all(
            use.claim is not None
            and not use.claim.ephemeral
            and not in_use.names(use.claim.key)
            and use.claim.key not in promised
            and alone(use.claim.key)
            for use in usage.attachable(pod.pod)
        )

    def _promised_uses(self, snapshot: Snapshot) -> frozenset[str]:
        """Claims that pods use which were promised a node, and ``""`` where one describes a volume itself."""
        nominations = snapshot.nominations
        if not nominations:
            return frozenset()
        if self._promised[0] != nominations.version:
            pods = (pod for node in nominations.nodes() for pod in nominations.on(node))
            uses = (use for pod in pods for use in usage.attachable(pod.pod))
            keys = frozenset("" if use.claim is None else use.claim.key for use in uses)
            self._promised = nominations.version, keys
        return self._promised[1]

    def events_to_register(self) -> Sequence[Registration]:
        deleted = frozenset({Action.DELETE})
        return (
            Registration(Resource.CSI_NODE, frozenset({Action.ADD, Action.UPDATE}), self._after_csi_node_change),
            Registration(Resource.ASSIGNED_POD, deleted, _after_pod_deleted),
            Registration(Resource.POD, deleted, _after_pod_deleted),
            Registration(Resource.PVC, frozenset({Action.ADD}), _after_claim_added),
            Registration(Resource.VOLUME_ATTACHMENT, deleted, _after_detached),
        )

    def _after_csi_node_change(self, pod: Pod, event: ClusterEvent) -> Hint:
        """A CSINode came, or takes more volumes of some driver; what is not said counts as 0. Where drivers have to be
        there, one that came without a limit helps, too, which the source misses."""
        if event.old is None:
            return Hint.QUEUE
        before, now = (meta.from_builtins(each, CsiNode) for each in (event.old, event.new))
        takes_more = any(limit > before.limits.get(driver, 0) for driver, limit in now.limits.items())
        came = {each.name for each in now.spec.drivers} - {each.name for each in before.spec.drivers}
        return Hint.QUEUE if takes_more or (came and self._needs_driver) else Hint.SKIP


def _objects_version(snapshot: Snapshot) -> Hashable:
    return snapshot.others_version


def _version(snapshot: Snapshot) -> Hashable:
    return snapshot.version


def _wanted(pod: PodInfo, snapshot: Snapshot) -> _Wanted:
    objects = volume_objects.of(snapshot)
    try:
        found = [volume_attachments.taken(use, objects) for use in usage.attachable(pod.pod)]
    except MissingClaim as missing:
        return _Wanted(missing=str(missing))
    except PluginError as error:
        return _Wanted(error=str(error))
    return _Wanted.of(frozenset(each for each in found if each is not None))


def _exceeds(wanted: frozenset[Taken], node: OnNode, attachments: Attachments, row: int) -> bool:
    """Whether what is new on the node goes beyond what it takes of some driver."""
    new: set[Attachment] = {each.attachment for each in wanted if each.announced in ("", *node.migrated)} - node.used
    there = Counter(each.driver for each in node.used)
    there.update(each.driver for each in node.reported - node.used)
    for driver, count in Counter(each.driver for each in new).items():
        limits = attachments.limits(driver)
        if limits is not None and limits[row] != UNLIMITED and there[driver] + count > limits[row]:
            return True
    return False


def _after_pod_deleted(pod: Pod, event: ClusterEvent) -> Hint:
    """A pod that had, or was promised, a node is gone, and what it had attached there."""
    gone: Pod = event.old
    if not gone.node_name and not gone.status.nominated_node_name:
        return Hint.SKIP
    return Hint.QUEUE if next(usage.attachable(gone), None) else Hint.SKIP


def _after_claim_added(pod: Pod, event: ClusterEvent) -> Hint:
    """A claim that the pod uses is there."""
    added = volumes.key_of(event.new)
    return Hint.QUEUE if any(use.key == added for use in volumes.claims_of(pod)) else Hint.SKIP


def _after_detached(pod: Pod, event: ClusterEvent) -> Hint:
    """A volume is no longer attached: any, for a pod with claims; one of the same driver, for in-tree volumes.

    Source: nodevolumelimits/csi.go ``isSchedulableAfterVolumeAttachmentDeleted``.
    """
    if any(volume.persistent_volume_claim for volume in pod.spec.volumes):
        return Hint.QUEUE
    driver = meta.from_builtins(event.old, VolumeAttachment).spec.attacher
    plugins = (migration.plugin_of(volume) for volume in pod.spec.volumes)
    return Hint.QUEUE if any(plugin and plugin.served and plugin.driver == driver for plugin in plugins) else Hint.SKIP


class _Naming(Generic[View]):
    """What the objects of a kind name, each one thing at most, and how many name it."""

    def __init__(
        self, snapshot: Snapshot, kind: str, views: Views[View], named: Callable[[View], Hashable | None]
    ) -> None:
        self._snapshot = ref(snapshot)
        self._kind = kind
        self._views = views
        self._named = named
        self._version = -1
        self._by_key: dict[str, Hashable] = {}
        self._counts: Counter[Hashable] = Counter()

    def alone(self, key: str) -> bool:
        """Whether an object names something that no other one of its kind names, or nothing."""
        self._follow()
        name = self._by_key.get(key)
        return name is None or self._counts[name] == 1

    def _follow(self) -> None:
        snapshot = self._snapshot()
        version = self._views.version
        if snapshot is None or version == self._version:
            return
        changed = snapshot.changed_since(self._kind, self._version) if self._version >= 0 else None
        if changed is None:
            self._by_key, self._counts = {}, Counter()
            changed = snapshot.others(self._kind)
        for key in changed:
            self._look_at(key)
        self._version = version

    def _look_at(self, key: str) -> None:
        before = self._by_key.pop(key, None)
        if before is not None:
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
        try:
            view = self._views.get(key)
        except (ValidationError, QuantityError):
            return  # who uses it is told
        name = None if view is None else self._named(view)
        if name is not None:
            self._by_key[key] = name
            self._counts[name] += 1


class Sharing:
    """Which claims of a snapshot have a volume to themselves, kept up to date claim by claim and volume by volume."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._objects = objects = volume_objects.of(snapshot)
        self._claims = _Naming(snapshot, CLAIM, objects.claims, _volume_of)
        self._volumes = _Naming(snapshot, PERSISTENT_VOLUME, objects.offers, _attachment_of)

    def alone(self, key: str) -> bool:
        """Whether a claim (``namespace/name``) names a volume that is there, that no other claim names, and which no
        driver knows by another volume's name, too."""
        claim = self._objects.claims.get(key)
        name = claim.spec.volume_name if claim is not None else ""
        if not name or self._objects.offers.get(name) is None:
            return False
        return self._claims.alone(key) and self._volumes.alone(name)


def _volume_of(claim: PersistentVolumeClaim) -> str | None:
    return claim.spec.volume_name or None


def _attachment_of(offer: Offer) -> Hashable | None:
    taken = volume_attachments.made(offer.volume)
    return None if taken is None else taken.attachment


_known: WeakKeyDictionary[Snapshot, Sharing] = WeakKeyDictionary()


def sharing_of(snapshot: Snapshot) -> Sharing:
    """That of a snapshot; one for the plugins of all profiles."""
    found = _known.get(snapshot)
    if found is None:
        found = _known[snapshot] = Sharing(snapshot)
    return found


_pre_filter: type[interface.PreFilterPlugin] = NodeVolumeLimits
_filter: type[interface.TableFilterPlugin] = NodeVolumeLimits
_enqueue: type[interface.EnqueueExtensions] = NodeVolumeLimits
_meaning: type[interface.ClaimsMeaning] = NodeVolumeLimits
_answers: type[interface.AnswerVersion] = NodeVolumeLimits
