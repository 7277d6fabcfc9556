"""The claims that nobody asks for by name, in standalone mode, where no controller manager sees to them.

It makes the claims of pods, and of pod groups, from templates, takes pods that have ended or are gone out of claims,
gives the devices back that nobody uses any more, and deletes claims whose pod is gone::

    pod with a template ──make──► claim, named in the pod's status ──(scheduler)──► allocated, reserved for the pod
                                                  pod over or gone: released, deallocated, deleted ◄──┘

A claim of a pod group is named in the group's status, then in that of each of its pods that names it in the same way.
It is the group's until the group and all of its pods are gone (`dsched.cluster.standalone.group_claims`).

*Who runs it*: the leader, in the thread that watches, under its epoch: `StandaloneCluster.list` begins it,
`StandaloneCluster.watch` keeps it going. What another process watches does nothing. While nobody leads, claims are
neither made nor given back; the next leader makes up for it when it lists.

*Who may be killed*: anybody. A pod's or a group's claims and their names in its status are one script; a release, a
deletion are one compare-and-set. A leader that went on without its lease is refused by each of these (StaleEpoch).

Left out of what the controller manager does: pods that name their node themselves are not put into claims that they
share, for no scheduler was there to look whether they may be used there.

Source: pkg/controller/resourceclaim/controller.go ``syncPod``, ``handleClaim``, ``syncPodGroup``,
``handlePodGroupClaim``, ``syncClaim``, ``isPodDone``.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dsched.cluster import claims, sound
from dsched.cluster.interface import Change, Event, Listing, PodEvent
from dsched.cluster.standalone.claims import GONE, ClaimWriter, FoundPod
from dsched.cluster.standalone.group_claims import Groups, named, shares, templates
from dsched.cluster.standalone.objects import Objects, read_object
from dsched.cluster.standalone.stored import Object
from dsched.log import logger
from dsched.manifests import kinds
from dsched.model.meta import PodKey, PodUid, key_of
from dsched.model.pod import FAILED, SUCCEEDED, Pod
from dsched.model.pod_groups import API_GROUP, POD_GROUP, RESOURCE

_log = logger(__name__)

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation: for which of the pod's claims a claim was made (``PodResourceClaimAnnotation``)."""
FAILED_CREATION = "FailedResourceClaimCreation"
ATTEMPTS = 5
"""How often a pod that changes meanwhile, or whose claims' names are taken, is looked at again at once."""
CLAIM, TEMPLATE, GROUP = kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE, kinds.POD_GROUP


class Ended(NamedTuple):
    """A request to take pods and groups that are over, by uid, out of a claim."""

    key: str
    users: frozenset[str]


class User(NamedTuple):
    """A pod, or a pod group, that may use a claim."""

    uid: str
    name: str
    group: bool = False


class Owner(NamedTuple):
    """A pod, or a pod group, for which a claim is made."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str


class ClaimController:
    """Sees to claims under one epoch. Every method raises StaleEpoch once another process leads.

    Args:
        record: records events.
        groups: claims may be a pod group's (gate ``DRAWorkloadResourceClaims``).
    """

    def __init__(
        self,
        objects: Objects,
        writer: ClaimWriter,
        record: Callable[[Sequence[PodEvent]], None],
        *,
        groups: bool = False,
    ) -> None:
        self._objects = objects
        self._writer = writer
        self._record = record
        self._turn = threading.Lock()
        self._users: dict[str, set[str]] = {}
        """Uid of a pod or a group to the claims that it may use or owns."""
        self._known: dict[str, frozenset[str]] = {}
        """Claim to the pods and groups that it has to do with."""
        self._living: set[str] = set()
        """Uids of pods with claims that are not over."""
        self._waiting: dict[str, set[PodKey]] = {}
        """Template that is not there to the pods that need it."""
        self._groups = Groups() if groups else None
        self._groups_waiting: dict[str, set[str]] = {}
        """The same of groups."""

    def begin(self, listing: Listing) -> None:
        """See to everything there is."""
        with self._turn:
            self._users, self._known, self._living, self._waiting = {}, {}, set(), {}
            groups: dict[str, None] = {}
            if self._groups is not None:
                self._groups, self._groups_waiting = Groups(), {}
                for group in listing.others.get(GROUP.name, ()):
                    self._come(self._groups, key_of(group), group, groups)
            wanting = [pod.key for pod in listing.pods if self._meet(pod)]
            found = listing.others.get(CLAIM.name, ())
            for claim in found:
                self._note(_key(claim), claim)
            self._settle(self._ended(found))
            self._make_for_groups(list(groups))
            self._make(wanting)

    def heard(self, events: Sequence[Event]) -> None:
        """See to what has changed."""
        with self._turn:
            wanting: dict[PodKey, None] = {}
            groups: dict[str, None] = {}
            over: set[str] = set()
            changed: dict[str, Mapping[str, Any]] = {}
            for event in events:
                if event.kind == kinds.POD.name:
                    over |= self._pod(event, wanting)
                elif event.kind == CLAIM.name:
                    self._claim(event, changed)
                elif event.kind == GROUP.name and self._groups is not None:
                    over |= self._group(self._groups, event, wanting, groups)
                elif event.kind == TEMPLATE.name and event.change is not Change.DELETED:
                    wanting |= dict.fromkeys(self._waiting.pop(event.key, ()))
                    groups |= dict.fromkeys(self._groups_waiting.pop(event.key, ()))
            self._settle([*self._of(over), *self._ended(changed.values())])
            self._make_for_groups(list(groups))
            self._make(list(wanting))

    # -- what happens ----------------------------------------------------------------------------------------------

    def _pod(self, event: Event, wanting: dict[PodKey, None]) -> set[str]:
        """Take a change of a pod in; returns its uid if it is over."""
        key = PodKey(event.key)
        if event.change is Change.DELETED:
            self._living.discard(event.uid)
            wanting.pop(key, None)
            return {event.uid} | self._left(event.uid)
        if isinstance(event.object, Pod):
            if self._meet(event.object):
                wanting[key] = None
            return {event.uid} | self._left(event.uid) if is_over(event.object) else set()
        return set()

    def _left(self, uid: str) -> set[str]:
        return set() if self._groups is None else self._groups.left(uid)

    def _group(self, known: Groups, event: Event, wanting: dict[PodKey, None], groups: dict[str, None]) -> set[str]:
        """Take a change of a pod group in; returns its uid if it is over, with its pods."""
        if event.change is Change.DELETED:
            self._living.discard(event.uid)
            groups.pop(event.key, None)
            return known.gone(event.key, event.uid)
        if isinstance(event.object, Mapping):
            wanting |= dict.fromkeys(self._come(known, event.key, event.object, groups))
        return set()

    def _come(self, known: Groups, key: str, group: Mapping[str, Any], groups: dict[str, None]) -> set[PodKey]:
        """A group is there, or has changed; returns its pods that waited for that."""
        self._living.add(group["metadata"].get("uid", ""))
        found = known.come(key, group)
        if known.wants(key):
            groups[key] = None
        return found

    def _meet(self, pod: Pod) -> bool:
        """Whether a pod needs a claim that is not there."""
        if not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
            return False
        if is_over(pod) or pod.deleting:
            self._living.discard(pod.uid)
            return False
        self._living.add(pod.uid)
        if self._groups is not None:
            self._groups.joined(pod)
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
        users = frozenset(user.uid for user in users_of(claim))
        for uid in self._known.pop(key, frozenset()) - users:
            self._users[uid].discard(key)
            if not self._users[uid]:
                del self._users[uid]
        if users:
            self._known[key] = users
        for uid in users:
            self._users.setdefault(uid, set()).add(key)

    # -- releasing -------------------------------------------------------------------------------------------------

    def _of(self, over: Iterable[str]) -> Iterator[Ended]:
        """What is to be done about pods and groups that are over."""
        for uid in over:
            for key in self._users.get(uid, ()):
                yield Ended(key, frozenset([uid]))

    def _ended(self, found: Iterable[Mapping[str, Any]]) -> list[Ended]:
        """What is to be done about claims: those of pods and groups that are over, and those that are being deleted.
        Who is not known to live is looked up: it may be younger than the listing."""
        suspects: dict[PodKey, set[str]] = {}
        groups: dict[tuple[str, str], None] = {}
        leaving: list[Ended] = []
        for claim in found:
            namespace = claim["metadata"].get("namespace", "default")
            for user in users_of(claim):
                if user.uid not in self._living and user.group:
                    groups[f"{namespace}/{user.name}", user.uid] = None
                elif user.uid not in self._living:
                    suspects.setdefault(PodKey(f"{namespace}/{user.name}"), set()).add(user.uid)
            if claim["metadata"].get("deletionTimestamp"):
                leaving.append(Ended(_key(claim), frozenset()))
        over = self._groups_over(list(groups))
        for key, pod in zip(suspects, self._writer.look_at_pods(list(suspects)), strict=True):
            over |= suspects[key] - ({pod.state.uid} if pod is not None and _uses(pod) else set())
        return [*self._of(over), *leaving]

    def _groups_over(self, suspects: Sequence[tuple[str, str]]) -> set[str]:
        """The uids of those groups, by key and uid, that use claims no more."""
        if self._groups is None:
            return set()
        there = {
            key: group["metadata"]["uid"] for key, group in self._read(GROUP, [key for key, _ in suspects]).items()
        }
        return self._groups.over([(key, uid) for key, uid in suspects if there.get(key) != uid])

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

    def _make_for_groups(self, wanting: Sequence[str]) -> None:
        """Make the claims of pod groups, as `_make` does for pods."""
        for attempt in range(ATTEMPTS):
            if not wanting:
                return
            groups = self._read(GROUP, wanting)
            wanted = {
                TEMPLATE.key(key.partition("/")[0], name) for key in groups for name in templates(groups[key]).values()
            }
            found = self._read(TEMPLATE, sorted(wanted))
            made: list[tuple[Object, Object, Sequence[Object]]] = []
            for group in groups.values():
                new = self._wanted_by_group(group, found, attempt)
                if new is not None:
                    made.append((group, *new))
            refused = self._writer.make_for_groups(made)
            for group, _, claims_made in made:
                if key_of(group) not in refused:
                    for claim in claims_made:
                        self._note(_key(claim), claim)
            wanting = sorted(refused)

    def _wanted_by_group(
        self, group: Object, found: Mapping[str, Object], attempt: int
    ) -> tuple[Object, list[Object]] | None:
        """What is new in a group's status, and the claims to be made; None where nothing is."""
        metadata = group["metadata"]
        owner = Owner(GROUP, metadata["namespace"], metadata["name"], metadata["uid"])
        names, new = named(group), list[Object]()
        before = len(names)
        for name, template_name in templates(group).items():
            if name in names:
                continue
            there = self._made_before(owner.uid, name)
            template = found.get(key := TEMPLATE.key(owner.namespace, template_name))
            if there is None and template is None:
                self._groups_waiting.setdefault(key, set()).add(key_of(group))
                _log.warning(
                    "claim not made", extra={"action": "make_claim", "podgroup": key_of(group), "template": key}
                )
                continue
            if there is None and template is not None:
                new.append(from_template(owner, name, template, attempt))
                there = new[-1]["metadata"]["name"]
            names[name] = there
        if len(names) == before:
            return None
        statuses = [
            {"name": name, **({"resourceClaimName": names[name]} if names[name] else {})} for name in sorted(names)
        ]
        return {"resourceClaimStatuses": statuses}, new

    def _templates(self, pods: Sequence[FoundPod]) -> dict[str, Object]:
        wanted = {
            TEMPLATE.key(_namespace(pod), each["resourceClaimTemplateName"])
            for pod in pods
            for each in pod.value["spec"].get("resourceClaims") or ()
            if each.get("resourceClaimTemplateName")
        }
        return self._read(TEMPLATE, sorted(wanted))

    def _read(self, kind: kinds.Kind, keys: Sequence[str]) -> dict[str, Object]:
        """Those of some objects that are there and can be read."""
        found: dict[str, Object] = {}
        for key, json in zip(keys, self._objects.get_json(kind, keys), strict=True):
            read = None if json is None else sound.attempt(read_object, (kind, json), lambda error: None)
            if read is not None:
                found[key] = dict(read)
        return found

    def _wanted(
        self, pod: FoundPod, templates: Mapping[str, Object], attempt: int
    ) -> tuple[Object, list[Object]] | None:
        """What is new in a pod's status, and the claims to be made; None where nothing is, or a template is missing."""
        statuses = (pod.value.get("status") or {}).get("resourceClaimStatuses") or ()
        names = {each["name"]: each for each in statuses}
        new: list[Object] = []
        before = len(names)
        group = self._group_of(pod)
        for each in pod.value["spec"].get("resourceClaims") or ():
            template_name, name = each.get("resourceClaimTemplateName"), each["name"]
            if not template_name or name in names:
                continue
            if self._groups is not None and isinstance(group, Mapping) and shares(group, each):
                if (of_group := named(group).get(name)) is not None:
                    names[name] = {"name": name, "resourceClaimName": of_group}
                else:
                    self._groups.wait(key_of(group), pod.key)
                continue
            if self._groups is not None and isinstance(group, str):
                self._groups.wait(group, pod.key)
                return None
            there = self._made_before(pod.state.uid, name)
            template = templates.get(key := TEMPLATE.key(_namespace(pod), template_name))
            if there is None and template is None:
                self._miss(pod, name, key)
                return None
            if there is None and template is not None:
                owner = Owner(kinds.POD, _namespace(pod), pod.value["metadata"]["name"], pod.state.uid)
                new.append(from_template(owner, name, template, attempt))
                there = new[-1]["metadata"]["name"]
            names[name] = {"name": name, "resourceClaimName": there}
        if len(names) == before:
            return None
        return {"resourceClaimStatuses": [names[name] for name in sorted(names)]}, new

    def _group_of(self, pod: FoundPod) -> Mapping[str, Any] | str | None:
        """The pod's group, its key where it is not there, None where there is none that counts."""
        name = (pod.value["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if self._groups is None or not name:
            return None
        key = GROUP.key(_namespace(pod), name)
        return self._groups.get(key) or key

    def _made_before(self, uid: str, name: str) -> str | None:
        """The claim that was made for this purpose, where the status of its pod or group has lost its name."""
        keys = sorted(self._users.get(uid, ()))
        for key, json in zip(keys, self._objects.get_json(CLAIM, keys), strict=True):
            claim: Object = {"metadata": {}} if json is None else msgspec.json.decode(json)
            purpose = (claim["metadata"].get("annotations") or {}).get(POD_CLAIM)
            if purpose == name and claims.is_for(claim, PodUid(uid)):
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


def users_of(claim: Mapping[str, Any]) -> Iterator[User]:
    """The pods and groups that may use a claim, and the one that owns it; one may come twice."""
    for each in (claim.get("status") or {}).get("reservedFor") or ():
        kind = each.get("apiGroup") or "", each.get("resource")
        if kind in (("", "pods"), (API_GROUP, RESOURCE)):
            yield User(each.get("uid", ""), each.get("name", ""), kind != ("", "pods"))
    for each in (claim.get("metadata") or {}).get("ownerReferences") or ():
        if _is_owner(each):
            yield User(each.get("uid", ""), each.get("name", ""), each.get("kind") == POD_GROUP)


def settled(claim: Object, ended: Ended) -> Object:
    """The claim without pods and groups that are over. With nobody left it has no devices and no finalizer, which wakes
    who waits for devices; and is gone after that, where it was to be deleted or belonged to one of them."""
    metadata, status = claim["metadata"], dict(claim.get("status") or {})
    users = status.get("reservedFor") or []
    left = [each for each in users if each.get("uid") not in ended.users]
    leaving = metadata.get("deletionTimestamp")
    owner = next((each for each in metadata.get("ownerReferences") or () if _is_owner(each)), None)
    over = bool(leaving) or (owner is not None and owner.get("uid") in ended.users)
    if not left and over and not status.get("allocation"):
        freed = claims.without_finalizer(claim)
        return freed if freed["metadata"].get("finalizers") else GONE
    if left or not (over or len(left) < len(users)):
        return claim if len(left) == len(users) else {**claim, "status": {**status, "reservedFor": left}}
    freed = claims.without_finalizer(claim)
    if freed == claim and not over:  # somebody else has given it its devices
        return {**claim, "status": {**status, "reservedFor": left}}
    return {**freed, "status": claims.without_devices(status)}


def from_template(owner: Owner, name: str, template: Object, attempt: int) -> Object:
    """The claim for a pod's or a group's purpose ``name``, without uid.

    Args:
        attempt: makes another name, should this one be taken.
    """
    spec = template.get("spec") or {}
    given = spec.get("metadata") or {}
    prefix = generate_name(owner.name, name)
    kind = {"apiVersion": owner.kind.api_version, "kind": owner.kind.name}
    own: Object = {
        "name": claims.generated_name(prefix, f"{owner.uid} {name} {attempt}"),
        "generateName": prefix,
        "namespace": owner.namespace,
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM: name},
        "ownerReferences": [{**kind, "name": owner.name, "uid": owner.uid, "controller": True}],
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


def _is_owner(owner: Mapping[str, Any]) -> bool:
    """Whether an owner of a claim is the pod or the pod group that it was made for."""
    version, kind = owner.get("apiVersion") or "", owner.get("kind")
    of_group = kind == POD_GROUP and version.startswith(f"{API_GROUP}/")
    return bool(owner.get("controller")) and (of_group or (version, kind) == ("v1", "Pod"))


def _uses(pod: FoundPod) -> bool:
    """Whether a pod may use its claims still, as `is_over` has it."""
    return pod.state.phase not in (SUCCEEDED, FAILED) and (pod.state.deleting == "-" or bool(pod.state.bound_to))


def _lives(pod: FoundPod) -> bool:
    return pod.state.phase not in (SUCCEEDED, FAILED) and pod.state.deleting == "-"


def _namespace(pod: FoundPod) -> str:
    return pod.key.partition("/")[0]


def _key(claim: Mapping[str, Any]) -> str:
    return CLAIM.key(claim["metadata"].get("namespace", "default"), claim["metadata"]["name"])
