"""Reads what the checks look at: everything once, then the suspects again.

The order matters. Everything: usage and reservations before the pods, so that whoever is charged while a node stays
unchanged is seen reserved or bound; the cluster's version after the objects, so that it covers what is missing, too;
the places after the objects. Suspects: how far the leader is before anything else, the places before the objects, so
that a pod that is seen pending had its place when that was looked up.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsched.clock import Clock
from dsched.cluster import keys, stored
from dsched.cluster.objects import Objects, RawPod
from dsched.cluster.standalone import Standalone
from dsched.errors import StateError
from dsched.framework.pod_info import PodInfo
from dsched.fsck.findings import Finding, Kind
from dsched.fsck.profiles import Profiles
from dsched.fsck.view import PODS, SeenNode, SeenPod, Told, View
from dsched.manifests import kinds
from dsched.model import quantity
from dsched.model.meta import NodeName, PodKey, PodUid, from_json
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.state import client, reservations, standings
from dsched.state.client import Store
from dsched.state.reservations import Reservation
from dsched.state.standings import Asked, Lookout, Standing

LISTS_AT_ONCE = 1000
_SCHEDULED = b"Normal Scheduled "
_MAX_AMOUNT = 2**63 - 1


@dataclass(slots=True)
class Suspects:
    """What to read again."""

    keys: set[PodKey] = field(default_factory=set)
    nodes: set[NodeName] = field(default_factory=set)
    uids: set[PodUid] = field(default_factory=set)


class Reader:
    """Reads one system.

    Every method raises RedisUnavailable while Redis does not answer.
    """

    def __init__(self, store: Store, clock: Clock, profiles: Profiles) -> None:
        self._store = store
        self._clock = clock
        self._profiles = profiles
        self._objects = Objects(store)
        self._cluster = Standalone(store, clock)
        self._lookout = Lookout(store)

    def everything(self) -> View:
        """All there is, in pieces."""
        usage = standings.read_node_usage(self._store)
        held, unreadable = _parsed(standings.read_held(self._store))
        pods = {PodKey(key.decode()): seen_pod(raw) for key, raw in self._objects.scan_pods() if raw[1]}
        nodes = (seen_node(json) for _, json in self._objects.scan(kinds.NODE))
        found = {node.name: node for node in nodes}
        version = self._version()
        told = self._told(pods.values())
        places = standings.read_standings(self._store)
        moment = standings.moment(self._store)
        return View(
            moment=moment,
            epoch=moment.epoch,
            version=version,
            now_ms=self._clock.now_ms(),
            schedulers=self._profiles.schedulers(moment.schedulers, _profiles_in(places)),
            pods=pods,
            nodes=found,
            told=told,
            usage=usage,
            standings=places,
            reservations=held,
            unreadable=unreadable,
        )

    def again(self, first: View, suspects: Suspects) -> View:
        """The suspects as they are now, judged with the schedulers that are known already."""
        moment = standings.moment(self._store)
        looked = self._lookout.look(_asked(first, suspects))
        texts = {} if looked is None else looked.reservations
        held, unreadable = _parsed(texts)
        wanted = sorted(suspects.keys)
        found = zip(wanted, self._objects.get_pods(wanted), strict=True)
        pods = {key: seen_pod(raw) for key, raw in found if raw is not None}
        names = sorted(suspects.nodes | {each.node for each in held.values()})
        nodes = (seen_node(json) for json in self._node_json(names) if json is not None)
        return View(
            moment=moment,
            epoch=moment.epoch if looked is None else looked.epoch,
            version=self._version(),
            now_ms=self._clock.now_ms(),
            schedulers=first.schedulers,
            pods=pods,
            nodes={node.name: node for node in nodes},
            told=self._told(pods.values()),
            usage=standings.read_node_usage(self._store, names),
            standings={} if looked is None else looked.pods,
            reservations=held,
            unreadable=unreadable,
        )

    def _version(self) -> int:
        return self._cluster.newest_version()

    def _node_json(self, names: Sequence[NodeName]) -> list[bytes | None]:
        found: list[bytes | None] = []
        for batch in stored.batches(names):
            found += self._objects.get_json(kinds.NODE, batch)
        return found

    def _told(self, pods: Iterable[SeenPod]) -> dict[PodKey, Told]:
        """What the events of scheduled pods say, of those that have events."""
        wanted = [pod.key for pod in pods if pod.scheduled]
        found: dict[PodKey, Told] = {}
        for start in range(0, len(wanted), LISTS_AT_ONCE):
            batch = wanted[start : start + LISTS_AT_ONCE]
            with client.reachable(self._store):
                pipe: Any = self._store.redis.pipeline(transaction=False)
                for key in batch:
                    pipe.lrange(self._store.key(keys.EVENTS.name + key), 0, -1)
                replies = pipe.execute()
            found.update({key: _counted(lines) for key, lines in zip(batch, replies, strict=True) if lines})
        return found


def suspects(first: View, findings: Iterable[Finding]) -> Suspects:
    """What these findings are about: the pods, the nodes with everything on them, and reservations."""
    found = Suspects()
    for finding in findings:
        if finding.kind is Kind.POD:
            found.keys.add(PodKey(finding.subject))
        elif finding.kind is Kind.UID:
            found.uids.add(PodUid(finding.subject))
        elif finding.kind is Kind.NODE:
            name = NodeName(finding.subject)
            found.nodes.add(name)
            found.keys.update(resident.pod.key for resident in first.residents.get(name, ()))
            found.keys.update(each.key for each in first.reservations.values() if each.node == name)
    return found


def seen_pod(raw: RawPod) -> SeenPod:
    """A pod from what is stored of it.

    Raises:
        msgspec.DecodeError: it is not JSON.
    """
    value, state = from_json(raw[0], Pod), stored.pod_state(raw[1])
    return SeenPod(
        key=value.key,
        uid=state.uid,
        version=int(state.version),
        applied=int(value.metadata.resource_version),
        node=NodeName(state.bound_to),
        by_manifest=value.spec.node_name != "",
        bound_ms=int(state.bound_ms),
        finished=value.finished,
        deleting=value.deleting,
        scheduler=value.spec.scheduler_name,
        demand=PodInfo(value).demand,
    )


def seen_node(json: bytes) -> SeenNode:
    """A node from what is stored of it.

    Raises:
        msgspec.DecodeError: it is not JSON.
    """
    value = from_json(json, Node)
    given = value.status.allocatable.items()
    amounts = {name: min(quantity.amount(name, quantity.nano(text)), _MAX_AMOUNT) for name, text in given}
    return SeenNode(value.name, int(value.metadata.resource_version), {PODS: 0, **amounts})


def _counted(lines: Sequence[bytes]) -> Told:
    """Lines are ``TYPE REASON COUNT FIRST-MS LAST-MS MESSAGE``."""
    counts = [int(line.split(b" ", 3)[2]) for line in lines if line.startswith(_SCHEDULED)]
    return Told(len(lines), sum(counts))


def _parsed(texts: Mapping[PodUid, str]) -> tuple[dict[PodUid, Reservation], dict[PodUid, str]]:
    found: dict[PodUid, Reservation] = {}
    unreadable: dict[PodUid, str] = {}
    for uid, text in texts.items():
        try:
            found[uid] = reservations.parse(uid, text)
        except StateError:
            unreadable[uid] = text
    return found, unreadable


def _asked(first: View, suspects: Suspects) -> list[Asked]:
    """Each pod with the places in the active queue and the uids that it was seen with."""
    asked = [Asked(PodKey(""), uids=sorted(suspects.uids))] if suspects.uids else []
    for key in sorted(suspects.keys):
        turns = [member.text for member in first.standings.get(key, Standing()).members if " " in member.text]
        uids = [each.uid for each in first.reserved_keys.get(key, ())]
        pod = first.pods.get(key)
        asked.append(Asked(key, turns, uids if pod is None else [*uids, pod.uid]))
    return asked


def _profiles_in(places: Mapping[PodKey, Standing]) -> set[str]:
    return {standing.record["profile"] for standing in places.values() if "profile" in standing.record}
