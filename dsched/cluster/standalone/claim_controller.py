"""The claims that nobody asks for by name, in standalone mode, where no controller manager sees to them.

It makes the claims of pods from templates, takes pods that have ended or are gone out of claims, gives the devices back
that nobody uses any more, and deletes claims whose pod is gone::

    pod with a template ──make──► claim, named in the pod's status ──(scheduler)──► allocated, reserved for the pod
                                                  pod over or gone: released, deallocated, deleted ◄──┘

*Who runs it*: the leader, in the thread that watches, under its epoch: `StandaloneCluster.list` begins it,
`StandaloneCluster.watch` keeps it going. What another process watches does nothing. While nobody leads, claims are
neither made nor given back; the next leader makes up for it when it lists.

*Who may be killed*: anybody. A pod's claims and their names in its status are one script; a release, a deletion are one
compare-and-set. A leader that went on without its lease is refused by each of these (StaleEpoch).

Left out of what the controller manager does: pods that name their node themselves are not put into claims that they
share, for no scheduler was there to look whether they may be used there.

Source: pkg/controller/resourceclaim/controller.go ``syncPod``, ``handleClaim``, ``syncClaim``, ``isPodDone``.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dsched.cluster import claims, sound
from dsched.cluster.interface import Change, Event, Listing, PodEvent
from dsched.cluster.standalone.claims import GONE, ClaimWriter, FoundPod
from dsched.cluster.standalone.objects import Objects, read_object
from dsched.cluster.standalone.stored import Object
from dsched.log import logger
from dsched.manifests import kinds
from dsched.model.meta import PodKey, PodUid
from dsched.model.pod import FAILED, SUCCEEDED, Pod

_log = logger(__name__)

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation: for which of the pod's claims a claim was made (``PodResourceClaimAnnotation``)."""
FAILED_CREATION = "FailedResourceClaimCreation"
ATTEMPTS = 5
"""How often a pod that changes meanwhile, or whose claims' names are taken, is looked at again at once."""
CLAIM, TEMPLATE = kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE


class Ended(NamedTuple):
    """A request to take pods that are over out of a claim."""

    key: str
    pods: frozenset[str]


class ClaimController:
    """Sees to claims under one epoch. Every method raises StaleEpoch once another process leads.

    Args:
        record: records events.
    """

    def __init__(self, objects: Objects, writer: ClaimWriter, record: Callable[[Sequence[PodEvent]], None]) -> None:
        self._objects = objects
        self._writer = writer
        self._record = record
        self._turn = threading.Lock()
        self._users: dict[str, set[str]] = {}
        """Uid of a pod to the claims that it may use or owns."""
        self._known: dict[str, frozenset[str]] = {}
        """Claim to the pods that it has to do with."""
        self._living: set[str] = set()
        """Uids of pods with claims that are not over."""
        self._waiting: dict[str, set[PodKey]] = {}
        """Template that is not there to the pods that need it."""

    def begin(self, listing: Listing) -> None:
        """See to everything there is."""
        with self._turn:
            self._users, self._known, self._living, self._waiting = {}, {}, set(), {}
            wanting = [pod.key for pod in listing.pods if self._meet(pod)]
            found = listing.others.get(CLAIM.name, ())
            for claim in found:
                self._note(_key(claim), claim)
            self._settle(self._ended(found))
            self._make(wanting)

    def heard(self, events: Sequence[Event]) -> None:
        """See to what has changed."""
        with self._turn:
            wanting: dict[PodKey, None] = {}
            over: set[str] = set()
            changed: dict[str, Mapping[str, Any]] = {}
            for event in events:
                if event.kind == kinds.POD.name:
                    over |= self._pod(event, wanting)
                elif event.kind == CLAIM.name:
                    self._claim(event, changed)
                elif event.kind == TEMPLATE.name and event.change is not Change.DELETED:
                    wanting |= dict.fromkeys(self._waiting.pop(event.key, ()))
            self._settle([*self._of(over), *self._ended(changed.values())])
            self._make(list(wanting))

    # -- what happens ----------------------------------------------------------------------------------------------

    def _pod(self, event: Event, wanting: dict[PodKey, None]) -> set[str]:
        """Take a change of a pod in; returns its uid if it is over."""
        key = PodKey(event.key)
        if event.change is Change.DELETED:
            self._living.discard(event.uid)
            wanting.pop(key, None)
            return {event.uid}
        if isinstance(event.object, Pod):
            if self._meet(event.object):
                wanting[key] = None
            return {event.uid} if is_over(event.object) else set()
        return set()

    def _meet(self, pod: Pod) -> bool:
        """Whether a pod needs a claim that is not there."""
        if not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
            return False
        if is_over(pod) or pod.deleting:
            self._living.discard(pod.uid)
            return False
        self._living.add(pod.uid)
        named = {each.name for each in pod.status.resource_claim_statuses}
        wanted = (each for each in pod.spec.resource_claims if each.resource_claim_template_name is not None)
        return any(each.name not in named for each in wanted)

    def _claim(self, event: Event, changed: dict[str, Mapping[str, Any]]) -> None:
        if isinstance(event.object, Mapping):
            self._note(event.key, event.object)
            changed[event.key] = event.object
        elif event.change is Change.DELETED:
            self._note(event.key, {})
            changed.pop(event.key, None)

    def _note(self, key: str, claim: Mapping[str, Any]) -> None:
        pods = frozenset(uid for uid, _ in pods_of(claim))
        for uid in self._known.pop(key, frozenset()) - pods:
            self._users[uid].discard(key)
            if not self._users[uid]:
                del self._users[uid]
        if pods:
            self._known[key] = pods
        for uid in pods:
            self._users.setdefault(uid, set()).add(key)

    # -- releasing -------------------------------------------------------------------------------------------------

    def _of(self, over: Iterable[str]) -> Iterator[Ended]:
        """What is to be done about pods that are over."""
        for uid in over:
            for key in self._users.get(uid, ()):
                yield Ended(key, frozenset([uid]))

    def _ended(self, found: Iterable[Mapping[str, Any]]) -> list[Ended]:
        """What is to be done about claims: those of pods that are over, and those that are being deleted. A pod that is
        not known to live is looked up: it may be younger than the listing."""
        suspects: dict[PodKey, set[str]] = {}
        leaving: list[Ended] = []
        for claim in found:
            namespace = claim["metadata"].get("namespace", "default")
            for uid, name in pods_of(claim):
                if uid not in self._living:
                    suspects.setdefault(PodKey(f"{namespace}/{name}"), set()).add(uid)
            if claim["metadata"].get("deletionTimestamp"):
                leaving.append(Ended(_key(claim), frozenset()))
        over: set[str] = set()
        for key, pod in zip(suspects, self._writer.look_at_pods(list(suspects)), strict=True):
            over |= suspects[key] - ({pod.state.uid} if pod is not None and _uses(pod) else set())
        return [*self._of(over), *leaving]

    def _settle(self, ended: Sequence[Ended]) -> None:
        answers = self._writer.change(ended, lambda claim, request: None if claim is None else settled(claim, request))
        for request, problem in zip(ended, answers, strict=True):
            if problem:
                _log.error(
                    "claim not released", extra={"action": "release_claim", "claim": request.key, "error": problem}
                )

    # -- making ----------------------------------------------------------------------------------------------------

    def _make(self, wanting: Sequence[PodKey]) -> None:
        """Make the claims of pods; one that changes all the time is heard of again."""
        for attempt in range(ATTEMPTS):
            if not wanting:
                return
            pods = [each for each in self._writer.look_at_pods(wanting) if each is not None and _lives(each)]
            templates = self._templates(pods)
            made: list[tuple[FoundPod, Object, Sequence[Object]]] = []
            for pod in pods:
                found = self._wanted(pod, templates, attempt)
                if found is not None:
                    made.append((pod, *found))
            refused = self._writer.make(made)
            for pod, _, new in made:
                if pod.key not in refused:
                    for claim in new:
                        self._note(_key(claim), claim)
            wanting = [PodKey(key) for key in refused]

    def _templates(self, pods: Sequence[FoundPod]) -> dict[str, Object]:
        wanted = {
            TEMPLATE.key(_namespace(pod), each["resourceClaimTemplateName"])
            for pod in pods
            for each in pod.value["spec"].get("resourceClaims") or ()
            if each.get("resourceClaimTemplateName")
        }
        keys = sorted(wanted)
        found: dict[str, Object] = {}
        for key, json in zip(keys, self._objects.get_json(TEMPLATE, keys), strict=True):
            read = None if json is None else sound.attempt(read_object, (TEMPLATE, json), lambda error: None)
            if read is not None:
                found[key] = dict(read)
        return found

    def _wanted(
        self, pod: FoundPod, templates: Mapping[str, Object], attempt: int
    ) -> tuple[Object, list[Object]] | None:
        """What is new in a pod's status, and the claims to be made; None where nothing is, or a template is missing."""
        statuses = (pod.value.get("status") or {}).get("resourceClaimStatuses") or ()
        named = {each["name"]: each for each in statuses}
        new: list[Object] = []
        before = len(named)
        for each in pod.value["spec"].get("resourceClaims") or ():
            template_name, name = each.get("resourceClaimTemplateName"), each["name"]
            if not template_name or name in named:
                continue
            there = self._made_before(pod, name)
            template = templates.get(key := TEMPLATE.key(_namespace(pod), template_name))
            if there is None and template is None:
                self._miss(pod, name, key)
                return None
            if there is None and template is not None:
                new.append(from_template(pod, name, template, attempt))
                there = new[-1]["metadata"]["name"]
            named[name] = {"name": name, "resourceClaimName": there}
        if len(named) == before:
            return None
        return {"resourceClaimStatuses": [named[name] for name in sorted(named)]}, new

    def _made_before(self, pod: FoundPod, name: str) -> str | None:
        """The claim that was made for this purpose, where the pod's status has lost its name."""
        keys = sorted(self._users.get(pod.state.uid, ()))
        for key, json in zip(keys, self._objects.get_json(CLAIM, keys), strict=True):
            claim: Object = {"metadata": {}} if json is None else msgspec.json.decode(json)
            purpose = (claim["metadata"].get("annotations") or {}).get(POD_CLAIM)
            if purpose == name and claims.is_for(claim, PodUid(pod.state.uid)):
                return key.partition("/")[2]
        return None

    def _miss(self, pod: FoundPod, name: str, template: str) -> None:
        self._waiting.setdefault(template, set()).add(pod.key)
        short = template.partition("/")[2]
        message = (
            f'PodResourceClaim {name}: resource claim template "{short}": resourceclaimtemplate.resource.k8s.io '
            f'"{short}" not found'
        )
        self._record([PodEvent(pod.key, PodUid(pod.state.uid), "Warning", FAILED_CREATION, message)])


def is_over(pod: Pod) -> bool:
    """Whether a pod uses nothing any more (``isPodDone``)."""
    return pod.finished or (pod.deleting and not pod.node_name)


def pods_of(claim: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Uid and name of the pods that may use a claim, and of the one that owns it; one may come twice."""
    for each in (claim.get("status") or {}).get("reservedFor") or ():
        if each.get("resource") == "pods" and not each.get("apiGroup"):
            yield each.get("uid", ""), each.get("name", "")
    for each in (claim.get("metadata") or {}).get("ownerReferences") or ():
        if _is_owning_pod(each):
            yield each.get("uid", ""), each.get("name", "")


def settled(claim: Object, ended: Ended) -> Object:
    """The claim without pods that are over. With nobody left it has no devices and no finalizer, which wakes who waits
    for devices; and is gone after that, where it was to be deleted or belonged to one of them."""
    metadata, status = claim["metadata"], dict(claim.get("status") or {})
    users = status.get("reservedFor") or []
    left = [each for each in users if each.get("uid") not in ended.pods]
    leaving = metadata.get("deletionTimestamp")
    owner = next((each for each in metadata.get("ownerReferences") or () if _is_owning_pod(each)), None)
    over = bool(leaving) or (owner is not None and owner.get("uid") in ended.pods)
    if not left and over and not status.get("allocation"):
        freed = claims.without_finalizer(claim)
        return freed if freed["metadata"].get("finalizers") else GONE
    if left or not (over or len(left) < len(users)):
        return claim if len(left) == len(users) else {**claim, "status": {**status, "reservedFor": left}}
    freed = claims.without_finalizer(claim)
    if freed == claim and not over:  # somebody else has given it its devices
        return {**claim, "status": {**status, "reservedFor": left}}
    return {**freed, "status": claims.without_devices(status)}


def from_template(pod: FoundPod, name: str, template: Object, attempt: int) -> Object:
    """The claim for a pod's purpose ``name``, without uid.

    Args:
        attempt: makes another name, should this one be taken.
    """
    spec, metadata = template.get("spec") or {}, pod.value["metadata"]
    given = spec.get("metadata") or {}
    prefix = generate_name(metadata["name"], name)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": pod.state.uid, "controller": True}
    own: Object = {
        "name": claims.generated_name(prefix, f"{pod.state.uid} {name} {attempt}"),
        "generateName": prefix,
        "namespace": _namespace(pod),
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM: name},
        "ownerReferences": [owner],
    }
    if given.get("labels"):
        own["labels"] = given["labels"]
    return {
        "apiVersion": CLAIM.api_version,
        "kind": CLAIM.name,
        "metadata": own,
        "spec": spec.get("spec") or {},
    }


def generate_name(pod: str, name: str) -> str:
    """What the name of a claim begins with; long ones are cut in proportion, so that both can be recognised."""
    whole = f"{pod}-{name}-"
    most = claims.NAME_AT_MOST - claims.SUFFIX_LENGTH - 1
    if len(whole) <= most:
        return whole
    return f"{pod[: len(pod) * most // len(whole)]}-{name[: len(name) * most // len(whole)]}"


def _is_owning_pod(owner: Mapping[str, Any]) -> bool:
    return bool(owner.get("controller")) and owner.get("apiVersion") == "v1" and owner.get("kind") == "Pod"


def _uses(pod: FoundPod) -> bool:
    """Whether a pod may use its claims still, as `is_over` has it."""
    return pod.state.phase not in (SUCCEEDED, FAILED) and (pod.state.deleting == "-" or bool(pod.state.bound_to))


def _lives(pod: FoundPod) -> bool:
    return pod.state.phase not in (SUCCEEDED, FAILED) and pod.state.deleting == "-"


def _namespace(pod: FoundPod) -> str:
    return pod.key.partition("/")[0]


def _key(claim: Mapping[str, Any]) -> str:
    return CLAIM.key(claim["metadata"].get("namespace", "default"), claim["metadata"]["name"])
