"""Whether a change in the cluster may help a pod that its hard spread constraints kept from nodes.

Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go ``isSchedulableAfterPodChange``,
``isSchedulableAfterNodeChange``.
"""

from collections.abc import Sequence

from dsched.arithmetic.spreading import Constraint
from dsched.model.node import Node
from dsched.model.pod import Pod


def involved(other: Pod, pod: Pod, assigned: bool) -> bool:
    """Whether another pod, on a node (``assigned``) or not, may matter to the spreading of ``pod``: it is on a node and
    in the same namespace, or it is the same pod (``involvedInTopologySpreading``)."""
    return other.uid == pod.uid or (assigned and other.metadata.namespace == pod.metadata.namespace)


def pod_change_helps(constraints: Sequence[Constraint], pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """A pod of the same namespace came, changed or went; or ``pod`` itself changed.

    It helps when the pod matches a constraint, or came to match one or ceased to; or when ``pod`` tolerates other
    taints and a constraint asks.
    """
    if old is None or new is None:
        return any(each.selector.matches(one.metadata.labels) for one in (old, new) if one for each in constraints)
    tolerates_others = new.uid == pod.uid and new.spec.tolerations != old.spec.tolerations
    if tolerates_others and any(constraint.honor_taints for constraint in constraints):
        return True
    before, after = old.metadata.labels, new.metadata.labels
    return any(each.selector.matches(before) != each.selector.matches(after) for each in constraints)


def node_change_helps(constraints: Sequence[Constraint], old: Node | None, new: Node | None) -> bool:
    """A node with the keys of all constraints came or went, got or lost them, or has other values or other taints."""
    keys = [constraint.topology_key for constraint in constraints]
    before, after = _values(old, keys), _values(new, keys)
    if old is None or new is None or before is None or after is None:
        return (before is None) != (after is None)
    return before != after or old.spec.taints != new.spec.taints


def _values(node: Node | None, keys: Sequence[str]) -> tuple[str, ...] | None:
    """A node's values for the keys, None where it lacks one."""
    if node is None or not all(key in node.metadata.labels for key in keys):
        return None
    return tuple(node.metadata.labels[key] for key in keys)
