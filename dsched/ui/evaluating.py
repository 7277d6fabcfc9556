"""Explanations and what-if for the page: work that takes a core for a while, so only little of it at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import msgspec

from dsched.errors import DschedError, ManifestError
from dsched.manifests import load
from dsched.model.meta import NO_NODE, NodeName, PodKey
from dsched.simulation import group_explanation_json, live_cluster, proposals
from dsched.simulation.explanation import Explanation, explain
from dsched.simulation.explanation_json import encoded
from dsched.simulation.live_cluster import LiveCluster
from dsched.simulation.outcome import PodOutcome
from dsched.simulation.proposals import Proposal
from dsched.ui.system import System

T = TypeVar("T")

LARGEST_MANIFEST = 256 * 1024
"""Bytes of a text to try out."""
AT_ONCE = 1
"""The interpreter runs one computation at a time anyway."""
MOST_WAITING = 8
TEXT_NAME = "manifest"
"""What the text is called in messages."""


class Busy(DschedError):
    """Too many computations wait already."""


class Desk:
    """Hands computations to threads, few at a time."""

    def __init__(self) -> None:
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """What the work comes to.

        Raises:
            Busy: others wait already.
        """
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(AT_ONCE)
        if self._limiter.statistics().tasks_waiting >= MOST_WAITING:
            raise Busy("others are being worked out; try again in a moment")
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation, and what it was explained by.

    Attributes:
        config: hash of the configuration.
        note: why that may not be what the system decides with; empty where it is.
    """

    explanation: Explanation
    standing: LiveCluster
    config: str
    note: str

    @property
    def here(self) -> NodeName | None:
        """The node that the pod has."""
        return self.standing.node or self.standing.reserved or None

    def json(self) -> bytes:
        """As ``dsched explain pod -o json``."""
        return encoded(self.explanation, self.standing, None)


def explain_pod(system: System, key: PodKey) -> Explained:
    """What would be decided for a pod now; changes nothing.

    Raises:
        NotFound: there is no such pod, or no profile for it.
        DschedError: the system cannot be read, or a plugin not be built.
    """
    chosen = system.configuration()
    configured = chosen.config
    with system.cluster(configured) as cluster:
        names = [profile.scheduler_name for profile in configured.profiles]
        standing = live_cluster.read(system.store, cluster, key, names, configured.features)
        found = explain(configured, system.plugins, standing, system.seed, cluster.get_objects)
    return Explained(found, standing, configured.hash, chosen.note(system.store, system.clock.now_ms()))


@dataclass(frozen=True, slots=True)
class Tried:
    """What would become of manifests; ``config`` and ``note`` as in `Explained`."""

    proposed: Proposal
    config: str
    note: str

    @property
    def mine(self) -> Sequence[PodOutcome]:
        """Of the manifests' pods, in their order."""
        keys = frozenset(self.proposed.pods)
        found = {each.key: each for each in self.proposed.outcome.pods if each.key in keys}
        return [found[key] for key in self.proposed.pods if key in found]

    @property
    def others(self) -> Sequence[PodOutcome]:
        """Of pods that the system has: those that would be evicted, or were tried too."""
        keys = frozenset(self.proposed.pods)
        return [each for each in self.proposed.outcome.pods if each.key not in keys]

    @property
    def here(self) -> NodeName:
        """Where the pod that is explained would go."""
        explained = self.proposed.explained
        return next((each.node for each in self.mine if explained and each.key == explained.pod), NO_NODE)

    def json(self) -> bytes:
        """``pods``, ``others``, ``counts``, ``groups``, ``config``, ``note``; ``explanation`` as ``dsched explain pod
        -o json``; ``group_explanation``, of its group, as ``dsched explain podgroup -o json``."""
        proposed = self.proposed
        told: Mapping[str, Any] = {
            "pods": self.mine,
            "others": self.others,
            "counts": proposed.outcome.counts,
            "groups": proposed.outcome.groups,
            "config": self.config,
            "note": self.note,
            "explanation": msgspec.Raw(encoded(proposed.explained, proposed.standing, None))
            if proposed.explained is not None and proposed.standing is not None
            else None,
            "group_explanation": None
            if proposed.group is None
            else msgspec.Raw(group_explanation_json.encoded(*proposed.group)),
        }
        return msgspec.json.encode(told)


def try_out(system: System, text: bytes, wanted: PodKey | None = None, *, with_pending: bool = False) -> Tried:
    """Where the pods of manifests would go; changes nothing.

    Args:
        wanted: the pod to explain.
        with_pending: try the system's own pending pods, too.

    Raises:
        ManifestError: the text cannot be taken: document, field or line and column, and what is wrong.
        DschedError: the system cannot be read, or a plugin not be built.
    """
    if len(text) > LARGEST_MANIFEST:
        raise ManifestError([f"{TEXT_NAME}: is larger than {LARGEST_MANIFEST >> 10} KiB; use dsched simulate"])
    manifests = load.load_text(text, TEXT_NAME)
    chosen = system.configuration()
    configured = chosen.config
    with system.cluster(configured) as cluster:
        proposed = proposals.propose(
            configured,
            system.plugins,
            system.store,
            cluster,
            manifests,
            system.clock.now_ms(),
            seed=system.seed,
            wanted=wanted,
            with_pending=with_pending,
        )
    return Tried(proposed, configured.hash, chosen.note(system.store, system.clock.now_ms()))
