"""Claims and volumes, as PreBind writes them: the volume's claimRef, or the claim's selected node. The controllers of
the cluster go on from there.

Each is written only if it is as it was when the pod was reserved: its resourceVersion goes along.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go ``bindAPIUpdate``.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Calls
from dsched.cluster.kubernetes.http.exchange import MERGE_PATCH, Answer, Request
from dsched.cluster.kubernetes.resources import Resource
from dsched.model.volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, ClaimBinding, NodeSelection

PATIENCE_S = 10.0


class VolumeWriter:
    """Writes claims and volumes. Not for several threads at once."""

    def __init__(self, made: Calls) -> None:
        self._calls = made

    def bind(self, binding: ClaimBinding) -> str:
        """Write the claim onto the volume; says why not, ``""`` when it is there, by this call or another one."""
        return _settled(lambda: self._bind(binding))

    def select(self, selection: NodeSelection) -> str:
        """Write the node onto the claim; says why not, ``""`` when it is there."""
        return _settled(lambda: self._select(selection))

    def _bind(self, binding: ClaimBinding) -> str:
        claim, problem = self._read(resources.CLAIM, binding.claim)
        problem = problem or _another(binding.claim, binding.claim_uid, claim)
        if problem:
            return problem
        volume, problem = self._read(resources.VOLUME, binding.volume)
        if problem:
            return problem
        name = f"persistentvolume {binding.volume}"
        given = (volume.get("spec") or {}).get("claimRef") or {}
        if given.get("uid") == binding.claim_uid:
            return ""
        namespace, _, short = binding.claim.partition("/")
        preset = bool(given)
        if preset and (given.get("uid") or (given.get("namespace"), given.get("name")) != (namespace, short)):
            return f"{name} is bound to persistentvolumeclaim {given.get('namespace')}/{given.get('name')}"
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": short,
            "uid": binding.claim_uid,
            "resourceVersion": claim["metadata"].get("resourceVersion"),
        }
        patch: dict[str, Any] = {
            "metadata": {"resourceVersion": binding.volume_version},
            "spec": {"claimRef": reference},
        }
        if not preset:
            patch["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        return self._write(resources.VOLUME, binding.volume, patch, name)

    def _select(self, selection: NodeSelection) -> str:
        claim, problem = self._read(resources.CLAIM, selection.claim)
        problem = problem or _another(selection.claim, selection.claim_uid, claim)
        if problem:
            return problem
        if (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) == selection.node:
            return ""
        patch = {
            "metadata": {
                "resourceVersion": selection.claim_version,
                "annotations": {SELECTED_NODE: selection.node},
            }
        }
        return self._write(resources.CLAIM, selection.claim, patch, f"persistentvolumeclaim {selection.claim}")

    def _read(self, resource: Resource, key: str) -> tuple[Mapping[str, Any], str]:
        outcome = self._calls.make(Request("GET", resource.path(key)), PATIENCE_S)
        what = f"{resource.kind.lower()} {key}"
        if isinstance(outcome, Answer) and outcome.status == client.NOT_FOUND:
            return {}, f"{what} does not exist"
        if not isinstance(outcome, Answer) or outcome.status != 200:
            return {}, f"{what} cannot be read: {client.told(outcome)}"
        return msgspec.json.decode(outcome.body, type=dict[str, Any]), ""

    def _write(self, resource: Resource, key: str, patch: dict[str, Any], what: str) -> str:
        outcome = self._calls.make(
            Request("PATCH", resource.path(key), msgspec.json.encode(patch), MERGE_PATCH), PATIENCE_S
        )
        if client.succeeded(outcome):
            return ""
        if isinstance(outcome, Answer) and outcome.status == client.CONFLICT:
            raise _Changed(f"{what} has changed since the pod was reserved: {client.told(outcome)}")
        return f"{what} cannot be written: {client.told(outcome)}"


class _Changed(Exception):
    """The object is not as it was when the pod was reserved; ``args[0]`` says so."""


def _settled(step: Callable[[], str]) -> str:
    """What became of it. Who has changed the object may have written the same: this call itself, where the answer was
    lost and the request repeated, or another binder; whoever looks again finds it there."""
    try:
        return step()
    except _Changed:
        pass
    try:
        return step()
    except _Changed as changed:
        return str(changed)


def _another(key: str, uid: str, claim: Mapping[str, Any]) -> str:
    if not claim:
        return ""
    found = claim["metadata"].get("uid")
    return "" if found == uid else f"persistentvolumeclaim {key} has another uid, {found}"
