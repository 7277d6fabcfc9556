"""Which volumes the pods on the nodes use, kept up to date with the node table row by row."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from dsched.framework.interface import Rows
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.model import migration, volumes
from dsched.model.meta import PodUid
from dsched.model.pod import Pod, Volume
from dsched.model.volumes import ClaimUse

Disk = tuple[str, ...]
"""Names a disk that pods may have to themselves: its kind, then what tells it apart."""


class Use(NamedTuple):
    """A volume of a pod on a node that may take up one of the node's attachments.

    Attributes:
        claim: the claim behind it; None for one that the pod describes itself.
    """

    pod: Pod
    claim: ClaimUse | None
    volume: Volume


class DiskUse(NamedTuple):
    """How a volume uses a disk; some kinds take more than one name, and clash by any."""

    disks: tuple[Disk, ...]
    read_only: bool


class _InUse(NamedTuple):
    """What a pod on a node uses."""

    pod: PodInfo
    uses: tuple[Use, ...]
    disks: tuple[DiskUse, ...]

    @staticmethod
    def by(pod: PodInfo) -> "_InUse":
        disks = (disk_use(volume) for volume in pod.pod.spec.volumes)
        return _InUse(pod, tuple(attachable(pod.pod)), tuple(use for use in disks if use is not None))


class VolumeUsage:
    """Volumes in use by row of one table; call `follow` before asking.

    Attributes:
        uses: row to what takes up attachments there, another tuple whenever the row has changed; rows without any are
            left out.
    """

    def __init__(self, table: NodeTable) -> None:
        self.uses: dict[int, tuple[Use, ...]] = {}
        self._table = ref(table)
        self._layout = -1
        self._position = 0
        self._counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._disks: dict[Disk, dict[int, bool]] = {}
        self._disks_of: dict[int, Mapping[Disk, bool]] = {}
        self._claims: Counter[str] = Counter()
        self._named: Counter[str] = Counter()
        self._inline = 0
        self._on: dict[int, dict[PodUid, _InUse]] = {}

    def follow(self) -> None:
        """Take in what has changed."""
        table = self._table()
        if table is None:
            return
        changed = table.changed_since(self._position) if table.layout == self._layout else None
        self._position = table.position
        if changed is None:
            self._start_over(table)
        for row in range(len(table)) if changed is None else changed:
            self._look_at(table, row)

    def counts(self, rows: Rows) -> NDArray[np.int64]:
        """How many entries `uses` has, per row."""
        return self._counts[rows]

    def count(self, row: int) -> int:
        """How many it has in one row."""
        return len(self.uses.get(row, ()))

    def claim_used(self, key: str) -> bool:
        """Whether a pod on a node names this claim; claims of ephemeral volumes are not counted."""
        return key in self._claims

    def names(self, key: str) -> bool:
        """Whether a volume of a pod on a node is this claim, be it one that was made for the pod."""
        return key in self._named

    @property
    def inline(self) -> bool:
        """Whether a pod on a node describes a volume itself that takes up an attachment."""
        return self._inline > 0

    def holders(self, disk: Disk, *, writers_only: bool) -> list[int]:
        """Rows with pods that use a disk, or that write to it."""
        return [row for row, written in self._disks.get(disk, {}).items() if written or not writers_only]

    def _start_over(self, table: NodeTable) -> None:
        self._layout = table.layout
        self._counts = np.zeros(len(table), dtype=np.int64)
        self.uses, self._disks, self._disks_of = {}, {}, {}
        self._claims, self._named, self._inline, self._on = Counter(), Counter(), 0, {}

    def _look_at(self, table: NodeTable, row: int) -> None:
        before, now = self._on.get(row, {}), dict[PodUid, _InUse]()
        for uid, pod in table.pods[row].items():
            if pod.pod.spec.volumes:
                known = before.get(uid)
                now[uid] = known if known is not None and known.pod is pod else _InUse.by(pod)
        if not before and not now:
            return
        for uid, each in before.items():
            if now.get(uid) is not each:
                self._count(each, -1)
        for uid, each in now.items():
            if before.get(uid) is not each:
                self._count(each, 1)
        self._on[row] = now
        self.uses[row] = tuple(use for each in now.values() for use in each.uses)
        self._counts[row] = len(self.uses[row])
        if not self.uses[row]:
            del self.uses[row]
        if not now:
            del self._on[row]
        self._note_disks(row, _written(now.values()))

    def _count(self, each: "_InUse", sign: int) -> None:
        for use in each.uses:
            if use.claim is None:
                self._inline += sign
                continue
            _add(self._named, use.claim.key, sign)
            if not use.claim.ephemeral:
                _add(self._claims, use.claim.key, sign)

    def _note_disks(self, row: int, disks: Mapping[Disk, bool]) -> None:
        for disk in self._disks_of.pop(row, ()):
            rows = self._disks[disk]
            del rows[row]
            if not rows:
                del self._disks[disk]
        if disks:
            self._disks_of[row] = disks
        for disk, written in disks.items():
            self._disks.setdefault(disk, {})[row] = written


def _add(counts: Counter[str], key: str, number: int) -> None:
    """Keys whose count is 0 are left out."""
    counts[key] += number
    if not counts[key]:
        del counts[key]


_known: WeakKeyDictionary[NodeTable, VolumeUsage] = WeakKeyDictionary()


def of(table: NodeTable) -> VolumeUsage:
    """The usage of a table, up to date; one for all plugins."""
    found = _known.get(table)
    if found is None:
        found = _known[table] = VolumeUsage(table)
    found.follow()
    return found


def attachable(pod: Pod) -> Iterator[Use]:
    """The volumes of a pod that may take up attachments: claims, and what in-tree plugins serve."""
    for volume in pod.spec.volumes:
        name = volumes.claim_name(pod, volume)
        if name is not None:
            claim = ClaimUse(volumes.claim_key(pod, name), name, volume.persistent_volume_claim is None)
            yield Use(pod, claim, volume)
        elif migration.plugin_of(volume) is not None:
            yield Use(pod, None, volume)


def disk_use(volume: Volume) -> DiskUse | None:
    """The disk that a volume uses by itself; None for volumes that share.

    GCE disks, iSCSI targets and RBD images may be shared by readers, EBS volumes by nobody.
    Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go ``isVolumeConflict``.
    """
    if volume.gce_persistent_disk is not None:
        return DiskUse((("gce", volume.gce_persistent_disk.pd_name),), volume.gce_persistent_disk.read_only)
    if volume.aws_elastic_block_store is not None:
        return DiskUse((("ebs", volume.aws_elastic_block_store.volume_id),), False)
    if volume.iscsi is not None:
        return DiskUse((("iscsi", volume.iscsi.iqn),), volume.iscsi.read_only)
    if volume.rbd is not None:
        rbd = volume.rbd
        return DiskUse(tuple(("rbd", monitor, rbd.pool, rbd.image) for monitor in rbd.monitors), rbd.read_only)
    return None


def _written(pods: Iterable[_InUse]) -> dict[Disk, bool]:
    """The disks that pods use, and whether one of them writes."""
    found: dict[Disk, bool] = {}
    for each in pods:
        for use in each.disks:
            found.update({disk: found.get(disk, False) or not use.read_only for disk in use.disks})
    return found
