"""Devices as a resource of queues: what claims count of each DeviceClass, and how many devices there are.

What a claim asks for counts, not what it got: that is known before it has any, and is the same on every node. Who
claims are of is kept by those who count (`ledger`, `limits`): for a queue a claim counts once, however many of its pods
use it.
"""

from collections.abc import Collection, Iterable
from types import MappingProxyType

from dsched.config import Features
from dsched.framework.snapshot import Snapshot
from dsched.model.pod import Pod
from dsched.model.queues import DEVICES
from dsched.model.resource_claims import RESOURCE_CLAIM, DeviceClass
from dsched.plugins.dynamic_resources import inventory, objects, totals
from dsched.scheduler.ports import Amounts

_NOTHING: Amounts = MappingProxyType({})


def claims_of(pod: Pod) -> tuple[str, ...]:
    """``namespace/name`` of the claims that a pod uses, each once. Those for its extended resources are not among them:
    these resources count under their own names."""
    return tuple(dict.fromkeys(pod.named_claims)) if pod.spec.resource_claims else ()


class Devices:
    """Claims and devices of a snapshot."""

    def __init__(self, snapshot: Snapshot, features: Features) -> None:
        self._snapshot = snapshot
        self._features = features
        self._claims = objects.of(snapshot).claims
        self._there_are: dict[str, tuple[DeviceClass | None, int, float]] = {}
        """By resource the class, the version of the slices, and how many devices there were then."""

    def counted(self, claim: str) -> Amounts:
        """What a claim ``namespace/name`` counts for a queue; nothing where it is not there."""
        found = self._claims.get(claim)
        return _NOTHING if found is None else found.counted

    @property
    def version(self) -> int:
        """Grows with every change of a claim."""
        return self._snapshot.version_of(RESOURCE_CLAIM)

    def changed(self, version: int, held: Collection[str]) -> Iterable[str]:
        """Of some claims those that may count something else than they did at a version."""
        changed = self._snapshot.changed_since(RESOURCE_CLAIM, version)
        return [*held] if changed is None else [claim for claim in changed if claim in held]

    def there_are(self, resources: Iterable[str]) -> dict[str, float]:
        """How many devices there are of some classes; of one that is not there, none."""
        known = inventory.of(self._snapshot, self._features)
        found: dict[str, float] = {}
        for each in resources:
            cls = known.objects.classes.get(each.removesuffix(DEVICES))
            before = self._there_are.get(each)
            if before is None or before[0] is not cls or before[1] != known.index.version:
                count = 0.0 if cls is None else float(totals.matching(cls, known))
                before = self._there_are[each] = cls, known.index.version, count
            found[each] = before[2]
        return found
