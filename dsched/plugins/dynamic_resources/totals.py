"""How many devices of a class there are: on nodes, and how many of them are in use, for scores of extended resources;
and altogether, for queues.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go ``calculateDRAResourceTotals``.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dsched.config import Features
from dsched.framework.interface import Rows
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.devices import PoolId
from dsched.model.node import Node
from dsched.model.resource_claims import DeviceClass
from dsched.plugins.dynamic_resources import inventory
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from dsched.plugins.dynamic_resources.allocation.selection import Criteria
from dsched.plugins.dynamic_resources.allocation.slices import OfferedDevice
from dsched.plugins.dynamic_resources.inventory import Inventory


class Totals(NamedTuple):
    """By table row. Not to be written to."""

    devices: NDArray[np.int64]
    in_use: NDArray[np.int64]


class ClassTotals:
    """The devices of one class, kept up to date node by node."""

    def __init__(self, cls: DeviceClass) -> None:
        self._criteria = _criteria(cls)
        self._at: tuple[object, ...] = ()
        self._allocated_at = 0
        self._found = Totals(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def of(self, table: NodeTable, known: Inventory) -> Totals:
        """For every row of the table; always asked with the same inventory."""
        at = table, table.layout, table.objects_version, known.index.version
        rows = known.stale_rows(table, self._allocated_at) if at == self._at else None
        if rows is None:
            length = len(table)
            self._found = Totals(np.zeros(length, dtype=np.int64), np.zeros(length, dtype=np.int64))
            rows = range(length)
        self._at, self._allocated_at = at, known.allocated.version
        for row in rows:
            self._found.devices[row], self._found.in_use[row] = self._on(table.nodes[row], known)
        return self._found

    def _on(self, node: Node, known: Inventory) -> tuple[int, int]:
        """Nothing, where a selector fails."""
        devices = in_use = 0
        try:
            for device in known.index.devices_on(node):
                said = known.selectors.select(self._criteria, device.id.driver, device.record, device.said)
                if said is True:
                    devices += 1
                    in_use += _in_use(device, known)
                elif said is not False:
                    return 0, 0
        except AllocationError:
            return 0, 0
        return devices, in_use


def _criteria(cls: DeviceClass) -> Criteria:
    return Criteria(tuple(each.cel.expression for each in cls.spec.selectors if each.cel is not None), ())


def _in_use(device: OfferedDevice, known: Inventory) -> bool:
    pool, allocated = PoolId(device.id.driver, device.id.pool), known.allocated
    return device.id.device in allocated.whole(pool) or device.id.device in allocated.shared(pool)


_known: WeakKeyDictionary[Inventory, dict[str, tuple[DeviceClass, ClassTotals]]] = WeakKeyDictionary()


def of(resources: Iterable[str], snapshot: Snapshot, features: Features) -> Mapping[str, Totals]:
    """Of those resources that a class stands for, what nodes have of its devices."""
    known = inventory.of(snapshot, features)
    kept = _known.setdefault(known, {})
    found: dict[str, Totals] = {}
    for resource in resources:
        cls = known.objects.class_behind(resource)
        if cls is None:
            continue
        if resource not in kept or kept[resource][0] is not cls:
            kept[resource] = cls, ClassTotals(cls)
        found[resource] = kept[resource][1].of(snapshot.table, known)
    return found


def with_devices(
    used: NDArray[np.int64], whole: NDArray[np.int64], totals: Totals, rows: Rows
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What is requested of a resource and what there is of it, where nodes that have none of it but devices count
    those."""
    devices = totals.devices[rows]
    by_devices = (whole == 0) & (devices > 0)
    return np.where(by_devices, totals.in_use[rows], used), np.where(by_devices, devices, whole)


def matching(cls: DeviceClass, known: Inventory) -> int:
    """How many devices there are of a class, wherever they can be used, and whoever has them. A device for which an
    expression fails is none of it."""
    wanted, select = _criteria(cls), known.selectors.select
    devices = (device for pool in known.index.pool_ids for device in known.index.newest_of(pool))
    return sum(select(wanted, each.id.driver, each.record, each.said) is True for each in devices)
