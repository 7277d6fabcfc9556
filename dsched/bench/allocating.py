"""Gives claims their devices without scheduling anything, so that a workload begins with a cluster in use.

Source: kubernetes v1.37 test/integration/scheduler_perf/dra.go ``allocResourceClaimsOp``.
"""

from random import Random
from typing import Any

import msgspec

from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.config import Features
from dsched.errors import ConfigError
from dsched.framework.snapshot import Snapshot
from dsched.manifests import kinds
from dsched.manifests.load import Manifest
from dsched.model.resource_claims import Allocation
from dsched.plugins.dynamic_resources import inventory
from dsched.plugins.dynamic_resources.allocator import Allocator
from dsched.simulation.live_cluster import fill
from dsched.state.client import Store

CLAIM = kinds.RESOURCE_CLAIM


def allocated(store: Store, namespace: str, features: Features, rng: Random) -> list[Manifest]:
    """The claims of a namespace that have no devices, with devices of nodes drawn by chance; to be applied.

    Raises:
        ConfigError: there are not enough devices for a claim.
    """
    listing, snapshot = StandaloneCluster(store).list(), Snapshot()
    fill(snapshot, listing, {}, without=())
    known, nodes = inventory.of(snapshot, features), list(listing.nodes)
    allocators: dict[bytes, Allocator] = {}
    found: list[Manifest] = []
    for key, value in snapshot.others(CLAIM.name).items():
        claim = known.objects.claims.get(key)
        if claim is None or claim.allocation is not None or not key.startswith(f"{namespace}/"):
            continue
        before = allocators.get(claim.spec_key)
        allocator = before.alike([claim.record]) if before else _allocator(claim.record, known)
        allocators[claim.spec_key] = allocator
        rng.shuffle(nodes)
        given = next((given for node in nodes if allocator.fits(node) and (given := allocator.allocate(node))), None)
        if given is None:
            raise ConfigError(f"claim {claim.key} cannot get devices: only {len(found)} claims before it can")
        known.allocated.put(claim.key, msgspec.convert(given[0], Allocation, strict=False))
        written = {**value, "status": {**(value.get("status") or {}), "allocation": given[0]}}
        found.append(Manifest(f"claim {claim.key}", CLAIM, claim.key, written))
    return found


def _allocator(claim: Any, known: inventory.Inventory) -> Allocator:
    return Allocator([claim], known.objects.classes.get, known.index, known.allocated, known.selectors, known.features)
