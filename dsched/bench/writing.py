"""Writing a workload's objects: the scripts that `dsched apply` uses, everything else done before the clock runs.
Claims are given devices without scheduling anything, so that a workload begins with a cluster in use.

Source: kubernetes v1.37 test/integration/scheduler_perf/dra.go ``allocResourceClaimsOp``.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from dsched.bench.following import Follower
from dsched.clock import SystemClock
from dsched.cluster.standalone import stored
from dsched.cluster.standalone.applying import Applier, Prepared
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.config import Features
from dsched.errors import ConfigError, NotFound
from dsched.framework.snapshot import Snapshot
from dsched.manifests import kinds
from dsched.manifests.load import Manifest
from dsched.model.resource_claims import Allocation
from dsched.plugins.dynamic_resources import inventory
from dsched.plugins.dynamic_resources.allocation.allocator import Allocator
from dsched.simulation.live_cluster import fill
from dsched.state.client import Store

CLAIM = kinds.RESOURCE_CLAIM


class Writer:
    """Writes objects and tells the follower of pods before they are written. May be used from several threads."""

    def __init__(self, store: Store, follower: Follower) -> None:
        self._applier = Applier(store)
        self._follower = follower
        self._finalized: dict[str, Manifest] = {}
        self._namespaces: set[str] = set()

    def prepare(self, manifests: Sequence[Manifest]) -> list[Prepared]:
        """Everything but the writing."""
        self._announce(manifests)
        return self._applier.prepare(manifests)

    def write(self, prepared: Sequence[Prepared]) -> None:
        """The writing."""
        for batch in prepared:
            self._applier.create(batch)

    def create(self, manifests: Sequence[Manifest]) -> None:
        """Write new objects."""
        self.write(self.prepare(manifests))

    def apply(self, manifests: Sequence[Manifest]) -> None:
        """Write objects, or change those that are there."""
        self._announce(manifests)
        self._applier.apply(manifests)

    def apply_missing(self, namespaces: Sequence[Manifest]) -> None:
        """Make namespaces that have not been made by this writer."""
        missing = [each for each in namespaces if each.key not in self._namespaces]
        if missing:
            self.apply(missing)

    def delete(self, manifests: Sequence[Manifest]) -> None:
        """Delete objects."""
        for each in manifests:
            self._applier.delete(each.kind, [each.key])

    def delete_pods(self, keys: Sequence[str]) -> None:
        """Delete pods as the API server does: one with finalizers is marked and stays.

        Raises:
            NotFound: a pod is not there.
        """
        marked = [self._marked(self._finalized[key]) for key in keys if key in self._finalized]
        if marked:
            self._applier.apply(marked)
        plain = [key for key in keys if key not in self._finalized]
        gone = [key for key, there in zip(plain, self._applier.delete(kinds.POD, plain), strict=True) if not there]
        if gone:
            raise NotFound(f"pods that should be deleted are not there: {', '.join(gone[:5])}")

    def _announce(self, manifests: Sequence[Manifest]) -> None:
        for each in manifests:
            if each.kind is kinds.POD:
                metadata: dict[str, Any] = each.value["metadata"]
                gated = bool(each.value["spec"].get("schedulingGates"))
                self._follower.announce(each.key, metadata.get("labels") or {}, gated=gated)
                if metadata.get("finalizers"):
                    self._finalized[each.key] = each
            elif each.kind is kinds.NAMESPACE:
                self._namespaces.add(each.key)

    def _marked(self, pod: Manifest) -> Manifest:
        metadata = {**pod.value["metadata"], "deletionTimestamp": stored.rfc3339(SystemClock().now_ms())}
        return Manifest(pod.origin, pod.kind, pod.key, {**pod.value, "metadata": metadata})


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
