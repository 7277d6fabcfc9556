"""The PodGroup of scheduler-plugins (``scheduling.x-k8s.io/v1alpha1``) and its label, read as a PodGroup of Kubernetes.

Pods are grouped by a label there, and the group says how many of them are needed. With the gate ``DschedCoscheduling``
this becomes a gang: see docs/pod-groups.md.

Source: sigs.k8s.io/scheduler-plugins v0.33.5 apis/scheduling/v1alpha1/types.go, pkg/util/podgroup.go.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from dsched.model import meta
from dsched.model.meta import ApiRecord, Int32, ObjectMeta
from dsched.model.pod import Pod, PodSchedulingGroup
from dsched.model.pod_groups import CoschedulingTerms
from dsched.model.quantity import Quantity

GATE = "DschedCoscheduling"
API_VERSION = "scheduling.x-k8s.io/v1alpha1"
READ_AS = "scheduling.k8s.io/v1beta1"
LABEL = "scheduling.x-k8s.io/pod-group"


class CoschedulingSpec(ApiRecord, frozen=True):
    min_member: Int32 = 0
    min_resources: dict[str, Quantity] = {}
    schedule_timeout_seconds: Int32 | None = None


class CoschedulingGroup(ApiRecord, frozen=True):
    """The PodGroup of scheduler-plugins."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CoschedulingSpec = CoschedulingSpec()


def pod_group(value: Mapping[str, Any]) -> dict[str, Any]:
    """A PodGroup of Kubernetes that asks for the same, as a plain object.

    Raises:
        msgspec.ValidationError: a field has the wrong type.
    """
    spec = meta.from_builtins(value, CoschedulingGroup).spec
    policy: dict[str, Any] = {"gang": {"minCount": spec.min_member}} if spec.min_member > 0 else {"basic": {}}
    terms = CoschedulingTerms(spec.min_resources, spec.schedule_timeout_seconds)
    read_as = {"schedulingPolicy": policy, "disruptionMode": {"single": {}}, "coscheduling": msgspec.to_builtins(terms)}
    return {**value, "apiVersion": READ_AS, "spec": read_as}


def group_key(pod: Pod) -> str:
    """``namespace/name`` of the group that a pod is of, by its spec or its label; ``""`` for none."""
    name = pod.metadata.labels.get(LABEL, "")
    return pod.group_key or (f"{pod.metadata.namespace or 'default'}/{name}" if name else "")


def grouped(pod: Pod) -> Pod:
    """The pod with the group that its label names, where its spec names none."""
    name = pod.metadata.labels.get(LABEL)
    if not name or pod.spec.scheduling_group is not None:
        return pod
    return replace(pod, spec=replace(pod.spec, scheduling_group=PodSchedulingGroup(name)))
