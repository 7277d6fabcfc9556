"""A sequence of what happens in a cluster, gone through by a whole leader, and what it said and did after each step.

The leader decides one pod or group at a time and hears of what has come of it before the next one, as kube-scheduler
does here: of a batch it hears afterwards, on purpose.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence as Many
from typing import Any

from msgspec.structs import replace

from dsched.cluster.interface import Binding, BindOutcome, BindVerdict, Change, Event, PodEvent, SchedulingStatus
from dsched.cluster.standalone.claim_controller import FAILED_CREATION
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.leader.sources import Heard
from dsched.manifests import kinds
from dsched.model.messages import BindRequest
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.volumes import SELECTED_NODE, ClaimBinding, NodeSelection
from dsched.plugins import profiles
from dsched.plugins.dynamic_resources.objects import EXTENDED_CLAIM
from dsched.state.queue import QueueName
from dsched.state.results import Outcome
from tests.integration.leader.binders.working import binder_of
from tests.integration.leader.rig import Led, Rig, SteppedBinder
from tests.parity import sequence_counts
from tests.parity.sequence_devices import FAILED, READY
from tests.parity.sequence_extenders import Extenders
from tests.parity.sequence_volumes import FAILS, PROVISIONING, made_for
from tests.parity.sequences import ENDING, LISTS, STARTS

Json = dict[str, Any]
Moment = dict[str, Any]

_PLACES = {"gated": "waiting", "unschedulable": "waiting"}
"""Upstream has one queue for both."""
REFUSAL = "this bind is refused"
"""What the API server says to a bind that it refuses."""


class Working(SteppedBinder):
    """A binder that runs the plugins of the binding cycle."""

    def __init__(self, rig: Rig, cluster: StandaloneCluster) -> None:
        super().__init__(rig.store, cluster)
        self._worker = binder_of(rig, cluster)

    def work(self, request: BindRequest) -> list[Outcome]:
        outcomes: list[Outcome] = self._worker.run(request)
        self._worker.report(request, outcomes)
        return outcomes


class Telling(StandaloneCluster):
    """A cluster that takes down what is said and done.

    Attributes:
        after: how many seconds of the step have gone.
        told: since somebody took it.
        refuse: how many binds of a pod will be refused.
        nominated: by uid, the nodes that pods were told one after the other.
        epoch: of the leader.
    """

    def __init__(self, rig: Rig, *, graceful: bool) -> None:
        super().__init__(rig.store, rig.clock)
        self._rig, self._graceful = rig, graceful
        self.after = 0
        self.told: list[Json] = []
        self.refuse: dict[str, int] = {}
        self.nominated: dict[PodUid, list[NodeName]] = {}
        self.epoch = 0

    def report(self, statuses: Many[SchedulingStatus]) -> None:
        super().report(statuses)
        for pod in self.get_pods([each.key for each in statuses]):
            if pod is not None:
                self.nominated.setdefault(pod.uid, []).append(NodeName(pod.status.nominated_node_name))

    def record(self, events: Many[PodEvent]) -> None:
        for each in events:
            if each.reason == FAILED_CREATION:
                continue  # not the scheduler's to say: that part of the controllers is in the sequence itself
            self._tell("event", each.key, reason=each.reason, message=each.message)
        super().record(events)

    def bind(self, bindings: Many[Binding]) -> Many[BindOutcome]:
        refused = [each for each in bindings if self.refuse.get(each.key)]
        found = list(super().bind([each for each in bindings if each not in refused]))
        for each in refused:
            self.refuse[each.key] -= 1
            self._tell("refuse", each.key, node=each.node)
        taken = iter(found)
        outcomes = [
            BindOutcome(each.key, each.uid, BindVerdict.NOT_NOW, message=REFUSAL) if each in refused else next(taken)
            for each in bindings
        ]
        for each in found:
            if each.verdict is BindVerdict.BOUND:
                self._tell("bind", each.key, node=each.node)
                text = f"Successfully assigned {each.key} to {each.node}"
                self._tell("event", each.key, reason="Scheduled", message=text)
                self._start(each.key)
        return outcomes

    def bind_for(self, question: Json) -> str:
        """Binds for an extender; says why not."""
        key = PodKey(f"{question['PodNamespace']}/{question['PodName']}")
        (outcome,) = self.bind([Binding(key, PodUid(question["PodUID"]), NodeName(question["Node"]), self.epoch)])
        return "" if outcome.verdict is BindVerdict.BOUND else outcome.message

    def _start(self, key: PodKey) -> None:
        """As the kubelet does."""
        (pod,) = self.get_objects("Pod", [key])
        assert pod is not None
        starts = pod["metadata"]["annotations"][STARTS]
        self._rig.apply({**pod, "status": {**pod.get("status", {}), "startTime": starts}})

    def select_nodes(self, selections: Many[NodeSelection]) -> Many[str]:
        problems = super().select_nodes(selections)
        for each, problem in zip(selections, problems, strict=True):
            if not problem:
                self._provide(each)
        return problems

    def _provide(self, selection: NodeSelection) -> None:
        """As whoever makes volumes does, at once: it is made, or the node taken off its claim again."""
        (claim,) = self.get_objects("PersistentVolumeClaim", [selection.claim])
        assert claim is not None
        if claim["spec"].get("volumeName"):
            return
        metadata = claim["metadata"]
        if metadata["annotations"].get(PROVISIONING) == FAILS:
            notes = {name: note for name, note in metadata["annotations"].items() if name != SELECTED_NODE}
            after = {**claim, "metadata": {**metadata, "annotations": notes}}
            assert self._volumes._put(kinds.PERSISTENT_VOLUME_CLAIM, selection.claim, claim, after)
        elif (volume := made_for(claim, selection.node)) is not None:
            self._rig.apply(volume)
            binding = ClaimBinding(selection.claim, selection.claim_uid, volume["metadata"]["name"], "")
            assert self.bind_volumes([binding]) == [""]

    def delete_pods(self, pods: Many[tuple[PodKey, PodUid]], reason: str, message: str) -> None:
        for key, _ in pods:
            self._tell("delete", key)
            if self._graceful:
                self._end(key, reason, message)
        if not self._graceful:
            super().delete_pods(pods, reason, message)

    def _end(self, key: PodKey, reason: str, message: str) -> None:
        (pod,) = self.get_objects("Pod", [key])
        assert pod is not None
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        status = {**pod["status"], "conditions": [*pod["status"].get("conditions", ()), condition]}
        self._rig.apply({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": ENDING}, "status": status})

    def _tell(self, what: str, key: str, *, node: str = "", reason: str = "", message: str = "") -> None:
        said = {"node": node, "reason": reason, "message": message}
        self.told.append({"after": self.after, "what": what, "key": key, **said})


def moments(rig: Rig, sequence: Json, extenders: Extenders | None = None) -> list[Moment]:
    """What there is after each step of a sequence."""
    if sequence["config"]:
        text = json.dumps(sequence["config"])
        rig.configuration = profiles.parsed(text, "test.yaml", rig.plugins, rig.configuration.features)
    cluster = rig.cluster = Telling(rig, graceful=sequence["graceful"])
    rig.binder = Working(rig, cluster)
    led, found, before = rig.elect(), [], sequence_counts.now()
    cluster.epoch = led.epoch
    if extenders is not None:
        extenders.bind = cluster.bind_for
    claims = rig.configuration.features.enabled("DRAWorkloadResourceClaims")
    cluster.lead(led.epoch, lambda: True, group_claims=claims)
    led.take_over()
    _one_by_one(led)
    for step in sequence["steps"]:
        cluster.after = 0
        cluster.refuse |= step["refuse"]
        for each in step["gone"]:
            rig._applier.delete(LISTS[each["kind"]], [each["key"]])
        comes = [_kept(cluster, each["object"]) for each in step["set"] if not _in_the_way(cluster, each["object"])]
        if comes:
            rig.apply(*comes)
        _name(cluster, step["names"])
        _promise(cluster, led, step["nominate"])
        _drive(cluster, rig, step["drivers"])
        led.run()
        for _ in range(step["advance"]):
            cluster.after += 1
            rig.clock.advance(1)
            led.run()
        found.append({**_moment(cluster, led), "counted": sequence_counts.since(before)})
    return found


def _in_the_way(cluster: Telling, wanted: Json) -> bool:
    """Whether there is a claim of that name still, another one: then it cannot be made."""
    metadata = wanted["metadata"]
    if wanted["kind"] != "ResourceClaim":
        return False
    (found,) = cluster.get_objects("ResourceClaim", [f"{metadata['namespace']}/{metadata['name']}"])
    return found is not None and found["metadata"]["uid"] != metadata["uid"]


def _kept(cluster: Telling, wanted: Json) -> Json:
    """A pod that runs keeps its conditions, as that another one is to have its room, unless its kubelet says others."""
    status = wanted.get("status", {})
    if wanted["kind"] != "Pod" or "nodeName" not in wanted["spec"] or "containerStatuses" in status:
        return wanted
    metadata = wanted["metadata"]
    (found,) = cluster.get_objects("Pod", [f"{metadata['namespace']}/{metadata['name']}"])
    if found is None or found["metadata"]["uid"] != metadata["uid"]:
        return wanted
    return {**wanted, "status": {**status, "conditions": found.get("status", {}).get("conditions", [])}}


def _name(cluster: Telling, names: Mapping[str, list[Json]]) -> None:
    """Groups are told of the claims that were made for them."""
    for key, says in names.items():
        (group,) = cluster.get_objects("PodGroup", [key])
        if group is not None:
            assert not cluster._claims.make_for_groups([(group, {"resourceClaimStatuses": says}, [])])


def _promise(cluster: Telling, led: Led, nominate: Mapping[str, str]) -> None:
    """Somebody else says which nodes pods that wait are to get. An API server tells the leader, as it told what the
    leader wrote itself."""
    for key, node in nominate.items():
        (pod,) = cluster.get_pods([PodKey(key)])
        if pod is None or pod.node_name:
            continue
        cluster.report([SchedulingStatus(pod.key, pod.uid, reason="", message="", nominated=NodeName(node))])
        led.hear()
        for each in cluster.nominated.pop(pod.uid):
            told = replace(pod, status=replace(pod.status, nominated_node_name=each))
            event = Event(Change.MODIFIED, "Pod", pod.key, led.term.heard, pod.uid, told)
            led.term.hear([Heard([event], led.term.heard)])


def _drive(cluster: Telling, rig: Rig, what: str) -> None:
    """Drivers say of devices that pods wait for that a condition of theirs holds."""
    kinds_of = {READY: "bindingConditions", FAILED: "bindingFailureConditions"}
    for claim in cluster.list().others.get("ResourceClaim", ()) if what else ():
        status = claim.get("status") or {}
        told = list(status.get("devices") or ())
        known = [(each["pool"], each["device"]) for each in told]
        for each in (status.get("allocation") or {"devices": {"results": ()}})["devices"]["results"]:
            says = each.get(kinds_of[what]) or ()
            if says and (each["pool"], each["device"]) not in known:
                device = {name: each[name] for name in ("driver", "pool", "device")}
                holds = [_says(kind, "True", "Told", "so it is") for kind in says]
                told.append({**device, "conditions": holds})
        if told:
            rig.apply({**claim, "status": {**status, "devices": told}})


def _one_by_one(led: Led) -> None:
    batches = led.term.batches
    batches.size = 1
    batches._resize = batches._pop_ahead = lambda *_: None


def _moment(cluster: Telling, led: Led) -> Moment:
    listed = cluster.list()
    pods: Json = {}
    for pod in listed.pods:
        says = [_says(each.type, each.status, each.reason, each.message) for each in pod.status.conditions]
        said = {"nominated": pod.status.nominated_node_name, "says": sorted(says, key=lambda each: str(each["type"]))}
        extended = pod.status.extended_resource_claim_status
        mappings = () if extended is None else extended.request_mappings
        named = [f"{each.container_name} {each.resource_name} {each.request_name}" for each in mappings]
        pods[pod.key] = {"extended": named} | ({"node": pod.node_name} if pod.node_name else said)
    groups = {
        f"default/{group['metadata']['name']}": [
            _says(each["type"], each["status"], each["reason"], each["message"])
            for each in group.get("status", {}).get("conditions", ())
        ]
        for group in listed.others.get("PodGroup", ())
    }
    told, cluster.told = cluster.told, []
    claims = {f"default/{_known_as(each)}": _uses(each) for each in listed.others.get("ResourceClaim", ())}
    return {"told": told, "pods": pods, "groups": groups, "queue": _queue(led), "claims": claims}


def _known_as(claim: Mapping[str, Any]) -> str:
    """Its name, but where the scheduler has made it: then nobody knows that beforehand."""
    metadata = claim["metadata"]
    if not _is_made(claim):
        return str(metadata["name"])
    return "extended resources of " + next(each["name"] for each in metadata["ownerReferences"] if each["controller"])


def _is_made(claim: Mapping[str, Any]) -> bool:
    return (claim["metadata"].get("annotations") or {}).get(EXTENDED_CLAIM) == "true"


def _uses(claim: Mapping[str, Any]) -> Json:
    status = claim.get("status") or {}
    requests = claim["spec"]["devices"].get("requests") or () if _is_made(claim) else ()
    given = (status.get("allocation") or {"devices": {"results": ()}})["devices"]["results"]
    return {
        "devices": [f"{each['pool']}/{each['device']}" for each in given],
        "for": sorted(each["name"] for each in status.get("reservedFor") or ()),
        "asks": [
            f"{each['name']} {each['exactly'].get('count', 1)} {each['exactly']['deviceClassName']}"
            for each in requests
        ],
    }


def _says(*words: str) -> Json:
    return dict(zip(("type", "status", "reason", "message"), words, strict=True))


def _queue(led: Led) -> dict[str, str]:
    """Where pods stand, those of groups with these; who is being bound has left it."""
    pending, found = led.term.memory.pending, {}
    for pod in pending:
        if pod.place is QueueName.RESERVED:
            continue
        group = pending.group(pod.group) if pod.group else None
        place = str(pod.place if group is None else group.place)
        found[str(pod.key)] = "alone" if pod.group and group is None else _PLACES.get(place, place)
    return found


def differences(theirs: Many[Moment], ours: Many[Moment]) -> list[str]:
    """What differs at the first moment at which anything does; nothing where all is the same. Of what was said in the
    same second the order does not count."""
    for number, (there, here) in enumerate(zip(theirs, ours, strict=True)):
        found = []
        for part in ("pods", "groups", "queue", "claims"):
            one, other = (each[part] if part == "claims" else _comparable(each[part]) for each in (there, here))
            found += [
                f"moment {number}, {part} {key}: kube-scheduler {one.get(key)}, dsched {other.get(key)}"
                for key in sorted(one.keys() | other.keys())
                if one.get(key) != other.get(key)
            ]
        one, other = _counted(there), _counted(here)
        found += [f"moment {number}, told by kube-scheduler alone: {each}" for each in sorted(one - other)]
        found += [f"moment {number}, told by dsched alone: {each}" for each in sorted(other - one)]
        if found:
            return found
    return []


def _comparable(part: Json) -> Json:
    """What is left out is empty; a pod that is bound says nothing any more."""
    found = {}
    for key, each in part.items():
        if isinstance(each, dict):
            says = [{**one, "message": _certain(one["message"])} for one in each.get("says", [])]
            said = {"nominated": each.get("nominated", ""), "says": says}
            each = {
                "extended": each.get("extended", []),
                **({"node": each["node"]} if each.get("node") else said),
            }
        found[key] = each
    return found


def _counted(moment: Moment) -> Counter[tuple[Any, ...]]:
    fields = ("after", "what", "key", "node", "reason", "message")
    told = ({**each, "message": _certain(each.get("message", ""))} for each in moment["told"])
    return Counter(tuple(each.get(field, "") for field in fields) for each in told)


def _certain(message: str) -> str:
    """Without how the scheduler has called claims that it made, which nobody knows beforehand, and whether it was the
    clock or a look at the claim that told that its devices take too long, which are up to chance in kube-scheduler."""
    message = re.sub(r"(-extended-resources)-\w{5}\b", r"\1", message)
    return re.sub(r"(device binding timeout): (claim=\S+|context deadline exceeded)", r"\1", message)
