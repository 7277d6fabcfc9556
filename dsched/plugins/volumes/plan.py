"""What binding a pod means for its claims: decided by Reserve in the leader, carried out by PreBind in a binder.

Both steps may be repeated: what is written already is not written again, and what is not bound yet is looked at again.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go ``bindAPIUpdate``, ``checkBindings``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from dsched.arithmetic.claims import Answer, Waiting
from dsched.arithmetic.volumes import NONE, reach, reachable_from
from dsched.config import Features
from dsched.errors import PluginError
from dsched.model import meta, migration, volumes
from dsched.model.meta import ApiRecord, NodeName, PodUid
from dsched.model.node import Node
from dsched.model.volumes import (
    CLAIM,
    CSI_NODE,
    PERSISTENT_VOLUME,
    SELECTED_NODE,
    ClaimBinding,
    CsiNode,
    NodeSelection,
    PersistentVolume,
    PersistentVolumeClaim,
)
from dsched.plugins.volumes.assumptions import VolumeAssumptions


class Plan(ApiRecord, frozen=True):
    """What is owed to a pod's claims, and since when it waits (wall-clock ms)."""

    bindings: list[ClaimBinding] = []
    selections: list[NodeSelection] = []
    since_ms: int = 0

    def packed(self) -> dict[str, Any]:
        """As plain data that msgpack can carry."""
        packed: dict[str, Any] = msgspec.to_builtins(self)
        return packed

    @staticmethod
    def unpacked(packed: Any) -> "Plan":
        """
        Raises:
            msgspec.ValidationError: it is none.
        """
        return msgspec.convert(packed, Plan)


class Volumes(Protocol):
    """What is asked of the cluster; see `dsched.cluster.interface.Cluster`."""

    def get_objects(self, kind: str, keys: Sequence[str]) -> Sequence[Mapping[str, Any] | None]: ...

    def bind_volumes(self, bindings: Sequence[ClaimBinding]) -> Sequence[str]: ...

    def select_nodes(self, selections: Sequence[NodeSelection]) -> Sequence[str]: ...


def plan(answer: Answer, node: NodeName, now_ms: int) -> Plan:
    """What the answer for one node asks for.

    A claim for which a volume is being made, and was made by now, is bound to it.
    """
    bindings: list[ClaimBinding] = []
    selections: list[NodeSelection] = []
    for each, picked in answer.picks:
        if picked[0] == NONE:
            selections.append(_selection(each, node))
        else:
            bindings.append(_binding(each, int(picked[0])))
    for each in answer.made:
        made = next((number for number, offer in enumerate(each.offers) if _is_for(offer.volume, each)), None)
        if made is None:
            selections.append(_selection(each, node))
        else:
            bindings.append(_binding(each, made))
    return Plan(bindings, selections, now_ms)


def assume(answer: Answer, node: NodeName, owner: PodUid, assumptions: VolumeAssumptions) -> None:
    """Count with what the answer for one node asks for (``AssumePodVolumes``)."""
    for each, picked in answer.picks:
        if picked[0] == NONE:
            assumptions.select(owner, each.key, each.want.claim, node)
        else:
            assumptions.bind(owner, each.offers[int(picked[0])], each.want.claim)


def _is_for(volume: PersistentVolume, waiting: Waiting) -> bool:
    return volumes.refers_to(volume.spec.claim_ref, waiting.want.claim)


def _binding(waiting: Waiting, number: int) -> ClaimBinding:
    metadata = waiting.offers[number].volume.metadata
    return ClaimBinding(waiting.key, waiting.want.claim.metadata.uid, metadata.name, metadata.resource_version)


def _selection(waiting: Waiting, node: NodeName) -> NodeSelection:
    metadata = waiting.want.claim.metadata
    return NodeSelection(waiting.key, metadata.uid, metadata.resource_version, node)


Record = TypeVar("Record", bound=ApiRecord)
BINDING, PROVISIONING = "binding", "provisioning pvc"
"""What kube-scheduler says that it has looked at in vain."""


class NotBound(Exception):
    """Binding has failed, and the pod has to be scheduled anew; ``args[0]`` says why."""


def carry_out(assumed: Plan, cluster: Volumes) -> str:
    """Write what is not written yet; returns why the cluster refused, ``""`` where it did not."""
    problems = [*cluster.bind_volumes(assumed.bindings), *cluster.select_nodes(assumed.selections)]
    return next(filter(None, problems), "")


def look_for(assumed: Plan, cluster: Volumes, features: Features) -> None:
    """
    Raises:
        NotBound: a claim or a volume is gone; in the words of `unbound`.
    """
    keys = [*(each.claim for each in assumed.bindings), *(each.claim for each in assumed.selections)]
    claims = _read(cluster, CLAIM, keys, PersistentVolumeClaim)
    known = _read(cluster, PERSISTENT_VOLUME, (each.volume for each in assumed.bindings), PersistentVolume)
    for binding in assumed.bindings:
        _there(known, binding.volume, BINDING, PERSISTENT_VOLUME, features)
        _there(claims, binding.claim, BINDING, CLAIM, features)
    for selection in assumed.selections:
        _there(claims, selection.claim, PROVISIONING, CLAIM, features)


def unbound(assumed: Plan, node_name: NodeName, cluster: Volumes, features: Features) -> list[str]:
    """The claims (``namespace/name``) that are not bound yet.

    Source: pkg/scheduler/framework/plugins/volumebinding/binder.go ``checkBindings``.

    Raises:
        NotBound: something has come about that binding cannot get over.
        PluginError: a volume makes no sense to the driver that took it over.
    """
    keys = [each.claim for each in assumed.bindings] + [each.claim for each in assumed.selections]
    claims = _read(cluster, CLAIM, keys, PersistentVolumeClaim)
    made = (claim.spec.volume_name for claim in claims.values() if claim.spec.volume_name)
    known = _read(cluster, PERSISTENT_VOLUME, [*(each.volume for each in assumed.bindings), *made], PersistentVolume)
    node = _read(cluster, "Node", [node_name], Node).get(node_name)
    if node is None:
        raise NotBound(f'failed to get node "{node_name}": node "{node_name}" not found')
    csi_node = _read(cluster, CSI_NODE, [node_name], CsiNode).get(node_name)
    lacking: list[str] = []
    for binding in assumed.bindings:
        volume = _there(known, binding.volume, BINDING, PERSISTENT_VOLUME, features)
        claim = _there(claims, binding.claim, BINDING, CLAIM, features)
        _check_reach(volume, node, csi_node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise NotBound(f'ClaimRef got reset for pv "{binding.volume}"')
        lacking += [] if volumes.fully_bound(claim) else [binding.claim]
    for selection in assumed.selections:
        claim = _there(claims, selection.claim, PROVISIONING, CLAIM, features)
        lacking += [] if _is_made(claim, known, node, csi_node) else [selection.claim]
    return lacking


def _there(found: Mapping[str, Record], key: str, what: str, kind: str, features: Features) -> Record:
    """
    Raises:
        NotBound: it is gone.
    """
    if key in found:
        return found[key]
    words = f'{kind.lower()}s "{key}" not found' if features.since(35) else f'could not find v1.{kind} "{key}"'
    raise NotBound(f"failed to check {what}: {words}")


def _is_made(
    claim: PersistentVolumeClaim, known: Mapping[str, PersistentVolume], node: Node, csi_node: CsiNode | None
) -> bool:
    if not claim.metadata.annotations:
        raise NotBound(f'selectedNode annotation reset for PVC "{claim.metadata.name}"')
    if claim.metadata.annotations.get(SELECTED_NODE) != node.name:
        raise NotBound(f'provisioning failed for PVC "{claim.metadata.name}"')
    if claim.spec.volume_name:
        volume = known.get(claim.spec.volume_name)
        if volume is None:
            return False  # it may show yet
        _check_reach(volume, node, csi_node)
    return volumes.fully_bound(claim)


def _check_reach(volume: PersistentVolume, node: Node, csi_node: CsiNode | None) -> None:
    affinity = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    plugin = migration.plugin_of(volume.spec)
    if plugin is not None and plugin.served and csi_node is not None and plugin.name in csi_node.migrated:
        try:
            affinity = migration.affinity(volume, plugin)
        except PluginError as error:
            raise PluginError(f"failed to translate pv to csi: could not translate pv: {error}") from error
    terms = reach(affinity)
    if terms is not None and not reachable_from(terms, node.metadata.labels):
        raise NotBound(
            f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.name}": '
            "no matching NodeSelectorTerms"
        )


def _read(cluster: Volumes, kind: str, keys: Iterable[str], record: type[Record]) -> dict[str, Record]:
    """The objects that are there, by key."""
    wanted = list(dict.fromkeys(keys))
    found = zip(wanted, cluster.get_objects(kind, wanted), strict=True) if wanted else ()
    return {key: meta.from_builtins(value, record) for key, value in found if value is not None}
