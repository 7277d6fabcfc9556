"""From manifests to a cluster and the pods that wait: what applying them to an empty system would give.

A pod that has no UID is given one that depends on its name alone, so that two simulations choose alike.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsched.cluster.standalone import planning
from dsched.config import SchedulerConfiguration
from dsched.framework import deferred_resizes
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.manifests import admission, kinds
from dsched.manifests.load import Manifest
from dsched.manifests.problems import Problems
from dsched.model import coscheduling, meta
from dsched.model.meta import PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.volumes import key_of
from dsched.simulation.claims import with_claims

_Made = tuple[Manifest, dict[str, Any]]
_NAMES = uuid.uuid5(uuid.NAMESPACE_URL, "dsched:simulation")


@dataclass(frozen=True, slots=True)
class ManifestCluster:
    """A cluster and the pods that wait in it.

    Attributes:
        nodes: by name, as a leader reads them when it begins.
        bound: pods that have a node and have not ended, in the order given.
        pending: pods without a node that have not ended and are not being deleted, oldest first; of equal age in the
            order given.
        resizing: those of ``bound`` with a deferred resize that are not being deleted.
        others: kind, key and object of everything else.
    """

    nodes: tuple[Node, ...]
    bound: tuple[Pod, ...]
    pending: tuple[Pod, ...]
    others: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    resizing: tuple[Pod, ...] = ()

    def coscheduled(self) -> "ManifestCluster":
        """The cluster with labels of scheduler-plugins read as groups."""
        bound, pending, resizing = (
            tuple(coscheduling.grouped(pod) for pod in pods) for pods in (self.bound, self.pending, self.resizing)
        )
        return replace(self, bound=bound, pending=pending, resizing=resizing)

    def fill(self, snapshot: Snapshot) -> None:
        """Put the cluster, and the pods that have a node, into an empty snapshot."""
        for node in self.nodes:
            snapshot.table.set_node(node)
        for kind, key, value in self.others:
            snapshot.put(kind, key, value)
        for pod in self.bound:
            snapshot.table.add_pod(PodInfo(pod), pod.node_name)

    def waiting(self, configured: SchedulerConfiguration) -> list[Pod]:
        """Pods that are to be decided, oldest first: those without a node; and where resizes preempt, those of a
        profile whose resize is deferred."""
        if not self.resizing or not configured.features.enabled(deferred_resizes.GATE):
            return list(self.pending)
        ours = {profile.scheduler_name for profile in configured.profiles}
        resizing = [pod for pod in self.resizing if pod.spec.scheduler_name in ours]
        return oldest_first([*self.pending, *resizing])


def given(
    manifests: Sequence[Manifest], now_ms: int, present: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
) -> ManifestCluster:
    """Complete the objects as applying them would, with priorities from their classes, and sort them out.

    Args:
        now_ms: when objects that do not say so themselves were created.
        present: objects by kind that there are already; only classes are looked for.

    Raises:
        ManifestError: an object names a class that there is not, or two pods have one UID.
    """
    problems = Problems()
    known = [
        [*(present or {}).get(kind.name, ()), *_values(manifests, kind)]
        for kind in (kinds.PRIORITY_CLASS, kinds.STORAGE_CLASS)
    ]
    classes = admission.classes(*known)
    plans = [planning.plan(_named(each), None, classes, now_ms, problems) for each in manifests]
    made = [(plan.manifest, plan.value) for plan in plans if plan is not None]
    made, claims = _with_claims(made)
    pods = _pods([(each.origin, value) for each, value in made if each.kind is kinds.POD], problems)
    problems.raise_any()
    nodes = [meta.from_builtins(value, Node) for each, value in made if each.kind is kinds.NODE]
    there = [pod for pod in pods if not pod.finished]
    waiting = [pod for pod in there if not pod.node_name and not pod.deleting]
    return ManifestCluster(
        tuple(sorted(nodes, key=lambda node: node.name)),
        tuple(pod for pod in there if pod.node_name),
        tuple(oldest_first(waiting)),
        (
            *((each.kind.name, each.key, value) for each, value in made if each.kind not in (kinds.POD, kinds.NODE)),
            *((kinds.RESOURCE_CLAIM.name, key_of(claim), claim) for claim in claims),
        ),
        tuple(pod for pod in there if resizes(pod)),
    )


def oldest_first(pods: Iterable[Pod]) -> list[Pod]:
    """By when they were created; those of equal age stay in order."""
    return sorted(pods, key=lambda pod: pod.metadata.creation_timestamp)


def resizes(pod: Pod) -> bool:
    """Whether a pod waits on its node for the room that a resize needs."""
    return bool(pod.node_name) and pod.resize_deferred and not pod.deleting and not pod.finished


def _with_claims(made: Sequence[_Made]) -> tuple[list[_Made], list[dict[str, Any]]]:
    """The objects, with pods that wait naming their claims; and those that were made of templates for them."""
    templates = {each.key: value for each, value in made if each.kind is kinds.RESOURCE_CLAIM_TEMPLATE}
    found: list[_Made] = []
    claims: list[dict[str, Any]] = []
    for each, value in made:
        if each.kind is kinds.POD and templates and not value["spec"].get("nodeName"):
            value, own = with_claims(value, templates)
            claims += own
        found.append((each, value))
    return found, claims


def _values(manifests: Sequence[Manifest], kind: kinds.Kind) -> list[dict[str, Any]]:
    return [each.value for each in manifests if each.kind is kind]


def _named(manifest: Manifest) -> Manifest:
    """The manifest with a UID."""
    metadata = manifest.value["metadata"]
    if metadata.get("uid"):
        return manifest
    uid = str(uuid.uuid5(_NAMES, f"{manifest.kind.name} {manifest.key}"))
    value = {**manifest.value, "metadata": {**metadata, "uid": uid}}
    return Manifest(manifest.origin, manifest.kind, manifest.key, value)


def _pods(made: Sequence[tuple[str, dict[str, Any]]], problems: Problems) -> list[Pod]:
    pods: list[Pod] = []
    owners: dict[PodUid, str] = {}
    for origin, value in made:
        pod = meta.from_builtins(value, Pod)
        owner = owners.setdefault(pod.uid, pod.key)
        if owner != pod.key:
            problems.add(origin, f'metadata.uid: "{pod.uid}" is the UID of pod {owner} too')
        pods.append(pod)
    return pods
