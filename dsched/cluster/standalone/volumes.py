"""Binding claims to volumes in standalone mode, where nobody else does: both sides are written, the volume's first.

What is written here is what the PV controller writes once the scheduler has chosen a volume. It does nothing of its own
accord, and nobody makes volumes: a claim for which one has to be made stays as it is, its node written onto it, until
somebody applies a volume whose claimRef names the claim, or binds the claim by hand.

Every object is written only if it is as it was read; killed between volume and claim, the next call finishes it.

Source: pkg/controller/volume/persistentvolume/pv_controller.go ``bind``; volumebinding/binder.go ``bindAPIUpdate``.
"""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from dsched.cluster.standalone import keys, stored
from dsched.cluster.standalone.objects import Objects
from dsched.cluster.standalone.stored import Object
from dsched.manifests import kinds
from dsched.model.volumes import (
    BIND_COMPLETED,
    BOUND,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    ClaimBinding,
    NodeSelection,
)
from dsched.state import client, pieces
from dsched.state import keys as state_keys
from dsched.state.client import Store
from dsched.state.scripts import Script

ATTEMPTS = 20
"""How often objects that keep changing are looked at anew."""

Step = Callable[[], str | None]


class VolumeWriter:
    """Writes claims and volumes. Every method raises RedisUnavailable while Redis does not answer."""

    def __init__(self, store: Store, log_length: int) -> None:
        self._store = store
        self._log_length = log_length
        self._objects = Objects(store)
        self._put_objects = Script(store, "objects_put", stored.SCRIPTS)

    def bind(self, binding: ClaimBinding) -> str:
        """Bind a claim to a volume; says why not, ``""`` when they are bound, by this call or an earlier one."""
        return _until_it_stands(lambda: self._bind(binding), f"persistentvolumeclaim {binding.claim}")

    def select(self, selection: NodeSelection) -> str:
        """Write the node onto a claim for which a volume has to be made; says why not, ``""`` when it is there."""
        return _until_it_stands(lambda: self._select(selection), f"persistentvolumeclaim {selection.claim}")

    def _bind(self, binding: ClaimBinding) -> str | None:
        volume = self._read(kinds.PERSISTENT_VOLUME, binding.volume)
        claim = self._read(kinds.PERSISTENT_VOLUME_CLAIM, binding.claim)
        problem = _no_binding(binding, volume, claim)
        if problem or volume is None or claim is None:
            return problem
        bound = bound_volume(volume, claim)
        if not self._put(kinds.PERSISTENT_VOLUME, binding.volume, volume, bound):
            return None
        return "" if self._put(kinds.PERSISTENT_VOLUME_CLAIM, binding.claim, claim, bound_claim(claim, bound)) else None

    def _select(self, selection: NodeSelection) -> str | None:
        claim = self._read(kinds.PERSISTENT_VOLUME_CLAIM, selection.claim)
        problem = _no_claim(selection.claim, selection.claim_uid, claim)
        if problem or claim is None:
            return problem
        selected = _annotated(claim, {SELECTED_NODE: selection.node})
        if selected == claim or claim["spec"].get("volumeName"):
            return ""
        if _version(claim) != selection.claim_version:
            return _changed(f"persistentvolumeclaim {selection.claim}", selection.claim_version, claim)
        return "" if self._put(kinds.PERSISTENT_VOLUME_CLAIM, selection.claim, claim, selected) else None

    def _read(self, kind: kinds.Kind, key: str) -> Object | None:
        return self._objects.get(kind, [key])[0]

    def _put(self, kind: kinds.Kind, key: str, before: Object, after: Object) -> bool:
        """Write an object if it is as it was; False when it has changed."""
        if after == before:
            return True
        names = state_keys.names(keys.ID, keys.VERSION, keys.LOG, keys.objects(kind))
        packed = pieces.packed([[key, _version(before), before["metadata"]["uid"], stored.tail(after)]])
        with client.reachable(self._store):
            changed = self._put_objects(
                names, [str(uuid.uuid4()), self._log_length, kind.name, stored.head(kind), packed]
            )
        return not changed


def bound_volume(volume: Object, claim: Object) -> Object:
    """The volume, bound to the claim."""
    metadata = claim["metadata"]
    reference = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    given = volume["spec"].get("claimRef")
    chosen = volume if _names(given, claim) else _annotated(volume, {BOUND_BY_CONTROLLER: "yes"})
    spec = volume["spec"] if _is(given, claim) else {**volume["spec"], "claimRef": reference}
    return {**chosen, "spec": spec, "status": {**(volume.get("status") or {}), "phase": BOUND}}


def bound_claim(claim: Object, volume: Object) -> Object:
    """The claim, bound to the volume."""
    annotations = {BIND_COMPLETED: "yes"}
    if not claim["spec"].get("volumeName"):
        annotations[BOUND_BY_CONTROLLER] = "yes"
    status = {
        **(claim.get("status") or {}),
        "phase": BOUND,
        "accessModes": volume["spec"].get("accessModes", []),
        "capacity": volume["spec"].get("capacity", {}),
    }
    spec = {**claim["spec"], "volumeName": volume["metadata"]["name"]}
    return {**_annotated(claim, annotations), "spec": spec, "status": status}


def _until_it_stands(step: Step, what: str) -> str:
    for _ in range(ATTEMPTS):
        outcome = step()
        if outcome is not None:
            return outcome
    return f"{what} or its volume changed all the time"


def _no_binding(binding: ClaimBinding, volume: Object | None, claim: Object | None) -> str:
    """Why the two cannot be bound; ``""`` when they can."""
    problem = _no_claim(binding.claim, binding.claim_uid, claim)
    if problem or claim is None:
        return problem
    if volume is None:
        return f"persistentvolume {binding.volume} does not exist"
    other = claim["spec"].get("volumeName") or binding.volume
    if other != binding.volume:
        return f"persistentvolumeclaim {binding.claim} is bound to persistentvolume {other}"
    reference = volume["spec"].get("claimRef")
    if _is(reference, claim):
        return ""
    if reference is not None and not _names(reference, claim):
        owner = f"{reference.get('namespace')}/{reference.get('name')}"
        return f"persistentvolume {binding.volume} is bound to persistentvolumeclaim {owner}"
    if _version(volume) != binding.volume_version:
        return _changed(f"persistentvolume {binding.volume}", binding.volume_version, volume)
    return ""


def _no_claim(key: str, uid: str, claim: Object | None) -> str:
    if claim is None:
        return f"persistentvolumeclaim {key} does not exist"
    found = claim["metadata"]["uid"]
    return "" if found == uid else f"persistentvolumeclaim {key} has another uid, {found}"


def _changed(what: str, expected: str, found: Object) -> str:
    return f"{what} has changed since the pod was reserved: expected version {expected}, found {_version(found)}"


def _names(reference: Mapping[str, Any] | None, claim: Object) -> bool:
    """Whether a claimRef means the claim, or whatever claim has its name."""
    if reference is None:
        return False
    metadata = claim["metadata"]
    same = (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])
    return same and reference.get("uid") in (None, "", metadata["uid"])


def _is(reference: Mapping[str, Any] | None, claim: Object) -> bool:
    """Whether a claimRef means exactly this claim."""
    return _names(reference, claim) and reference is not None and reference.get("uid") == claim["metadata"]["uid"]


def _annotated(value: Object, annotations: Mapping[str, str]) -> Object:
    metadata = value["metadata"]
    return {**value, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}}


def _version(value: Object) -> str:
    return str(value["metadata"]["resourceVersion"])
