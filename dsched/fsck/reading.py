"""Reads what the checks look at: everything once, then the suspects again.

The order matters. Everything: usage and reservations before the pods, so that whoever is charged while a node stays
unchanged is seen reserved or bound; the cluster's version after the objects, so that it covers what is missing, too;
the places after the objects. Suspects: how far the leader is before anything else, the places before the objects, so
that a pod that is seen pending had its place when that was looked up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dsched.clock import Clock
from dsched.errors import StateError
from dsched.fsck.findings import Finding, Invariant, Kind
from dsched.fsck.objects import Objects
from dsched.fsck.profiles import Profiles
from dsched.fsck.view import SeenDevices, View
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import entity_key, group_of
from dsched.state import devices, keys, reservations, standings
from dsched.state.client import Store
from dsched.state.reservations import Reservation
from dsched.state.standings import Asked, Lookout, Standing


@dataclass(slots=True)
class Suspects:
    """What to read again.

    Attributes:
        devices: all claims, and all that reserved pods hold of devices.
        everything: whatever there is.
    """

    keys: set[PodKey] = field(default_factory=set)
    nodes: set[NodeName] = field(default_factory=set)
    uids: set[PodUid] = field(default_factory=set)
    devices: bool = False
    everything: bool = False


class Reader:
    """Reads one system.

    Every method raises RedisUnavailable while Redis does not answer, and what its `Objects` raise.
    """

    def __init__(self, store: Store, clock: Clock, profiles: Profiles, objects: Objects) -> None:
        self._store = store
        self._clock = clock
        self._profiles = profiles
        self._objects = objects
        self._lookout = Lookout(store)

    def everything(self) -> View:
        """All there is, in pieces."""
        usage = standings.read_node_usage(self._store)
        quota = standings.read_node_usage(self._store, key=keys.QUOTA)
        ledger = devices.read_ledger(self._store)
        held, unreadable = _parsed(standings.read_held(self._store))
        seen = self._objects.everything()
        queues, default_queues = self._objects.queues() if quota else ({}, {})
        places = standings.read_standings(self._store)
        moment = standings.moment(self._store)
        return View(
            moment=moment,
            epoch=moment.epoch,
            objects=seen,
            now_ms=self._clock.now_ms(),
            schedulers=self._profiles.schedulers(moment.schedulers, _profiles_in(places)),
            resizes=self._profiles.resizes,
            usage=usage,
            quota=quota,
            queues=queues,
            default_queues=default_queues,
            standings=places,
            reservations=held,
            unreadable=unreadable,
            devices=SeenDevices(self._objects.claims(), ledger, self._objects.sees_to_claims),
        )

    def again(self, first: View, suspects: Suspects) -> View:
        """The suspects as they are now, judged with the schedulers that are known already."""
        moment = standings.moment(self._store)
        if suspects.everything:
            return replace(self.everything(), moment=moment, schedulers=first.schedulers)
        ledger = devices.read_ledger(self._store) if suspects.devices else devices.Ledger()
        claims = self._objects.claims() if suspects.devices else {}
        looked = self._lookout.look(_asked(first, suspects))
        texts = {} if looked is None else looked.reservations
        held, unreadable = _parsed(texts)
        names = sorted(suspects.nodes | {each.node for each in held.values()})
        pods = [key for key in sorted(suspects.keys) if not group_of(key)]
        seen = self._objects.some(pods, names)
        return View(
            moment=moment,
            epoch=moment.epoch if looked is None else looked.epoch,
            objects=seen,
            now_ms=self._clock.now_ms(),
            schedulers=first.schedulers,
            resizes=first.resizes,
            usage=standings.read_node_usage(self._store, names),
            standings={} if looked is None else looked.pods,
            reservations=held,
            unreadable=unreadable,
            devices=SeenDevices(claims, ledger, self._objects.sees_to_claims),
        )


def suspects(first: View, findings: Sequence[Finding]) -> Suspects:
    """What these findings are about: the pods with their whole groups, the nodes with everything on them, and
    reservations."""
    found = Suspects()
    for finding in findings:
        found.devices = found.devices or finding.invariant is Invariant.DEVICES
        found.everything = found.everything or finding.invariant is Invariant.LIMITS
        if finding.kind is Kind.POD:
            found.keys.add(PodKey(finding.subject))
        elif finding.kind is Kind.UID:
            found.uids.add(PodUid(finding.subject))
        elif finding.kind is Kind.NODE:
            name = NodeName(finding.subject)
            found.nodes.add(name)
            found.keys.update(resident.pod.key for resident in first.residents.get(name, ()))
            found.keys.update(each.key for each in first.reservations.values() if each.node == name)
    found.keys |= _whole(first, found.keys | {entity for each in findings if (entity := _entity(each))})
    return found


def _entity(finding: Finding) -> PodKey | None:
    return entity_key(finding.subject) if finding.kind is Kind.GROUP else None


def _whole(first: View, keys: set[PodKey]) -> set[PodKey]:
    """What belongs together with pods, or pod groups: the groups and all of their pods."""
    groups = {group_of(key) or first.standings.get(key, Standing()).record.get("group", "") for key in keys} - {""}
    if not groups:
        return set()
    found = {entity_key(group) for group in groups}
    found |= {pod.key for group in groups for pod in first.grouped.get(group, ())}
    return found | {key for key, standing in first.standings.items() if standing.record.get("group") in groups}


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
        pod = first.objects.pods.get(key)
        asked.append(Asked(key, turns, uids if pod is None else [*uids, pod.uid]))
    return asked


def _profiles_in(places: Mapping[PodKey, Standing]) -> set[str]:
    return {standing.record["profile"] for standing in places.values() if "profile" in standing.record}
