"""The cluster behind an API server.

*Versions.* An API server counts its changes (``resourceVersion``), but tells them in one stream a kind, each at its own
pace. So there is no version up to which everything is known, and none is needed: every stream continues from where it
was by itself. The versions given to callers are the highest resourceVersion that the watches have come to so far; they
tell people and fsck how far the caller is, and that `watch` is asked by whom `list` was answered to. All that is
decided by them is which of two readings of the same pod is the newer one.

*Threads.* A thread a kind reads and decodes (`reflector`); the loop takes what came in portions (`feed`). What the
leader writes goes through two more (`writer`, `recorder`). Binders use neither feed nor writer.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dsched.cluster import coscheduling as coscheduling_
from dsched.cluster import unknown_fields
from dsched.cluster.claims import Need
from dsched.cluster.interface import (
    Binding,
    BindOutcome,
    BindVerdict,
    Cluster,
    Event,
    GroupStatus,
    Listing,
    PodEvent,
    SchedulingStatus,
    Sighting,
    scheduled,
)
from dsched.cluster.kubernetes import bindings as binds
from dsched.cluster.kubernetes import resources, version
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.bindings import Binder
from dsched.cluster.kubernetes.claims import ClaimWriter
from dsched.cluster.kubernetes.feed import Feed
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Calls, ManyCalls
from dsched.cluster.kubernetes.http.exchange import Answer, Request
from dsched.cluster.kubernetes.recorder import A_SECOND, Recorder
from dsched.cluster.kubernetes.reflector import Reflector
from dsched.cluster.kubernetes.volumes import VolumeWriter
from dsched.cluster.kubernetes.writer import Writer
from dsched.config.feature_gates import Version
from dsched.errors import ClusterUnavailable, WatchExpired
from dsched.model import reading
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease, ClaimWrite, CreatedClaim, ExtendedClaim
from dsched.model.coscheduling import grouped
from dsched.model.meta import NO_NODE, PodKey, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.queues import QueueStatus
from dsched.model.volumes import ClaimBinding, NodeSelection

SYNC_S = 120.0
"""How long listing may take."""
PATIENCE_S = 5.0
SURVEYED_AT_ONCE = 500


class Kubernetes:
    """A `Cluster` kept by an API server; nothing is opened before it is used.

    Args:
        reporting: whom events name as their reporter that come without a scheduler's name.
        sync_s: how long `list` waits for everything to be there.
        events_a_second: how many are sent at most.
        holds: whether devices are reserved for whom claims with them are written for.
        coscheduling: whether pods and groups of scheduler-plugins are read as those of Kubernetes.
        groups, queues: whether pod groups and queues are listed and watched; not every user may, nor does every API
            server serve them.
    """

    kind = "kubernetes"
    checks_reservations = False
    tells_binds = False

    def __init__(
        self,
        access: Access,
        reporting: str = "dsched",
        sync_s: float = SYNC_S,
        events_a_second: float = A_SECOND,
        holds: Callable[[Need], bool] = lambda need: True,
        groups: bool = False,
        queues: bool = False,
        coscheduling: bool = False,
    ) -> None:
        self._access = access
        self._sync_s = sync_s
        self._ask_for(groups=groups, queues=queues, coscheduling=coscheduling)
        self._feed: Feed | None = None
        self._given = 0
        self._reflectors: dict[str, Reflector] = {}
        self._many = ManyCalls(access)
        self._calls = Calls(access)
        self._binder = Binder(self._many)
        self._volumes = VolumeWriter(self._calls)
        self._claims = ClaimWriter(self._calls, self._many, holds)
        self._recorder = Recorder(access, reporting, events_a_second)
        self._writer = Writer(access, self._known, self._known_group, self._known_queue)
        self._unknown = unknown_fields.Telling(self._recorder.record)

    # -- listening -------------------------------------------------------------------------------------------------

    def list(self) -> Listing:
        """Everything there is; begins to watch all kinds, and ends the watches that an earlier call began.

        Raises:
            ClusterUnavailable: not all kinds could be read in time; says which, and why.
        """
        self._stop_listening()
        reading.prepare()
        feed = self._feed = Feed()
        watched = [each for each in resources.WATCHED if self._asked_for.get(each, True)]
        self._reflectors = {each.kind: Reflector(self._access, each, feed, self._unknown.found) for each in watched}
        for reflector in self._reflectors.values():
            reflector.start()
        found: dict[str, list[Any]] = {}
        until = time.monotonic() + self._sync_s
        for kind, reflector in self._reflectors.items():
            first = reflector.first(max(0.0, until - time.monotonic()))
            if first is None:
                raise self._not_in_sync()
            found[kind] = [each.object for each in sorted(first, key=lambda each: resources.number(each.version))]
            self._given = max([self._given, *(resources.number(each.version) for each in first)])
        pods, nodes = found.pop(resources.POD.kind), found.pop(resources.NODE.kind)
        told = Listing(self._given, pods, nodes, found)
        return coscheduling_.listing(told) if self._coscheduling else told

    def watch(self, version: int, timeout_s: float) -> tuple[Sequence[Event], int]:
        """Changes since the last call, at most `feed.AT_ONCE`.

        Raises:
            WatchExpired: somebody else has listed or watched meanwhile.
        """
        if self._feed is None or version != self._given:
            raise WatchExpired("the watch goes on elsewhere; list again")
        events, reached = self._feed.take(timeout_s)
        self._given = max([self._given, reached, *(event.version for event in events)])
        if self._coscheduling:
            return coscheduling_.events(events, lambda key: self._known_group(key) is not None), self._given
        return events, self._given

    def _ask_for(self, *, groups: bool, queues: bool, coscheduling: bool) -> None:
        """Which of the kinds are listed and watched that not everybody has."""
        self._coscheduling = coscheduling
        self._asked_for = {
            resources.POD_GROUP: groups,
            resources.QUEUE: queues,
            resources.COSCHEDULING_GROUP: coscheduling,
        }

    def lead(
        self,
        epoch: int,
        holds: Callable[[], bool],
        profiles: Collection[str] = (),
        *,
        groups: bool = False,
        group_claims: bool = False,
        queues: bool = False,
        coscheduling: bool = False,
    ) -> None:
        """An API server knows no epochs: nothing is written in the background while the lease may have run out."""
        self._writer.holds = holds
        self._ask_for(groups=groups, queues=queues, coscheduling=coscheduling)
        self._unknown.profiles = profiles

    def stand_down(self) -> None:
        """End the watches and drop what waits to be written; `list` begins anew."""
        self._unknown.profiles = None
        self._stop_listening()
        self._writer.drop()

    def close(self) -> None:
        """End everything that goes on in the background; what waits to be written is dropped."""
        self._stop_listening()
        self._writer.close()
        self._recorder.close()
        self._many.close()
        self._calls.close()

    def drain(self, timeout_s: float, *, hurry: bool = False) -> bool:
        """Wait until what was reported, evicted and recorded has been sent; False when it is not in time."""
        until = time.monotonic() + timeout_s
        return self._writer.drain(timeout_s) and self._recorder.drain(max(0.0, until - time.monotonic()), hurry=hurry)

    def _stop_listening(self) -> None:
        if self._feed is not None:
            self._feed.close()
        for reflector in self._reflectors.values():
            reflector.stop()
        self._reflectors = {}

    def _not_in_sync(self) -> ClusterUnavailable:
        late = {kind: each.problem or "no answer yet" for kind, each in self._reflectors.items() if not each.synced}
        self._stop_listening()
        told = "; ".join(f"{kind}: {problem}" for kind, problem in late.items())
        return ClusterUnavailable(f"not everything could be read from {self._access.url} in time: {told}")

    def _known(self, key: PodKey) -> Pod | None:
        reflector = self._reflectors.get(resources.POD.kind)
        known = None if reflector is None else reflector.known.get(key)
        return known.object if known is not None and isinstance(known.object, Pod) else None

    def _known_group(self, key: str) -> Mapping[str, Any] | None:
        return self._known_other(resources.POD_GROUP, key)

    def _known_queue(self, key: str) -> Mapping[str, Any] | None:
        return self._known_other(resources.QUEUE, key)

    def _known_other(self, resource: resources.Resource, key: str) -> Mapping[str, Any] | None:
        reflector = self._reflectors.get(resource.kind)
        known = None if reflector is None else reflector.known.get(key)
        return known.object if known is not None and isinstance(known.object, Mapping) else None

    # -- reading ---------------------------------------------------------------------------------------------------

    def survey(self) -> Iterator[Sequence[Sighting]]:
        """Every node and pod as the watches have them: what is compared is whether all that they told was taken in."""
        for resource in (resources.NODE, resources.POD):
            reflector = self._reflectors.get(resource.kind)
            known = [] if reflector is None else list(reflector.known.values())
            for start in range(0, max(1, len(known)), SURVEYED_AT_ONCE):
                yield [_sighting(each) for each in known[start : start + SURVEYED_AT_ONCE]]

    def kubernetes_version(self) -> Version:
        """The API server's own version, or the one that it emulates.

        Raises:
            ClusterUnavailable: it cannot be read.
        """
        return version.ask(self._calls)

    def get_pods(self, keys: Sequence[PodKey]) -> Sequence[Pod | None]:
        """The pods as the API server has them now, read many at once.

        Raises:
            ClusterUnavailable: one of them cannot be read.
        """
        found: list[Pod | None] = []
        for key, looked in zip(keys, self._binder.look(keys), strict=True):
            pod = binds.decoded(looked)
            if pod is None and not (isinstance(looked, Answer) and looked.status == client.NOT_FOUND):
                raise ClusterUnavailable(f"pod {key} cannot be read: {client.told(looked)}")
            found.append(grouped(pod) if self._coscheduling and pod is not None else pod)
        return found

    def get_objects(self, kind: str, keys: Sequence[str]) -> Sequence[Mapping[str, Any] | None]:
        """Objects as the API server has them now; none of a kind that dsched does not know.

        Raises:
            ClusterUnavailable: one of them cannot be read.
        """
        resource = resources.BY_KIND.get(kind)
        if resource is None:
            return [None] * len(keys)
        found: list[Mapping[str, Any] | None] = []
        for key in keys:
            outcome = self._calls.make(Request("GET", resource.path(key)), PATIENCE_S)
            if isinstance(outcome, Answer) and outcome.status == 200:
                found.append(msgspec.json.decode(outcome.body, type=dict[str, Any]))
            elif isinstance(outcome, Answer) and outcome.status == client.NOT_FOUND:
                found.append(None)
            else:
                raise ClusterUnavailable(f"{kind.lower()} {key} cannot be read: {client.told(outcome)}")
        return found

    # -- writing ---------------------------------------------------------------------------------------------------

    def bind(self, bindings: Sequence[Binding]) -> Sequence[BindOutcome]:
        """Bind pods; see `dsched.cluster.kubernetes.bindings`. Whoever finds a pod bound records ``Scheduled``."""
        self._recorder.binding(len(bindings))
        outcomes = self._binder.bind(bindings)
        self._recorder.binding(len(bindings))
        found = zip(bindings, outcomes, strict=True)
        bound = [each for each, outcome in found if outcome.verdict is BindVerdict.BOUND]
        self._recorder.record([scheduled(each.key, each.uid, each.node, each.scheduler) for each in bound])
        return outcomes

    def bind_volumes(self, bindings: Sequence[ClaimBinding]) -> Sequence[str]:
        """Write the claim onto each volume; the controllers bind the claim."""
        return [self._volumes.bind(each) for each in bindings]

    def select_nodes(self, selections: Sequence[NodeSelection]) -> Sequence[str]:
        """Write the node onto each claim; a provisioner makes the volume."""
        return [self._volumes.select(each) for each in selections]

    def allocate_claims(self, writes: Sequence[ClaimWrite]) -> Sequence[str]:
        """Write claims; see `dsched.cluster.kubernetes.claims`."""
        return self._claims.allocate(writes)

    def release_claims(self, releases: Sequence[ClaimRelease]) -> Sequence[str]:
        """Give claims back."""
        return [self._claims.release(each) for each in releases]

    def create_claim(self, wanted: ExtendedClaim) -> CreatedClaim:
        """Make a claim, then name it in the pod's status."""
        return self._claims.create(wanted)

    def delete_claim(self, deletion: ClaimDeletion) -> str:
        """Take the finalizer off and delete the claim."""
        return self._claims.delete(deletion)

    def report(self, statuses: Sequence[SchedulingStatus]) -> None:
        """Write conditions and nominated nodes, in the background."""
        self._writer.report(statuses)

    def report_groups(self, statuses: Sequence[GroupStatus]) -> None:
        """Write conditions of pod groups, in the background; those of scheduler-plugins have none."""
        foreign = self._reflectors.get(resources.COSCHEDULING_GROUP.kind)
        if foreign is not None:
            statuses = [each for each in statuses if not self._is_of(foreign, each)]
        self._writer.report_groups(statuses)

    @staticmethod
    def _is_of(reflector: Reflector, status: GroupStatus) -> bool:
        known = reflector.known.get(status.key)
        return known is not None and known.uid == status.uid

    def report_queues(self, statuses: Mapping[str, QueueStatus]) -> None:
        """Write the status of queues, in the background."""
        self._writer.report_queues(statuses)

    def record(self, events: Sequence[PodEvent]) -> None:
        """Record events, in the background, as many as there is time for."""
        self._recorder.record(events)

    def delete_pods(self, pods: Sequence[tuple[PodKey, PodUid]], reason: str, message: str) -> None:
        """Delete pods in the background, after the promises reported before."""
        self._writer.evict(pods, reason, message)


_role: type[Cluster] = Kubernetes


def _sighting(known: resources.Known) -> Sighting:
    found = known.object
    if isinstance(found, Pod):
        return Sighting(known.key, known.uid, found.node_name, found.finished, found.deleting, known.version)
    node = found if isinstance(found, Node) else None
    return Sighting(known.key, known.uid, NO_NODE, False, False, known.version, node)
