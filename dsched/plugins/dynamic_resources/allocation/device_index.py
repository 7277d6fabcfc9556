"""All slices of the cluster, and the pools that each node can use: made once, and again where slices change.

Source: structured/internal/incubating/pools_incubating.go ``GatherPools``.
"""

import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dsched.model.devices import DeviceTaintRule, PoolId, ResourceSlice
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.plugins.dynamic_resources.allocation import pools
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.pools import Pool
from dsched.plugins.dynamic_resources.allocation.slices import OfferedDevice, OfferedSlice, tainted

_PoolKey = tuple[tuple[int, ...], tuple[int, ...], tuple[bool, ...]]


class DeviceIndex:
    """Slices by node and by pool, and the pools of nodes as far as somebody has asked for them.

    Slices and rules are never changed in place: an object that is the same one as before is not looked at again.
    """

    def __init__(self, features: AllocatorFeatures) -> None:
        self._features = features
        self._slices: dict[str, OfferedSlice] = {}
        self._of_pool: dict[PoolId, list[OfferedSlice]] = {}
        self._on_node: dict[str, list[OfferedSlice]] = {}
        self._shared: list[OfferedSlice] = []
        self._only_node: dict[PoolId, NodeName] = {}
        self._counters: dict[PoolId, list[OfferedSlice]] = {}
        """Slices of shared counters, where they reach every node."""
        self._unusable: Sequence[Pool] | None = None
        """Of their pools those that are incomplete or invalid, as nodes see them that have nothing else of them."""
        self._of_node: dict[NodeName, tuple[Mapping[str, str], Sequence[Pool] | AllocationError]] = {}
        self._made: dict[PoolId, dict[_PoolKey, Pool]] = {}
        self._version = 0

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    def update(self, slices: Iterable[ResourceSlice], rules: Iterable[DeviceTaintRule] = ()) -> None:
        """Take the cluster's slices and taint rules as they are now."""
        every_rule = sorted(rules, key=lambda rule: rule.metadata.name) if self._features.device_taint_rules else []
        now = {}
        changed: set[PoolId] = set()
        for record in slices:
            if _grouped(record):
                continue
            tainting = tuple(rule for rule in every_rule if any(True for _ in tainted(rule, record)))
            known = self._slices.get(record.metadata.name)
            if known is None or known.record is not record or known.rules != tainting:
                known = OfferedSlice(record, tainting)
                changed |= self._pools_of(record.metadata.name) | {known.pool}
            now[known.name] = known
        for name in self._slices.keys() - now.keys():
            changed |= self._pools_of(name)
        if changed:
            self._forget(changed)
            self._take(now)
            self._forget(changed)
            self._version += 1

    def pools(self, node: Node) -> Sequence[Pool]:
        """The pools with devices for a node, in the order in which devices are looked for.

        Raises:
            AllocationError: a node selector of a slice is no legal one.
        """
        known = self._of_node.get(node.name)
        labels = node.metadata.labels
        if known is None or (known[0] is not labels and known[0] != labels):
            known = self._of_node[node.name] = labels, self._gathered(node)
        if isinstance(known[1], AllocationError):
            raise known[1]
        return known[1]

    def devices_on(self, node: Node) -> Iterator[OfferedDevice]:
        """The devices that can be used on a node, whatever their generation, and whether their pools are complete.

        Raises:
            AllocationError: a node selector of a slice is no legal one.
        """
        for each in (*self._on_node.get(node.name, ()), *self._shared):
            if each.reaches(node):
                yield from (device for device in each.devices if not each.per_device or device.selection.admits(node))

    def node_of(self, pool: PoolId) -> NodeName | None:
        """The node that alone can use a pool; None where several can, or where there is no such pool."""
        return self._only_node.get(pool)

    def devices_of(self, pool: PoolId) -> Sequence[OfferedDevice]:
        """The devices of all slices of a pool, whatever their generation."""
        return [device for each in self._of_pool.get(pool, ()) for device in each.devices]

    def newest_of(self, pool: PoolId) -> Sequence[OfferedDevice]:
        """The devices of a pool's newest generation, whether it is complete or not."""
        slices = self._of_pool.get(pool, ())
        newest = max((each.generation for each in slices), default=0)
        return [device for each in slices if each.generation == newest for device in each.devices]

    def slices_of(self, pool: PoolId) -> Sequence[ResourceSlice]:
        """All slices of a pool, whatever their generation."""
        return [each.record for each in self._of_pool.get(pool, ())]

    @property
    def pool_ids(self) -> Iterable[PoolId]:
        """All pools that have slices."""
        return self._of_pool.keys()

    def _usable(self, each: OfferedSlice) -> bool:
        """Whether a node may take devices of a slice: not of one that needs what is off, or what is not known yet. It
        belongs to its pool all the same."""
        return each.selects and (self._features.partitionable_devices or not each.partitioned)

    def _pools_of(self, name: str) -> set[PoolId]:
        known = self._slices.get(name)
        return set() if known is None else {known.pool}

    def _take(self, slices: dict[str, OfferedSlice]) -> None:
        self._slices = dict(sorted(slices.items()))
        self._of_pool, self._on_node, self._shared, self._counters = {}, {}, [], {}
        for each in self._slices.values():
            self._of_pool.setdefault(each.pool, []).append(each)
            if each.node_name:
                self._on_node.setdefault(each.node_name, []).append(each)
            else:
                self._shared.append(each)
            if self._features.counters_everywhere and each.record.spec.shared_counters:
                self._counters.setdefault(each.pool, []).append(each)
        self._only_node = {}
        for pool, of_pool in self._of_pool.items():
            names = {each.node_name for each in of_pool}
            if len(names) == 1 and "" not in names:
                self._only_node[pool] = NodeName(names.pop())

    def _forget(self, changed: set[PoolId]) -> None:
        """Forget what was made of some pools, and the nodes that they reach: all, where a pool is for several nodes."""
        for pool in changed:
            self._made.pop(pool, None)
            if pool in self._counters:
                self._unusable = None
                self._of_node.clear()
            for each in self._of_pool.get(pool, ()):
                if each.node_name:
                    self._of_node.pop(NodeName(each.node_name), None)
                else:
                    self._of_node.clear()

    def _gathered(self, node: Node) -> Sequence[Pool] | AllocationError:
        try:
            newest = self._newest(node)
            found = [self._pool(id, slices, node) for id, slices in newest.items()]
            if self._counters:
                found += [pool for pool in self._unusable_anywhere(node) if pool.id not in newest]
        except AllocationError as error:
            return AllocationError(f"gather pool information: {error}")
        last = self._features.waiting_pools_last
        return sorted((pool for pool in found if pool is not None), key=lambda pool: (last and pool.waits, pool.id))

    def _newest(self, node: Node) -> dict[PoolId, list[OfferedSlice]]:
        """The slices that reach a node, by pool: of each pool the highest generation among them."""
        found: dict[PoolId, list[OfferedSlice]] = {}
        for each in (*self._on_node.get(node.name, ()), *self._shared):
            if self._usable(each) and each.reaches(node):
                _join(found.setdefault(each.pool, []), each)
        for pool in found.keys() & self._counters.keys():
            for each in self._counters[pool]:
                _join(found[pool], each)
        return found

    def _unusable_anywhere(self, node: Node) -> Sequence[Pool]:
        """See `_unusable`; any node will do, for slices of counters have no devices that could be on it."""
        if self._unusable is None:
            pools = []
            for id, counters in self._counters.items():
                slices: list[OfferedSlice] = []
                for each in counters:
                    _join(slices, each)
                pool = self._pool(id, slices, node)
                if pool is not None and (pool.incomplete or pool.invalid):
                    pools.append(pool)
            self._unusable = pools
        return self._unusable

    def _pool(self, id: PoolId, slices: list[OfferedSlice], node: Node) -> Pool | None:
        """A pool of which some slices reach the node; None where a newer generation is to be, elsewhere."""
        count = slices[0].slice_count
        last = self._features.partial_pools
        slices.sort(key=lambda each: (last and each.waits, each.name))
        if len(slices) == count or self._features.partial_pools:
            return self._built(id, slices, [], node, incomplete=len(slices) != count)
        every = self._of_pool[id]
        if any(each.generation > slices[0].generation for each in every):
            return None
        others = [each for each in every if each.generation == slices[0].generation and each not in slices]
        if len(slices) + len(others) != count:
            return Pool(id, incomplete=True)
        return self._built(id, slices, others, node)

    def _built(
        self,
        id: PoolId,
        slices: list[OfferedSlice],
        others: list[OfferedSlice],
        node: Node,
        *,
        incomplete: bool = False,
    ) -> Pool:
        """Nodes that see the same of a pool share it, and so what is kept with it."""

        def reachable(device: OfferedDevice) -> bool:
            return not device.slice.per_device or device.selection.admits(node)

        chosen = tuple(reachable(device) for each in slices if each.per_device for device in each.devices)
        key = tuple(map(builtins.id, slices)), tuple(map(builtins.id, others)), chosen
        made = self._made.setdefault(id, {})
        if key not in made:
            made[key] = pools.build(id, slices, others, reachable, self._features)
            made[key].incomplete = incomplete
        return made[key]


def _join(slices: list[OfferedSlice], each: OfferedSlice) -> None:
    """Take a slice in, of which the pool's others of the highest generation are there."""
    if slices and slices[0].generation < each.generation:
        slices.clear()
    if each not in slices and (not slices or slices[0].generation == each.generation):
        slices.append(each)


def _grouped(record: ResourceSlice) -> bool:
    """Whether devices may not be given together as they like. Such slices are passed over, their pools are incomplete.

    Source: structured/internal/incubating/compatibility_groups.go.
    """
    return any(each.compatibility_groups for device in record.spec.devices for each in device.consumes_counters)
