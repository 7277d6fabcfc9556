"""What applying a manifest would do to the object that is stored, if there is one. Decides; writes nothing.

As ``kubectl apply`` without patches: the manifest replaces labels, annotations and spec; uid, creation time, the bound
node and what the scheduler wrote stay; a status stays unless the manifest has one. Of a pod's spec only some
fields may change.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go (ValidatePodUpdate, ValidatePodResize,
validatePodAffinityMutation…), as far as scheduling reads it.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import msgspec

from dsched.cluster.standalone import stored
from dsched.cluster.standalone.stored import Object, PodState
from dsched.manifests import admission, defaulting, group_checks, kinds, queue_checks
from dsched.manifests.load import Manifest
from dsched.manifests.problems import Problems, Report

_BINDING_FIELDS = ("volumeName", "claimRef")
_BINDING_NOTES = ("pv.kubernetes.io/", "volume.kubernetes.io/selected-node")
_CLAIM_STATUSES = ("resourceClaimStatuses", "extendedResourceClaimStatus")
_SERVER_OWNED = frozenset({"resourceVersion", "managedFields", "generation", "selfLink"})
_Part = Mapping[str, Any]

_MAY_CHANGE = "removed schedulingGates, added tolerations, container resources and images, cpu and memory of resources"
_CONTAINERS = ("containers", "initContainers")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Outcome(StrEnum):
    """What applying did."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"
    """The manifest carries another UID: the pod of that name was deleted and this one created."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it was when it was looked at; ``state`` for pods."""

    value: Object
    version: str
    state: PodState | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    Attributes:
        value: the object to be stored, complete but for its resourceVersion.
        expected: the version that it must still have; ``""`` when it must not be there.
        state: a pod's new state line; node: where it is bound already.
    """

    manifest: Manifest
    outcome: Outcome
    value: Object
    expected: str
    state: str = ""
    node: str = ""


Planner = Callable[[Manifest, Stored | None], Plan | None]


def look_at(raw: bytes, line: bytes | None = None) -> Stored:
    """An object from what is kept of it; pods have a state line.

    Raises:
        Exception: whatever the decoder raises; ValueError: somebody else has written it, without what dsched gives it.
    """
    value: Object = msgspec.json.decode(raw)
    for name in ("resourceVersion", "uid", "creationTimestamp"):
        if not value["metadata"].get(name):
            raise ValueError(f"it has no metadata.{name}")
    state = stored.pod_state(line) if line is not None else None
    return Stored(value, state.version if state else value["metadata"]["resourceVersion"], state)


def plan(
    manifest: Manifest, found: Stored | None, classes: admission.Classes, now_ms: int, problems: Problems
) -> Plan | None:
    """Decide about one manifest; None when it cannot be applied, which is added to ``problems``."""
    value = {**manifest.value, "metadata": _own_metadata(manifest.value["metadata"])}
    before = found if found is not None and _same_uid(value, found.value) else None
    _complete(value, before, now_ms)
    known = len(problems)
    report = partial(_report, problems, manifest)
    admission.admit(manifest.kind, value, before.value if before else None, classes, report)
    node, state = "", ""
    if manifest.kind is kinds.RESOURCE_CLAIM and before is not None:
        _keep_claim(value, before.value, report)
    if manifest.kind is kinds.POD_GROUP:
        _keep_group(value, before.value if before else None, report)
    if manifest.kind is kinds.QUEUE:
        _keep_status(value, before.value if before else None)
    if manifest.kind is kinds.POD:
        node, state = _pod(manifest, value, before, now_ms, problems)
    if len(problems) > known:
        return None
    return Plan(manifest, _outcome(manifest, value, found, before), value, found.version if found else "", state, node)


def queues(plans: Sequence[Plan], there: Iterable[Object], problems: Problems) -> None:
    """Check what the queues of a call are to each other and to those that there are already.

    Two calls at one moment do not see each other: who reads queues must not rely on it that they are a forest.
    """
    after = {each["metadata"]["name"]: each for each in there} | {each.manifest.key: each.value for each in plans}
    queue_checks.forest(after, {each.manifest.key: partial(_report, problems, each.manifest) for each in plans})


def _report(problems: Problems, manifest: Manifest, path: str, what: str) -> None:
    problems.add(manifest.origin, f"{path}: {what}")


def _own_metadata(metadata: Object) -> Object:
    return {name: item for name, item in metadata.items() if name not in _SERVER_OWNED}


def _same_uid(value: Object, before: Object) -> bool:
    return value["metadata"].get("uid") in (None, "", before["metadata"]["uid"])


def _complete(value: Object, before: Stored | None, now_ms: int) -> None:
    """Give it what the server gives: uid, time of creation, and a status that the manifest does not speak of."""
    metadata = value["metadata"]
    if before is None:
        metadata["uid"] = metadata.get("uid") or str(uuid.uuid4())
        metadata.setdefault("creationTimestamp", stored.rfc3339(now_ms))
        return
    metadata["uid"] = before.value["metadata"]["uid"]
    metadata["creationTimestamp"] = before.value["metadata"]["creationTimestamp"]
    if "status" in before.value:
        value.setdefault("status", before.value["status"])
    _keep_binding(value, before.value)


def _keep_binding(value: Object, before: Object) -> None:
    """Keep what binding a claim to a volume wrote on either, where the manifest does not speak of it."""
    spec, old = value.get("spec") or {}, before.get("spec") or {}
    kept = {name: old[name] for name in _BINDING_FIELDS if name in old and name not in spec}
    if kept:
        value["spec"] = {**spec, **kept}
    annotations, written = value["metadata"].get("annotations") or {}, before["metadata"].get("annotations") or {}
    notes = {
        name: note for name, note in written.items() if name.startswith(_BINDING_NOTES) and name not in annotations
    }
    if notes:
        value["metadata"]["annotations"] = {**annotations, **notes}


def _keep_claim(value: Object, before: Object, report: Report) -> None:
    """A claim asks for what it asked for; who made it and who uses it is not the manifest's to change.

    Source: pkg/apis/resource/validation/validation.go ``ValidateResourceClaimUpdate``.
    """
    if value.get("spec", {}) != before.get("spec", {}):
        report("spec", "is immutable; delete the claim first")
    for name in ("finalizers", "ownerReferences", "deletionTimestamp"):
        if name in before["metadata"]:
            value["metadata"][name] = before["metadata"][name]


def _keep_group(value: Object, before: Object | None, report: Report) -> None:
    """Of a group that exists, only how many pods make it may change; its status is the scheduler's, and a new one has
    none.

    Source: pkg/apis/scheduling/v1beta1/zz_generated.validations.go ``Validate_PodGroupSpec``; pkg/registry/scheduling/
    podgroup/strategy.go ``PrepareForCreate``, ``PrepareForUpdate``.
    """
    _keep_status(value, before)
    if before is None:
        return
    if changed := group_checks.forbidden(before.get("spec", {}), value["spec"]):
        told = f"is immutable except for {group_checks.MUTABLE} (changed: {', '.join(changed)})"
        report("spec", f"{told}; delete the group first")


def _keep_status(value: Object, before: Object | None) -> None:
    """The status is the scheduler's: what a manifest says of it is passed over."""
    value.pop("status", None)
    if before is not None and "status" in before:
        value["status"] = before["status"]


def _outcome(manifest: Manifest, value: Object, found: Stored | None, before: Stored | None) -> Outcome:
    if found is None:
        return Outcome.CREATED
    if before is None:
        return Outcome.REPLACED if manifest.kind is kinds.POD else Outcome.CONFIGURED
    unchanged = value == {**before.value, "metadata": _own_metadata(before.value["metadata"])}
    return Outcome.UNCHANGED if unchanged else Outcome.CONFIGURED


def _pod(manifest: Manifest, value: Object, before: Stored | None, now_ms: int, problems: Problems) -> tuple[str, str]:
    """Complete a pod; returns the node it is bound to already, and its state line."""
    status = value["status"] = {**value.get("status", {})}
    status.setdefault("phase", stored.PENDING)
    if before is None or before.state is None:
        node = value["spec"].get("nodeName", "")
        return "", stored.state_line(value, node, now_ms if node else 0)
    value["spec"] = {**value["spec"]}
    _keep_node(value["spec"], before.value["spec"], before.state.bound_to)
    _keep_label_keys(value["spec"], before.value["spec"])
    _keep_written(status, before.value.get("status", {}))
    changed = forbidden(before.value["spec"], value["spec"])
    if changed:
        problems.add(
            manifest.origin,
            f"pod {manifest.key}: spec is immutable except for {_MAY_CHANGE} (changed: {', '.join(changed)}); "
            "delete it first",
        )
    return before.state.bound_to, stored.state_line(value, before.state.bound_to, before.state.bound_ms)


def _keep_node(spec: Object, before: Object, bound_to: str) -> None:
    """A manifest need not name the node that the pod is bound to, and may."""
    if spec.get("nodeName", "") not in ("", bound_to):
        return
    spec.pop("nodeName", None)
    if "nodeName" in before:
        spec["nodeName"] = before["nodeName"]


def _keep_label_keys(spec: Object, before: Object) -> None:
    """What matchLabelKeys and mismatchLabelKeys came to when the pod was made stays so when its labels change."""
    affinity, old = spec.get("affinity"), before.get("affinity")
    spread = spec.get(defaulting.SPREAD)
    if (not affinity or not old or affinity == old) and spread == before.get(defaulting.SPREAD):
        return
    bare, old_bare = defaulting.without_label_keys(spec), defaulting.without_label_keys(before)
    if spread and bare[defaulting.SPREAD] == old_bare.get(defaulting.SPREAD):
        spec[defaulting.SPREAD] = before[defaulting.SPREAD]
    if affinity and old:
        parts, old_parts = bare["affinity"], old_bare["affinity"]
        same = [name for name in defaulting.POD_AFFINITIES if name in parts and parts[name] == old_parts.get(name)]
        spec["affinity"] = {**affinity, **{name: old[name] for name in same}}


def _keep_written(status: Object, before: Object) -> None:
    """What the scheduler writes about a pod is not the manifest's to change once the pod exists."""
    status.pop("nominatedNodeName", None)
    for name in ("nominatedNodeName", *_CLAIM_STATUSES):
        if name in before:
            status[name] = before[name]
    own = [each for each in before.get("conditions", ()) if each.get("type") == stored.POD_SCHEDULED]
    given = [each for each in status.pop("conditions", ()) if each.get("type") != stored.POD_SCHEDULED]
    if own or given:
        status["conditions"] = given + own


def forbidden(old: _Part, new: _Part) -> list[str]:
    """The fields of a pod's spec that must not change the way they do; [] when the change is allowed."""
    gated = bool(old.get("schedulingGates"))
    return [name for name in sorted(old.keys() | new.keys()) if not _allowed(name, old.get(name), new.get(name), gated)]


def _allowed(name: str, old: Any, new: Any, gated: bool) -> bool:
    if old == new:
        return True
    if name == "schedulingGates":
        return all(gate in (old or ()) for gate in new or ())
    if name == "tolerations":
        return all(toleration in (new or ()) for toleration in old or ())
    if name in _CONTAINERS:
        return [_lasting(container) for container in old or ()] == [_lasting(container) for container in new or ()]
    if name == "resources":
        return _resized(old or {}, new or {})
    if name == "nodeSelector" and gated:
        return (old or {}).items() <= (new or {}).items()
    return name == "affinity" and gated and _narrower(old or {}, new or {})


def _resized(old: _Part, new: _Part) -> bool:
    """Whether of what a pod asks for as a whole only CPU and memory have changed, and nothing is left out
    (``validatePodLevelResourcesResize``)."""
    for amounts in old.keys() | new.keys():
        before, after = old.get(amounts) or {}, new.get(amounts) or {}
        if before == after:
            continue
        if amounts not in ("requests", "limits") or before.keys() - after.keys():
            return False
        if any(before.get(each) != after[each] for each in after if each not in ("cpu", "memory")):
            return False
    return True


def _lasting(container: _Part) -> _Part:
    """A container without what may change."""
    return {name: value for name, value in container.items() if name not in ("resources", "image")}


def _narrower(old: _Part, new: _Part) -> bool:
    """Whether a gated pod's affinity only lost nodes: requirements may be added to each term, preferences change."""
    if _without_node(old) != _without_node(new):
        return False
    before = _terms(old)
    if before is None:
        return True
    after = _terms(new)
    return after is not None and len(after) == len(before) and all(map(_adds_to, before, after))


def _without_node(affinity: _Part) -> _Part:
    return {name: value for name, value in affinity.items() if name != "nodeAffinity"}


def _terms(affinity: _Part) -> Sequence[_Part] | None:
    required = affinity.get("nodeAffinity", {}).get(_REQUIRED)
    return None if required is None else required.get("nodeSelectorTerms", ())


def _adds_to(before: _Part, after: _Part) -> bool:
    """Whether a term was only added to, at the ends; one without requirements, which no node meets, stays as it is.

    Source: pkg/apis/core/validation/validation.go ``validateNodeSelectorTermHasOnlyAdditions``.
    """
    old, new = _requirements(before), _requirements(after)
    if not any(old):
        return not any(new)
    return all(now[: len(was)] == was for was, now in zip(old, new, strict=True))


def _requirements(term: _Part) -> list[list[_Part]]:
    return [list(term.get(field, ())) for field in ("matchExpressions", "matchFields")]
