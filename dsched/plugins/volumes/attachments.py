"""What volumes attach to nodes: how many a node takes of each driver's, and which ones are there.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go ``filterAttachableVolumes``, ``getCSIDriverInfo``,
``getNodeVolumeAttachmentInfo``, ``getVolumeLimits``.
"""

from collections.abc import Hashable, Iterable, Iterator
from itertools import count
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import matching
from dsched.arithmetic.matching import Flags
from dsched.errors import PluginError
from dsched.framework.interface import Rows
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model import migration, volumes
from dsched.model.meta import NodeName
from dsched.model.pod import Pod, Volume
from dsched.model.volumes import ClaimUse, PersistentVolume, PersistentVolumeClaim
from dsched.plugins.volumes import objects as volume_objects
from dsched.plugins.volumes import usage as volume_usage
from dsched.plugins.volumes.objects import VolumeObjects
from dsched.plugins.volumes.usage import Use

UNLIMITED = -1
_MOST_DEMANDS = 64
"""So many are followed."""


class Attachment(NamedTuple):
    """A volume as its driver knows it; one that is not made yet is known by its claim."""

    driver: str
    handle: str
    claim: str = ""


class Taken(NamedTuple):
    """An attachment that a pod's volume takes up.

    Attributes:
        announced: the in-tree plugin that a node has to list as migrated for it to count; ``""`` for none.
        in_tree: it is an in-tree plugin's volume that a driver took over, which only counts on nodes with a CSINode.
    """

    attachment: Attachment
    announced: str = ""
    in_tree: bool = False


class MissingClaim(Exception):
    """A claim that a pod uses does not exist; ``args[0]`` says which."""


def taken(use: Use, objects: VolumeObjects) -> Taken | None:
    """What a pod's volume takes up; None for what is not counted.

    Raises:
        MissingClaim: its claim does not exist.
        PluginError: its claim belongs to another pod, or its source makes no sense to the driver that took it over.
    """
    if use.claim is None:
        return _in_tree(use.volume)
    claim = objects.claims.get(use.claim.key)
    if claim is None:
        raise MissingClaim(f'looking up PVC {use.claim.key}: persistentvolumeclaim "{use.claim.name}" not found')
    if use.claim.ephemeral and not volumes.made_for(claim, use.pod):
        raise PluginError(stranger(use.claim, use.pod))
    volume = objects.volume(claim.spec.volume_name) if claim.spec.volume_name else None
    return _not_made_yet(use.claim.key, claim, objects) if volume is None else made(volume)


def stranger(claim: ClaimUse, pod: Pod) -> str:
    """What is said of an ephemeral volume's claim that was not made for the pod."""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def _in_tree(volume: Volume) -> Taken | None:
    plugin = migration.plugin_of(volume)
    if plugin is None or not plugin.served:
        return None
    try:
        handle = migration.handle(volume)
    except PluginError as error:
        raise PluginError(f"converting volume({volume.name}) from inline to csi: {error}") from error
    return Taken(Attachment(plugin.driver, handle), plugin.name if plugin.announced else "", in_tree=True)


def made(volume: PersistentVolume) -> Taken | None:
    """What a volume that is there takes up on the node of a pod that uses it; None for what is not counted."""
    if volume.spec.csi is not None:
        return _counted(volume.spec.csi.driver, volume.spec.csi.volume_handle)
    plugin = migration.plugin_of(volume.spec)
    if plugin is None or not plugin.served:
        return None
    try:
        handle = migration.handle(volume.spec, volume.metadata.labels)
    except PluginError:
        return None  # a driver could not attach it either
    return _counted(plugin.driver, handle, plugin.name if plugin.announced else "", in_tree=True)


def _counted(driver: str, handle: str, announced: str = "", in_tree: bool = False) -> Taken | None:
    return Taken(Attachment(driver, handle), announced, in_tree) if driver and handle else None


def _not_made_yet(key: str, claim: PersistentVolumeClaim, objects: VolumeObjects) -> Taken | None:
    """The volume that the claim's class would make; without a class it is bound by now, or never."""
    storage_class = objects.classes.get(volumes.class_of_claim(claim))
    if storage_class is None or not storage_class.provisioner:
        return None
    plugin = migration.BY_NAME.get(storage_class.provisioner)
    if plugin is None:
        return Taken(Attachment(storage_class.provisioner, "", key))
    if not plugin.served:
        return None
    return Taken(Attachment(plugin.driver, "", key), plugin.name if plugin.announced else "", in_tree=True)


class OnNode(NamedTuple):
    """What is attached to a node.

    Attributes:
        used: by the pods on it, as far as that can be known.
        reported: what VolumeAttachments say.
        migrated: in-tree plugins whose volumes count as their drivers'.
    """

    used: frozenset[Attachment]
    reported: frozenset[Attachment]
    migrated: frozenset[str]


Demand = frozenset[tuple[str, int]]
"""How many attachments of which drivers."""


class Crowd:
    """The rows that may not have room for a demand.

    Attributes:
        of: what the limits and the reports were read from.
        rows: these; of the others it is plain that they have.
        number: as long as it is equal, whatever has changed since does not concern these rows: neither which they are,
            nor what is attached to them.
    """

    __slots__ = ("number", "objects", "of", "position", "rows")

    def __init__(self, of: Hashable, rows: set[int], number: int) -> None:
        self.of = of
        self.rows = rows
        self.number = number
        self.position = 0
        self.objects: tuple[int, ...] = ()


class Attachments:
    """Attachments by row of one table, kept until something changes; call `follow` before asking.

    Attributes:
        objects, table: what it is about.
        announced: whether nodes have to announce that a driver serves an in-tree plugin's volumes, where the plugin
            asks for that: until v1.35.
    """

    def __init__(self, table: NodeTable, objects: VolumeObjects, *, announced: bool) -> None:
        self.objects = objects
        self.table = table
        self.announced = announced
        self._known: Flags = np.zeros(0, dtype=np.bool_)
        self._installed: dict[str, Flags] = {}
        self._limits_of: tuple[int, ...] = ()
        self._limits: dict[str, NDArray[np.int64]] = {}
        self._reported_of: tuple[int, ...] = ()
        self._reported: dict[int, frozenset[Attachment]] = {}
        self._used_of: tuple[int, ...] = ()
        self._used: dict[int, tuple[tuple[Use, ...], frozenset[Attachment]]] = {}
        self._crowds: dict[Demand, Crowd] = {}
        self._numbers = count(1)

    def follow(self) -> None:
        """Take in what has changed of CSINodes and VolumeAttachments."""
        version = (self.table.layout, self.objects.nodes.version)
        if version != self._limits_of:
            self._limits_of = version
            self._read_nodes()
        reported_of = (self.table.layout, self.objects.attachments.version, self.objects.offers.version)
        if reported_of != self._reported_of:
            self._reported_of, self._reported = reported_of, self._read_reported()

    def limits(self, driver: str) -> NDArray[np.int64] | None:
        """How many volumes of a driver each row takes, `UNLIMITED` where it does not say; None where none does."""
        return self._limits.get(driver)

    def lacks_driver(self, each: Taken, rows: Rows) -> Flags:
        """Rows where the attachment counts and its driver is not installed; a node without CSINode has no driver."""
        installed = self._installed.get(each.attachment.driver)
        flags = np.ones(len(self.table), dtype=np.bool_) if installed is None else ~installed
        if each.in_tree:
            flags &= self._known
        if each.announced and self.announced:
            names = (self.table.index.get(name) for name in self.objects.migrated_to(each.announced))
            there = np.zeros(len(self.table), dtype=np.bool_)
            there[[row for row in names if row is not None]] = True
            flags &= there
        return flags[rows]

    def crowded(self, demand: Demand, rows: Rows) -> Flags:
        """Rows that may not have room: counted generously, all drivers together, so that few have to be counted
        exactly."""
        flags = matching.none(rows)
        at_most: NDArray[np.int64] | None = None
        for driver, wanted in demand:
            limits = self._limits.get(driver)
            if limits is not None:
                here = limits[rows]
                at_most = self._at_most(rows) if at_most is None else at_most
                flags |= (here != UNLIMITED) & (at_most + wanted > here)
        return flags

    def crowd(self, demand: Demand) -> Crowd:
        """The rows of the table that are `crowded`, kept up to date; not to be kept by others."""
        of, known = (self._limits_of, self._reported_of), self._crowds.get(demand)
        changed = None if known is None or known.of != of else self.table.changed_since(known.position)
        if known is None or changed is None:
            rows = set(np.flatnonzero(self.crowded(demand, self.table.all_rows)).tolist())
            same = known is not None and not known.rows and not rows
            known = Crowd(of, rows, known.number if known is not None and same else next(self._numbers))
            if len(self._crowds) >= _MOST_DEMANDS:
                self._crowds.clear()
            self._crowds[demand] = known
        else:
            for row in changed:
                crowded = self._is_crowded(demand, row)
                if crowded or row in known.rows:
                    known.number = next(self._numbers)
                    (known.rows.add if crowded else known.rows.discard)(row)
            if known.rows and known.objects != self.objects.version:
                known.number = next(self._numbers)
        known.position, known.objects = self.table.position, self.objects.version
        return known

    def _is_crowded(self, demand: Demand, row: int) -> bool:
        """What `crowded` says of one row, without arrays."""
        at_most = volume_usage.of(self.table).count(row) + len(self._reported.get(row, ()))
        for driver, wanted in demand:
            limits = self._limits.get(driver)
            if limits is not None and limits.item(row) != UNLIMITED and at_most + wanted > limits.item(row):
                return True
        return False

    def _at_most(self, rows: Rows) -> NDArray[np.int64]:
        """Per row no less than what is attached there."""
        counts = volume_usage.of(self.table).counts(rows).copy()
        if self._reported:
            reported = np.zeros(len(self.table), dtype=np.int64)
            for row, found in self._reported.items():
                reported[row] = len(found)
            counts += reported[rows]
        return counts

    def on(self, rows: Iterable[int]) -> Iterator[OnNode]:
        """What is attached to each row."""
        usage = volume_usage.of(self.table)
        version = (self.table.layout, *self.objects.version)
        if version != self._used_of:
            self._used_of, self._used = version, {}
        for row in rows:
            node = self.objects.nodes.get(self.table.names[row])
            migrated = frozenset[str]()
            if node is not None:
                migrated = node.migrated if self.announced else node.migrated | migration.ANNOUNCED
            uses = usage.uses.get(row, ())
            known = self._used.get(row)
            if known is None or known[0] is not uses:
                known = self._used[row] = (uses, self._look_up(uses, migrated))
            yield OnNode(known[1], self._reported.get(row, frozenset()), migrated)

    def _look_up(self, uses: Iterable[Use], migrated: frozenset[str]) -> frozenset[Attachment]:
        """What cannot be looked up is not counted: nobody can say that it is attached at all."""
        found: set[Attachment] = set()
        for use in uses:
            try:
                each = taken(use, self.objects)
            except (MissingClaim, PluginError):
                continue
            if each is not None and each.announced in ("", *migrated):
                found.add(each.attachment)
        return frozenset(found)

    def _read_nodes(self) -> None:
        """Which drivers there are by row, and what they take."""
        rows = len(self.table)
        self._known, self._installed, self._limits = np.zeros(rows, dtype=np.bool_), {}, {}
        for node in self.objects.nodes.every():
            row = self.table.index.get(NodeName(node.metadata.name))
            if row is None:
                continue
            self._known[row] = True
            for each in node.spec.drivers:
                if each.name not in self._installed:
                    self._installed[each.name] = np.zeros(rows, dtype=np.bool_)
                self._installed[each.name][row] = True
            for driver, limit in node.limits.items():
                if driver not in self._limits:
                    self._limits[driver] = np.full(rows, UNLIMITED, dtype=np.int64)
                self._limits[driver][row] = limit

    def _read_reported(self) -> dict[int, frozenset[Attachment]]:
        found: dict[int, set[Attachment]] = {}
        for each in self.objects.attachments.every():
            row = self.table.index.get(NodeName(each.spec.node_name))
            volume = self.objects.volume(each.spec.source.persistent_volume_name or "")
            if row is not None and each.spec.attacher and volume is not None and volume.spec.csi is not None:
                found.setdefault(row, set()).add(Attachment(each.spec.attacher, volume.spec.csi.volume_handle))
        return {row: frozenset(known) for row, known in found.items()}


_known: WeakKeyDictionary[Snapshot, Attachments] = WeakKeyDictionary()


def of(snapshot: Snapshot, *, announced: bool) -> Attachments:
    """The attachments of a snapshot's table, up to date; one for the plugins of all profiles. ``announced`` as in
    `Attachments`."""
    found = _known.get(snapshot)
    if found is None or found.table is not snapshot.table or found.announced is not announced:
        found = _known[snapshot] = Attachments(snapshot.table, volume_objects.of(snapshot), announced=announced)
    found.follow()
    return found
