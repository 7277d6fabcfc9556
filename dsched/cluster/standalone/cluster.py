"""The standalone cluster: nodes, pods and the rest in Redis, with the watch log and the compare-and-set bind of an API
server. Keys are listed in `dsched.cluster.standalone.keys`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from dsched.clock import Clock, SystemClock
from dsched.cluster import coscheduling as coscheduling_
from dsched.cluster import queues, sound
from dsched.cluster.interface import (
    Binding,
    BindOutcome,
    BindVerdict,
    Change,
    Cluster,
    Event,
    GroupStatus,
    Listing,
    Object,
    PodEvent,
    SchedulingStatus,
    Sighting,
)
from dsched.cluster.standalone import keys, stored
from dsched.cluster.standalone.claim_controller import ClaimController
from dsched.cluster.standalone.claims import ClaimWriter
from dsched.cluster.standalone.objects import Objects, read_node, read_object, read_pod, readable
from dsched.cluster.standalone.statuses import StatusWriter, group_conditions
from dsched.cluster.standalone.volumes import VolumeWriter
from dsched.cluster.standalone.watch_log import Entry, WatchLog
from dsched.errors import ClusterError, RedisUnavailable
from dsched.manifests import kinds
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease, ClaimWrite, CreatedClaim, ExtendedClaim
from dsched.model.coscheduling import grouped
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.node import Node
from dsched.model.pod import FAILED, SUCCEEDED, Pod
from dsched.model.queues import QueueStatus
from dsched.model.volumes import ClaimBinding, NodeSelection
from dsched.state import client, pieces
from dsched.state import keys as state_keys
from dsched.state.client import Store
from dsched.state.scripts import Script

if TYPE_CHECKING:
    from dsched.cluster.unknown_fields import StandalonePods

NODES_SURVEYED_AT_ONCE = 200
LOG_LENGTH = 200_000
"""Entries that the watch log keeps by default."""

_BIND_KEYS = state_keys.names(
    keys.VERSION,
    keys.LOG,
    keys.STATE,
    keys.STATUS,
    keys.objects(kinds.NODE),
    state_keys.RESERVATIONS,
    keys.EVENTS,
)
_REPORT_KEYS = state_keys.names(keys.VERSION, keys.LOG, keys.STATE, keys.STATUS, state_keys.EPOCH)
_RECORD_KEYS = state_keys.names(keys.STATE, keys.EVENTS)
DELETE_KEYS = state_keys.names(
    keys.VERSION, keys.LOG, keys.objects(kinds.POD), keys.STATE, keys.STATUS, keys.EVENTS, state_keys.EPOCH
)

_VERDICTS = {
    b"bound": BindVerdict.BOUND,
    b"conflict": BindVerdict.CONFLICT,
    b"gone": BindVerdict.GONE,
    b"lost": BindVerdict.RESERVATION_LOST,
    b"refused": BindVerdict.REFUSED,
    b"held": BindVerdict.NOT_NOW,
}


class StandaloneCluster:
    """A `Cluster` whose objects are kept in Redis.

    Every method but `bind` raises RedisUnavailable while Redis does not answer.

    Args:
        log_length: about how many changes a watcher may be behind.
        coscheduling: whether labels of scheduler-plugins are read as groups.
    """

    kind = "standalone"
    checks_reservations = True
    tells_binds = True

    def __init__(
        self,
        store: Store,
        clock: Clock | None = None,
        log_length: int = LOG_LENGTH,
        coscheduling: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._log_length = log_length
        self._coscheduling = coscheduling
        self._log = WatchLog(store)
        self._objects = Objects(store)
        self._bind = Script(store, "pods_bind", stored.SCRIPTS)
        self._report = Script(store, "pods_report", stored.SCRIPTS)
        self._record = Script(store, "events_record", stored.SCRIPTS)
        self._delete = Script(store, "pods_delete", stored.SCRIPTS)
        self._volumes = VolumeWriter(store, log_length)
        self._claims = ClaimWriter(store, self._clock, log_length)
        self._groups = StatusWriter(store, kinds.POD_GROUP, log_length)
        self._queues = StatusWriter(store, kinds.QUEUE, log_length)
        self._epoch = ""
        self._controller: ClaimController | None = None
        self._unknown: StandalonePods | None = None

    def list(self) -> Listing:
        """Everything there is, least recently changed first; ``others`` by kind.

        It is read in pieces: changes made meanwhile may show or not, the watch repeats them.
        """
        version = self._log.now()
        pods = {pod.key: pod for pod in self._listed_pods()}
        if self._unknown is not None:
            self._unknown.listed(pods.keys())
        seen = ((key, readable("Node", key, read_node, json)) for key, json in self._objects.scan(kinds.NODE))
        nodes = {key: node for key, node in seen if node is not None}
        others = {kind.name: self._others(kind) for kind in kinds.ALL if kind not in (kinds.POD, kinds.NODE)}
        found = Listing(version, sorted(pods.values(), key=_version), sorted(nodes.values(), key=_version), others)
        if self._controller is not None:
            self._controller.begin(found)
        return coscheduling_.listing(found) if self._coscheduling else found

    def kubernetes_version(self) -> None:
        """There is no Kubernetes."""

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
        """Scripts that report and delete raise StaleEpoch from the moment that another process leads. Claims are seen
        to with the next `list` and every `watch` after it: see `dsched.cluster.standalone.claim_controller`."""
        self._epoch = str(epoch)
        self._coscheduling = coscheduling
        self._claims = ClaimWriter(self._store, self._clock, self._log_length, self._epoch)
        own = ClaimWriter(self._store, self._clock, self._log_length, self._epoch)  # another thread's
        self._controller = ClaimController(self._objects, own, self.record, groups=group_claims)
        if self._unknown is None:
            from dsched.cluster.unknown_fields import StandalonePods  # commands do without

            self._unknown = StandalonePods(self.record, self._clock)
        self._unknown.lead(profiles)

    def stand_down(self) -> None:
        """Nothing goes on in the background; claims are the next leader's."""
        self._controller = None
        if self._unknown is not None:
            self._unknown.lead(None)

    def newest_version(self) -> int:
        """The version of the newest change, to watch from without listing; 0 before the first."""
        return self._log.now()

    def watch(self, version: int, timeout_s: float) -> tuple[Sequence[Event], int]:
        """Changes after ``version``, at most 2,000 a call.

        Raises:
            WatchExpired: the log has been trimmed beyond ``version``, or was lost and begins anew.
        """
        controller = self._controller
        entries = self._log.read(version, timeout_s)
        events = [_event(entry) for entry in entries]
        if self._unknown is not None:
            _tell_unknown(self._unknown, entries, events)
        if controller is not None:
            controller.heard(events)
        if self._coscheduling:
            events = list(coscheduling_.events(events))
        return events, entries[-1][0] if entries else version

    def survey(self) -> Iterator[Sequence[Sighting]]:
        """Every node, then every pod by its state line alone."""
        nodes = self._objects.scan(kinds.NODE)
        while piece := list(islice(nodes, NODES_SURVEYED_AT_ONCE)):
            read = [readable("Node", key, read_node, json) for key, json in piece]
            yield [_sighting(node) for node in read if node is not None]
        for states in self._objects.scan_states():
            yield [
                Sighting(
                    key,
                    state.uid,
                    NodeName(state.bound_to),
                    state.phase in (SUCCEEDED, FAILED),
                    state.deleting == "deleting",
                    state.version,
                )
                for key, state in states
            ]

    def get_pods(self, keys: Sequence[PodKey]) -> Sequence[Pod | None]:
        """The pods as they are now."""
        read = zip(keys, self._objects.get_pods(keys), strict=True)
        pods = [readable("Pod", key.encode(), read_pod, *raw) if raw else None for key, raw in read]
        return [grouped(pod) if self._coscheduling and pod is not None else pod for pod in pods]

    def bind(self, bindings: Sequence[Binding]) -> Sequence[BindOutcome]:
        """Bind pods, each with its event ``Scheduled``, one script call a batch.

        Asked in this order: is the pod there (GONE), is it bound (BOUND, CONFLICT), does it stay (GONE), does the
        reservation stand (RESERVATION_LOST), does the cluster take it (REFUSED). UNKNOWN when Redis did not answer.
        """
        outcomes: list[BindOutcome] = []
        for batch in pieces.cut(bindings):
            packed = pieces.packed([[each.key, each.uid, each.node, str(each.epoch)] for each in batch])
            try:
                with client.reachable(self._store):
                    replies = self._bind(_BIND_KEYS, [self._clock.now_ms(), self._log_length, packed])
            except RedisUnavailable as error:
                rest = bindings[len(outcomes) :]
                return outcomes + [_outcome(each, BindVerdict.UNKNOWN, str(error)) for each in rest]
            outcomes += [_replied(each, reply) for each, reply in zip(batch, replies, strict=True)]
        return outcomes

    def get_objects(self, kind: str, keys: Sequence[str]) -> Sequence[Mapping[str, Any] | None]:
        """Objects as they are now.

        A kind that standalone mode does not keep has none.
        """
        known = kinds.BY_NAME.get(kind)
        if known is None:
            return [None] * len(keys)
        if known is kinds.POD:
            read = zip(keys, self._objects.get_pods(keys), strict=True)
            return [readable(kind, key.encode(), stored.shown, *raw) if raw else None for key, raw in read]
        jsons = zip(keys, self._objects.get_json(known, keys), strict=True)
        return [readable(kind, key.encode(), read_object, known, json) if json else None for key, json in jsons]

    def bind_volumes(self, bindings: Sequence[ClaimBinding]) -> Sequence[str]:
        """Bind volumes and claims to each other: there is no controller that would see to the claim's side."""
        return [self._volumes.bind(each) for each in bindings]

    def select_nodes(self, selections: Sequence[NodeSelection]) -> Sequence[str]:
        """Write the nodes. Nobody makes volumes here: see `dsched.cluster.standalone.volumes`."""
        return [self._volumes.select(each) for each in selections]

    def allocate_claims(self, writes: Sequence[ClaimWrite]) -> Sequence[str]:
        """Write claims; see `dsched.cluster.standalone.claims`."""
        return self._claims.allocate(writes)

    def release_claims(self, releases: Sequence[ClaimRelease]) -> Sequence[str]:
        """Give claims back."""
        return self._claims.release(releases)

    def create_claim(self, wanted: ExtendedClaim) -> CreatedClaim:
        """Make a claim and name it in the pod's status, both at once."""
        return self._claims.create(wanted)

    def delete_claim(self, deletion: ClaimDeletion) -> str:
        """Delete a claim, at once."""
        return self._claims.delete(deletion)

    def report(self, statuses: Sequence[SchedulingStatus]) -> None:
        """Write conditions and nominated nodes where they differ from what is written."""
        now = stored.rfc3339(self._clock.now_ms())
        for batch in pieces.cut(statuses):
            packed = pieces.packed([_reported(each) for each in batch])
            with client.reachable(self._store):
                self._report(_REPORT_KEYS, [self._epoch, now, self._log_length, packed])

    def report_groups(self, statuses: Sequence[GroupStatus]) -> None:
        """Write conditions of pod groups."""
        self._groups.report(group_conditions(statuses, stored.rfc3339(self._clock.now_ms())), self._epoch)

    def report_queues(self, statuses: Mapping[str, QueueStatus]) -> None:
        """Write the status of queues where it has changed."""
        said = {name: partial(queues.told, status=status) for name, status in statuses.items()}
        self._queues.report(said, self._epoch)

    def record(self, events: Sequence[PodEvent]) -> None:
        """Record events; the newest 20 of a pod are kept, for an hour after the last one.

        Raises:
            ClusterError: a type or reason is not one word.
        """
        for event in events:
            if len(event.type.split()) != 1 or len(event.reason.split()) != 1:
                raise ClusterError(
                    f"event of pod {event.key}: type {event.type!r}, reason {event.reason!r}: one word each"
                )
        for batch in pieces.cut(events):
            packed = pieces.packed([[each.key, each.uid, each.type, each.reason, each.message] for each in batch])
            with client.reachable(self._store):
                self._record(_RECORD_KEYS, [self._clock.now_ms(), packed])

    def delete_pods(self, pods: Sequence[tuple[PodKey, PodUid]], reason: str, message: str) -> None:
        """Delete pods that still have the UID, at once: nothing runs here that would have to be stopped first.

        With the pod its conditions and events go; ``reason`` stays in the watch log, for people.
        """
        for batch in pieces.cut(pods):
            with client.reachable(self._store):
                self._delete(DELETE_KEYS, [self._epoch, self._log_length, reason, pieces.packed(list(batch))])

    def drain(self, timeout_s: float, *, hurry: bool = False) -> bool:
        """Nothing waits: all is written before the calls return."""
        return True

    def _listed_pods(self) -> Iterator[Pod]:
        """Every pod, in no order; one may come twice, the newest last."""
        heard = None if self._unknown is None else self._unknown.heard
        for raw, pod in self._objects.read_pods():
            if heard is not None:
                heard(raw[0], pod)
            yield pod

    def _others(self, kind: kinds.Kind) -> Sequence[Mapping[str, object]]:
        read = {key: readable(kind.name, key, read_object, kind, json) for key, json in self._objects.scan(kind)}
        found = [value for value in read.values() if value is not None]
        return sorted(found, key=lambda value: int(value["metadata"]["resourceVersion"]))


def _version(found: Pod | Node) -> int:
    text = found.metadata.resource_version
    return int(text) if text.isdigit() else 0


def _outcome(binding: Binding, verdict: BindVerdict, message: str = "", node: str = "") -> BindOutcome:
    return BindOutcome(binding.key, binding.uid, verdict, NodeName(node), message)


def _replied(binding: Binding, reply: bytes) -> BindOutcome:
    word, _, rest = reply.partition(b" ")
    verdict, text = _VERDICTS[word], rest.decode()
    if verdict is BindVerdict.BOUND:
        return _outcome(binding, verdict, node=binding.node)
    if verdict is BindVerdict.CONFLICT:
        return _outcome(binding, verdict, f"the pod is bound to {text}", node=text)
    return _outcome(binding, verdict, text)


def _reported(status: SchedulingStatus) -> tuple[str, str, str, bytes]:
    nominated = "" if status.nominated is None else f"={status.nominated}"
    fields = msgspec.json.encode({"reason": status.reason, "message": status.message})
    return status.key, status.uid, nominated, fields[1:-1] if status.reason else b""


_CHANGES = {change.value.encode(): change for change in Change}


def _event(entry: Entry) -> Event:
    version, fields = entry
    kind, raw = fields[b"kind"].decode(), fields.get(b"object")
    found: Object | None = None
    if raw is not None:
        found = readable(
            kind, fields[b"key"], *((_pod, raw, fields) if kind == kinds.POD.name else (_object, kind, raw))
        )
    return Event(
        change=_CHANGES[fields[b"change"]],
        kind=kind,
        key=fields[b"key"].decode(),
        version=version,
        uid=fields[b"uid"].decode(),
        object=found,
        node=NodeName(fields.get(b"node", b"").decode()),
    )


def _tell_unknown(unknown: "StandalonePods", entries: Sequence[Entry], events: Sequence[Event]) -> None:
    for (_, fields), event in zip(entries, events, strict=True):
        if event.kind != kinds.POD.name:
            continue
        if isinstance(event.object, Pod):
            unknown.heard(fields[b"object"], event.object)
        elif event.change is Change.DELETED:
            unknown.gone(PodKey(event.key))


def _sighting(node: Node) -> Sighting:
    meta = node.metadata
    return Sighting(node.name, meta.uid, NO_NODE, False, False, meta.resource_version, node)


def _pod(raw: bytes, fields: Mapping[bytes, bytes]) -> Pod:
    found = stored.applied(raw)
    node = fields.get(b"node")
    return sound.pod(stored.on_node(found, node.decode()) if node else stored.with_status(found, fields.get(b"status")))


def _object(kind: str, raw: bytes) -> Object:
    return read_node(raw) if kind == kinds.NODE.name else read_object(kinds.BY_NAME[kind], raw)


_role: type[Cluster] = StandaloneCluster
